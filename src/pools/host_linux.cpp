// SPDX-License-Identifier: MIT
//
// The pools' host on Linux. The one file of src/pools/ that knows an operating system; a member of the archive of its own,
// linked only by programs that name it.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "brimful/pool_host.h"

namespace {

constexpr std::size_t kPageBytes = 4096;

void* get_pages(void* /*context*/, std::size_t bytes) {
  const int kept = errno;
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = kept;
  return pages == MAP_FAILED ? nullptr : pages;
}

void give_pages(void* /*context*/, void* pages, std::size_t bytes) {
  const int kept = errno;
  // munmap fails when the process has too many mappings to split one: then the memory goes and its addresses stay.
  if (munmap(pages, bytes) != 0) madvise(pages, bytes, MADV_DONTNEED);
  errno = kept;
}

void wait(void* /*context*/, std::uint32_t* word, std::uint32_t expected) {
  const int kept = errno;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
  errno = kept;
}

void wake(void* /*context*/, std::uint32_t* word) {
  const int kept = errno;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  errno = kept;
}

std::uint64_t now_ns(void* /*context*/) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

constexpr brimful_pool_host kLinux{
    sizeof(brimful_pool_host), kPageBytes, nullptr, get_pages, give_pages, wait, wake, now_ns};

}  // namespace

extern "C" const brimful_pool_host* brimful_pool_host_linux(void) { return &kLinux; }
