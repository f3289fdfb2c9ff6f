// SPDX-License-Identifier: MIT
//
// os/stream_list.h.
#include "os/stream_list.h"

#include "os/thread.h"

// Weak: other C libraries have none of them.
extern "C" {
__attribute__((weak)) void _IO_list_lock();
__attribute__((weak)) void _IO_list_unlock();
__attribute__((weak)) void _IO_list_resetlock();
}

namespace brimful::os {

bool lock_stream_list() {
  if (&_IO_list_lock == nullptr || &_IO_list_unlock == nullptr || &_IO_list_resetlock == nullptr) return false;
  // By this fork() decides, too. Of a process with one thread it leaves the lock alone, in the child as well.
  if (is_single_threaded()) return false;
  _IO_list_lock();
  return true;
}

void unlock_stream_list() { _IO_list_unlock(); }

void reset_stream_list() { _IO_list_resetlock(); }

}  // namespace brimful::os
