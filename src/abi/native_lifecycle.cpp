// SPDX-License-Identifier: MIT
//
// What ties the allocator to the life of the process: fork.
//
// A child has one thread and a copy of everything, at whatever moment the others were. So the forking thread takes every
// lock first (then no list is half-changed; group words change in single stores and are always whole), and the child
// forgets waiters, registers for barriers again and marks the contexts of the threads it lost.
// vfork: the child runs on its parent's memory and must only exec or exit, as POSIX says.
#include <pthread.h>

#include "base/compiler.h"
#include "os/errno_guard.h"
#include "slots/front_end.h"
#include "slots/thread.h"

namespace brimful::abi {
namespace {

// A handler that interrupted this thread's own slow path and forks can't wait for that path's locks.
bool may_lock() { return slots::thread_state.depth == 0; }

BRIMFUL_TLS bool holds_locks = false;

void before_fork() {
  const os::ErrnoGuard guard;
  holds_locks = may_lock();
  if (!holds_locks) return;
  slots::prepare();
  slots::lock_all();
}

void after_fork_in_parent() {
  const os::ErrnoGuard guard;
  if (holds_locks) slots::unlock_all();
  holds_locks = false;
}

void after_fork_in_child() {
  const os::ErrnoGuard guard;
  if (holds_locks) slots::after_fork_in_child();
  holds_locks = false;
}

// Before the constructors of the program: handlers registered first run last before a fork, and first after it.
__attribute__((constructor(101))) void register_fork_handlers() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace
}  // namespace brimful::abi
