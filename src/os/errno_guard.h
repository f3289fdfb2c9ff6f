// SPDX-License-Identifier: MIT
//
// Restores errno at the end of a scope: allocation calls that succeed, and free() always, leave it as it was.
#pragma once

#include <errno.h>

namespace brimful::os {

class ErrnoGuard {
 public:
  ErrnoGuard() : saved_(errno) {}
  ~ErrnoGuard() { errno = saved_; }
  ErrnoGuard(const ErrnoGuard&) = delete;
  ErrnoGuard& operator=(const ErrnoGuard&) = delete;

 private:
  int saved_;
};

}  // namespace brimful::os
