// SPDX-License-Identifier: MIT
//
// What a failing stress run says: the fault, the command that repeats it, and the history of the addresses
// involved.
//
// Each worker keeps its last few thousand operations in a ring. At a failure the rings of all workers are
// searched for every operation whose object touched the guilty range, and these are printed in the order of
// the time stamp counter: a run with threads can't be repeated exactly, but the story of the one address
// usually tells the bug. Nothing here allocates: the allocator under test may be in ruins.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace brimful::stress {

enum class Operation : uint8_t {
  kNothing,
  kMalloc,
  kNew,
  kCalloc,
  kRealloc,
  kReallocArray,
  kAlignedAlloc,
  kMemalign,
  kPosixMemalign,
  kFree,
  kFreeSized,
  kReallocFree,
  kReallocFrom,
  kPosted,
  kTaken,
};

// One thread's recent operations. Written by its owner only; read by whoever reports a failure.
class History {
 public:
  void note(Operation operation, const void* address, size_t size, uint64_t id);

  // The address of the owner's last operation; what a crash handler asks first.
  uintptr_t last_address() const;

  // Copies out the operations that touched [begin, end). Returns how many.
  struct Entry {
    uint64_t time;
    uintptr_t address;
    size_t size;
    uint64_t id;
    Operation operation;
    unsigned thread;
  };
  size_t collect(uintptr_t begin, uintptr_t end, unsigned thread, Entry* out, size_t room) const;

 private:
  static constexpr size_t kEntries = 4096;
  struct Cell {
    std::atomic<uint64_t> time;
    std::atomic<uintptr_t> address;
    std::atomic<size_t> size;
    std::atomic<uint64_t> id_and_operation;
  };
  Cell cells_[kEntries];
  std::atomic<size_t> count_;
};

// Registers the history of worker `thread`; it must stay mapped for the life of the process.
void register_history(unsigned thread, const History* history);

// The line that a failure prints as "repeat with:". Copied.
void set_repeat_line(const char* line);

// Prints the fault, the repeat line and the history of [address, address + size), then ends the process with
// 1 (or aborts, if asked for, to leave a core). The first failure speaks; threads that fail later wait for
// the end.
[[noreturn, gnu::format(printf, 3, 4)]] void fail(const void* address, size_t size, const char* format, ...);

// After this fail() aborts, and a core shows the other threads where they were.
void abort_on_failure();

// SIGSEGV, SIGBUS, SIGILL and SIGABRT print the repeat line and the history of the thread's last object, then
// take their default course. `own` returns the calling thread's history or nullptr; it must be callable in a
// handler.
void install_crash_reporter(const History* (*own)());

// printf to stderr in one write, without the C library's buffers.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);

}  // namespace brimful::stress
