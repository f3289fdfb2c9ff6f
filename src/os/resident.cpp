// SPDX-License-Identifier: MIT
//
// os/resident.h.
#include "os/resident.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/calls.h"
#include "os/errno_guard.h"

namespace brimful::os {

ResidentPages::ResidentPages(std::uint64_t start, std::uint64_t end) : start_(start), end_(end) {}

void ResidentPages::look_at(std::uint64_t page) {
  const ErrnoGuard guard;
  const std::uint64_t most = kPages * page_bytes();
  seen_from_ = page;
  seen_to_ = end_ - page < most ? end_ : page + most;
  // Unmapped meanwhile, or a sandbox without mincore: nothing is known to be there.
  if (syscall(SYS_mincore, seen_from_, seen_to_ - seen_from_, pages_) != 0) memset(pages_, 0, sizeof pages_);
}

std::uint64_t ResidentPages::bytes(std::uint64_t from, std::uint64_t to) {
  const std::uint64_t page_size = page_bytes();
  std::uint64_t resident = 0;
  while (from < to) {
    const std::uint64_t page = from & ~(page_size - 1);
    if (page < seen_from_ || page >= seen_to_) look_at(page);
    const std::uint64_t end = page + page_size < to ? page + page_size : to;
    if ((pages_[(page - seen_from_) / page_size] & 1) != 0) resident += end - from;
    from = end;
  }
  return resident;
}

}  // namespace brimful::os
