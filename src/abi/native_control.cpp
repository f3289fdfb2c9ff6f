// SPDX-License-Identifier: MIT
//
// brimful_get() and brimful_set() of include/brimful/brimful.h.
#include <errno.h>

#include "brimful/brimful.h"
#include "control/names.h"
#include "os/errno_guard.h"

extern "C" {

int brimful_get(const char* name, void* value, std::size_t* size) {
  const brimful::os::ErrnoGuard guard;
  brimful::control::Name found = {};
  if (!brimful::control::find(name, found)) return ENOENT;
  return size != nullptr ? brimful::control::get(found, value, size) : EINVAL;
}

int brimful_set(const char* name, const void* value, std::size_t size) {
  brimful::control::Name found = {};
  if (!brimful::control::find(name, found)) return ENOENT;
  const int before = errno;
  const int fault = brimful::control::set(found, value, size);
  if (fault != EFAULT) errno = before;
  return fault;
}

}  // extern "C"
