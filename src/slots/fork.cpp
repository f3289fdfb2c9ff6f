// SPDX-License-Identifier: MIT
//
// fork().
//
// A child has one thread and a copy of everything, at whatever moment the others were. So the forking thread takes every
// lock first (then no list is half-changed; group words change in single stores and are always whole), and the child
// forgets waiters, registers for barriers again and marks the contexts of the threads it lost: their slabs are taken over
// one context at a time, by later slow paths, because most children exec at once.
// vfork: the child runs on its parent's memory and must only exec or exit, as POSIX says.
#include <pthread.h>

#include "os/cpus.h"
#include "os/errno_guard.h"
#include "pages/heap.h"
#include "slots/central.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

// The contexts whose locks the forking thread holds: this one and those behind it in the list.
constinit Context* locked_contexts = nullptr;
BRIMFUL_TLS bool holds_locks = false;

void unlock_all() {
  pages::heap.lock.unlock();
  for (Central& index : central) index.lock.unlock();
  for (Context* c = locked_contexts; c != nullptr; c = c->next_all) c->lock.unlock();
  unlock_heaps();
}

void lock_all() {
  for (;;) {
    lock_heaps_for_fork();
    Context* head = all_contexts();
    for (Context* c = head; c != nullptr; c = c->next_all) c->lock.lock_for_fork();
    for (Central& index : central) index.lock.lock_for_fork();
    pages::heap.lock.lock_for_fork();
    locked_contexts = head;
    if (all_contexts() == head) return;
    unlock_all();  // a context was made meanwhile, and its lock is not ours
  }
}

void before_fork() {
  const os::ErrnoGuard guard;
  // A handler that interrupted this thread's own slow path and forks can't wait for that path's locks.
  holds_locks = thread_state.depth == 0;
  if (!holds_locks) return;
  prepare();
  ++thread_state.depth;                                 // a handler that allocates while we hold the locks is nested
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a handler on this thread
  lock_all();
}

void release_fork_scope() {
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a handler on this thread
  --thread_state.depth;
  holds_locks = false;
}

void after_fork_in_parent() {
  const os::ErrnoGuard guard;
  if (!holds_locks) return;
  unlock_all();
  release_fork_scope();
}

void after_fork_in_child() {
  const os::ErrnoGuard guard;
  if (!holds_locks) return;
  orphan_other_threads();
  pages::heap.lock.reset();
  for (Central& index : central) index.lock.reset();
  for (Context* c = all_contexts(); c != nullptr; c = c->next_all) c->lock.reset();
  reset_heaps();
  if (is_per_cpu() || has_barrier()) os::register_rseq_barrier();
  release_fork_scope();
}

// Before the constructors of the program: handlers registered first run last before a fork, and first after it.
__attribute__((constructor(101))) void register_fork_handlers() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

}  // namespace brimful::slots
