// SPDX-License-Identifier: MIT
//
// os/hugetlb.h on Linux.
#include "os/hugetlb.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/errno_guard.h"

namespace brimful::os {

bool linux_map_hugetlb(std::uintptr_t address, std::size_t bytes, unsigned page_shift) {
  const ErrnoGuard guard;
  const unsigned size_flag = page_shift << 26;  // MAP_HUGE_SHIFT
  // Without MAP_NORESERVE: the pool's pages are this mapping's from now on.
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | static_cast<int>(size_flag);
  const long pages = syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (pages == -1) return false;
  if (syscall(SYS_mremap, pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) != -1) return true;
  syscall(SYS_munmap, pages, bytes);
  return false;
}

}  // namespace brimful::os
