// SPDX-License-Identifier: MIT
//
// The operating system as the allocator sees it: one small table of memory calls, so that a test can fail the n-th
// call of any kind and prove that nothing is lost. All calls report failure by their return value, none touches errno
// (free() must leave it alone), none allocates.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

enum class Access { kNone, kReadWrite };

// What the kernel is told about a range: back it by hugepages, never do so, back it with pages now; leave it out of core
// files, or no longer.
enum class Advice { kHugepage, kNoHugepage, kPopulate, kNoDump, kDump };

// What the system says about transparent hugepages: /sys/kernel/mm/transparent_hugepage/enabled.
enum class HugepageMode { kNever, kMadvise, kAlways };

struct Calls {
  // Maps `bytes` (a multiple of the page size) of private zero memory. With a hint the mapping lies exactly there and
  // replaces nothing, or fails. What is not writable costs no commit charge. Returns nullptr on failure.
  void* (*map)(std::uintptr_t hint, std::size_t bytes, Access access);
  // Replaces [address, address + bytes), which we own, by a fresh PROT_NONE mapping: its memory is given back *and*
  // no longer counts against the commit limit.
  bool (*decommit)(std::uintptr_t address, std::size_t bytes);
  // Makes a reserved range usable. false when the commit limit or the map count is reached.
  bool (*commit)(std::uintptr_t address, std::size_t bytes);
  // Takes the access away; the memory stays. false: the map count is reached.
  bool (*seal)(std::uintptr_t address, std::size_t bytes);
  // Gives the memory back at once; the range stays usable and reads as zeros (MADV_DONTNEED).
  bool (*purge)(std::uintptr_t address, std::size_t bytes);
  bool (*unmap)(std::uintptr_t address, std::size_t bytes);
  // Moves the pages of [from, from + bytes) to `to`, both inside our reservation; `from` stays mapped, empty. false: the
  // kernel refuses, as it does a range of several mappings; `from` is as it was, `to` may be fresh memory.
  bool (*move_pages)(std::uintptr_t from, std::size_t bytes, std::uintptr_t to);
  // Grows or shrinks a mapping, moving it when it must. nullptr on failure.
  void* (*resize)(std::uintptr_t address, std::size_t old_bytes, std::size_t new_bytes);
  // Names a range in /proc/PID/maps; kernels without the feature ignore it.
  void (*name)(std::uintptr_t address, std::size_t bytes, const char* text);
  // Monotonic time in ms, resolution a few ms, a few ns to read.
  std::uint64_t (*now_ms)();
  // The running CPU's NUMA node, below kMaxNodes (os/numa.h): a load, or one system call where there are several.
  std::uint32_t (*node)();
  // The range's pages come from the node while it has some. false: the kernel refuses.
  bool (*prefer_node)(std::uintptr_t address, std::size_t bytes, std::uint32_t node);
  // Puts pages of the HugeTLB pool in the place of a reserved range (os/hugetlb.h). false, nothing changed: there are none.
  bool (*map_hugetlb)(std::uintptr_t address, std::size_t bytes, unsigned page_shift);
  // The system may take the memory when it runs short; until then the range keeps its contents (MADV_FREE).
  bool (*purge_lazily)(std::uintptr_t address, std::size_t bytes);
  // madvise(2). false: this kernel does not know the advice, or has no memory.
  bool (*advise)(std::uintptr_t address, std::size_t bytes, Advice advice);
  // The page at `address` (a multiple of the page size) is in memory.
  bool (*is_resident)(std::uintptr_t address);
  // Writes a zero to each page of a range that holds zeros: a fault for each that is not there.
  void (*touch)(std::uintptr_t address, std::size_t bytes);
  // Nanoseconds of processor time of the calling thread.
  std::uint64_t (*cpu_ns)();
  // Reads the file: three system calls.
  HugepageMode (*hugepage_mode)();
  // Lets other threads run that wait for this CPU: sched_yield(2). Returns soon where there is none.
  void (*yield)();
};

// The table in use. Only tests write it, and only while no other thread allocates.
extern Calls calls;

// The real thing, for tests that restore it.
const Calls& linux_calls();

// The system's page size in bytes (4, 16 or 64 KiB).
std::size_t page_bytes();

}  // namespace brimful::os
