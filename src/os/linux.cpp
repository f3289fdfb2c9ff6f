// SPDX-License-Identifier: MIT
//
// os/calls.h on Linux. System calls go through syscall(2) with errno saved and restored, because free() promises
// to leave errno alone and the libc wrappers may be interposed by whatever else is preloaded.
#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/calls.h"
#include "os/clock.h"
#include "os/errno_guard.h"
#include "os/hugetlb.h"
#include "os/numa.h"
#include "os/small_file.h"

namespace brimful::os {
namespace {

constexpr int kSetVma = 0x53564d41;  // PR_SET_VMA, Linux 5.17
constexpr int kSetVmaAnonName = 0;

bool succeeded(long result) { return result == 0; }

// syscall(2) reports failure as -1 and a mapping is never there.
void* mapped(long result) { return result == -1 ? nullptr : reinterpret_cast<void*>(result); }

void* linux_map(std::uintptr_t hint, std::size_t bytes, Access access) {
  const ErrnoGuard guard;
  const int protection = access == Access::kNone ? PROT_NONE : PROT_READ | PROT_WRITE;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (hint != 0 ? MAP_FIXED_NOREPLACE : 0);
  void* result = mapped(syscall(SYS_mmap, hint, bytes, protection, flags, -1, 0));
  if (result != nullptr && hint != 0 && result != reinterpret_cast<void*>(hint)) {
    syscall(SYS_munmap, result, bytes);  // kernels before 4.17 take the hint as a wish
    return nullptr;
  }
  return result;
}

bool linux_decommit(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  return mapped(syscall(SYS_mmap, address, bytes, PROT_NONE, flags, -1, 0)) != nullptr;
}

bool linux_commit(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  return succeeded(syscall(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

bool linux_seal(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  return succeeded(syscall(SYS_mprotect, address, bytes, PROT_NONE));
}

bool linux_purge(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  return succeeded(syscall(SYS_madvise, address, bytes, MADV_DONTNEED));
}

bool linux_unmap(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  return succeeded(syscall(SYS_munmap, address, bytes));
}

bool linux_move_pages(std::uintptr_t from, std::size_t bytes, std::uintptr_t to) {
  const ErrnoGuard guard;
  constexpr int kFlags = MREMAP_MAYMOVE | MREMAP_FIXED | 4;  // 4 = MREMAP_DONTUNMAP, Linux 5.7
  if (mapped(syscall(SYS_mremap, from, bytes, bytes, kFlags, to)) != nullptr) return true;
  // The kernel takes away what lies at the target before it finds that it can't move a range of two mappings (other
  // advice, another NUMA node). Where it had not come so far, our memory is still there, and this changes nothing.
  linux_map(to, bytes, Access::kReadWrite);
  return false;
}

void* linux_resize(std::uintptr_t address, std::size_t old_bytes, std::size_t new_bytes) {
  const ErrnoGuard guard;
  return mapped(syscall(SYS_mremap, address, old_bytes, new_bytes, MREMAP_MAYMOVE, 0));
}

void linux_name(std::uintptr_t address, std::size_t bytes, const char* text) {
  const ErrnoGuard guard;
  syscall(SYS_prctl, kSetVma, kSetVmaAnonName, address, bytes, text);
}

// On the path of each freed large block: no guard, for the clock is there since Linux 2.6.32 and so errno is never set.
std::uint64_t linux_now_ms() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000 + static_cast<std::uint64_t>(now.tv_nsec) / 1000000;
}

bool linux_purge_lazily(std::uintptr_t address, std::size_t bytes) {
  const ErrnoGuard guard;
  return succeeded(syscall(SYS_madvise, address, bytes, MADV_FREE));
}

bool linux_advise(std::uintptr_t address, std::size_t bytes, Advice advice) {
  const ErrnoGuard guard;
  constexpr int kPopulateWrite = 23;  // Linux 5.14
  constexpr int kAdvice[] = {MADV_HUGEPAGE, MADV_NOHUGEPAGE, kPopulateWrite, MADV_DONTDUMP, MADV_DODUMP};
  return succeeded(syscall(SYS_madvise, address, bytes, kAdvice[static_cast<int>(advice)]));
}

bool linux_is_resident(std::uintptr_t address) {
  const ErrnoGuard guard;
  unsigned char resident = 0;
  return succeeded(syscall(SYS_mincore, address, 1, &resident)) && (resident & 1) != 0;
}

void linux_touch(std::uintptr_t address, std::size_t bytes) {
  for (std::size_t at = 0; at < bytes; at += page_bytes()) *reinterpret_cast<volatile char*>(address + at) = 0;
}

HugepageMode linux_hugepage_mode() {
  char text[64];
  if (read_small_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text) <= 0) {
    return HugepageMode::kNever;
  }
  if (strstr(text, "[always]") != nullptr) return HugepageMode::kAlways;
  return strstr(text, "[madvise]") != nullptr ? HugepageMode::kMadvise : HugepageMode::kNever;
}

void linux_yield() {
  const ErrnoGuard guard;  // a filter may refuse it
  syscall(SYS_sched_yield);
}

constexpr Calls kLinux = {linux_map,         linux_decommit,    linux_commit,      linux_seal,          linux_purge,
                          linux_unmap,       linux_move_pages,  linux_resize,      linux_name,          linux_now_ms,
                          linux_node,        linux_prefer_node, linux_map_hugetlb, linux_purge_lazily,  linux_advise,
                          linux_is_resident, linux_touch,       thread_cpu_ns,     linux_hugepage_mode, linux_yield};

}  // namespace

constinit Calls calls = kLinux;

const Calls& linux_calls() { return kLinux; }

std::size_t page_bytes() {
  static constinit std::size_t bytes = 0;
  if (bytes == 0) bytes = getauxval(AT_PAGESZ);
  return bytes;
}

}  // namespace brimful::os
