// SPDX-License-Identifier: MIT
//
// fork().
//
// A child has one thread and a copy of everything, at whatever moment the others were. So the forking thread takes every
// lock first (then no list is half-changed; group words change in single stores and are always whole), and the child
// forgets waiters, registers for barriers again and marks the contexts of the threads it lost: their slabs are taken over
// one context at a time, by later slow paths, because most children exec at once.
// vfork: the child runs on its parent's memory and must only exec or exit, as POSIX says.
//
// A signal handler may fork while its thread is in fork(). Handlers see one of three states, and no other:
//
//   no fork of this thread     before and after; the handler's fork is a fork like any
//   some locks are held        the thread waits for the next one. The handler's fork goes on taking them, from where its
//                              thread stands, and leaves them taken: the interrupted one then finds all of them its own
//   all locks are held         the handler's fork finds nothing left to take, and gives nothing back
//
// because signals are held back while one becomes the other (Change), and only then: not while the thread waits, for a
// handler may be what it waits for (a collector that stops the world), and not while the C library forks. Only the
// outermost fork gives the locks back: by unlocking them, or, in its child, by declaring them free. The child of a
// handler's fork keeps them, for the fork it goes on with.
//
// docs/design/0024-fork-and-libc-locks.md: the order with the C library's locks, and what was rejected.
#include <pthread.h>

#include "os/cpus.h"
#include "os/errno_guard.h"
#include "os/stream_list.h"
#include "os/thread.h"
#include "pages/heap.h"
#include "slots/central.h"
#include "slots/guards.h"
#include "slots/samples.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

// Of the calling thread. Written inside a Change.
struct Forks {
  sync::Futex* slept_on;  // the lock that is not ours yet and was waited for; nullptr: none
  std::uint32_t nested;   // forks under way that hold the locks or take them; above 1: by handlers
  std::uint32_t held;     // how many locks, from the first of for_each_lock()
  bool is_changing;
  bool holds_stream_list;
};
BRIMFUL_TLS Forks forks = {};

// The contexts whose locks a fork holds: this one and those behind it. Who holds the first of all locks may write it.
constinit Context* first_context = nullptr;

// No handler of this thread runs inside. One that a fault of these lines brings up, and forks, can take no lock: it finds
// is_changing set.
class Change {
 public:
  Change() { set(true); }
  ~Change() { set(false); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  static void set(bool value) {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a fault's handler on this thread
    forks.is_changing = value;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: as above
  }
  const os::SignalsHeldBack held_back_;
};

// Every lock there is, in the order in which locks are taken, until visit(lock) is false. Heaps and contexts can't be
// added once their locks are visited: that takes the first and the last lock.
template <class Visit>
bool for_each_lock(Visit visit) {
  if (!visit(heap_list_lock())) return false;
  for (std::uint32_t number = 1; number <= heaps_made(); ++number) {
    if (!visit(heap_of_number(number)->lock)) return false;
  }
  for (Context* c = first_context; c != nullptr; c = c->next_all) {
    if (!visit(c->lock)) return false;
  }
  for (Central& index : central) {
    if (!visit(index.lock)) return false;
  }
  if (!visit(sample_lock)) return false;
  if (!visit(guard_lock)) return false;
  return visit(pages::heap.lock);
}

// Gives back the locks that are held, by give(lock).
template <class Give>
void give_locks(Give give) {
  std::uint32_t left = forks.held;
  for_each_lock([&](auto& lock) {
    if (left == 0) return false;
    --left;
    give(lock);
    return true;
  });
  forks.held = 0;
}

void unlock_all() {
  give_locks([](auto& lock) { lock.unlock(); });
}

// Takes the locks that are left, as far as they are free. true: all are held.
bool take_free_locks() {
  for (;;) {
    std::uint32_t place = 0;
    const bool all = for_each_lock([&](auto& lock) {
      if (place++ < forks.held) return true;
      sync::Futex* busy = lock.try_lock_for_fork(forks.slept_on);
      if (busy != nullptr) {
        forks.slept_on = busy;
        return false;
      }
      forks.slept_on = nullptr;
      if (forks.held++ == 0) first_context = all_contexts();
      return true;
    });
    if (!all) return false;
    if (all_contexts() == first_context) return true;
    unlock_all();  // a context was made meanwhile, and its lock is not ours
  }
}

void before_fork() {
  if (forks.is_changing) return;
  const os::ErrnoGuard guard;
  const bool is_outermost = forks.nested == 0;
  // A handler that interrupted this thread's own slow path and forks can't wait for that path's locks.
  if (is_outermost && thread_state.depth != 0) return;
  bool has_stream_list = false;
  if (is_outermost) {
    {
      const SlowScope scope;
      prepare();
    }
    has_stream_list = os::lock_stream_list();
  }
  bool all = false;
  {
    const Change change;
    ++forks.nested;
    if (is_outermost) {
      forks.holds_stream_list = has_stream_list;
      ++thread_state.depth;  // a handler that allocates while we hold the locks is nested
    }
    all = take_free_locks();
  }
  while (!all) {
    // A handler's fork may take the lock meanwhile, before or after this look.
    sync::Futex* busy = forks.slept_on;
    if (busy != nullptr) busy->wait_for_a_while();
    const Change change;
    all = take_free_locks();
  }
}

void after_fork_in_parent() {
  if (forks.is_changing || forks.nested == 0) return;
  const os::ErrnoGuard guard;
  bool has_stream_list = false;
  {
    const Change change;
    if (--forks.nested != 0) return;
    unlock_all();
    has_stream_list = forks.holds_stream_list;
    forks.holds_stream_list = false;
    --thread_state.depth;
  }
  if (has_stream_list) os::unlock_stream_list();
}

void after_fork_in_child() {
  const os::ErrnoGuard guard;
  if (is_per_cpu() || has_barrier()) os::register_rseq_barrier();
  if (forks.is_changing || forks.nested == 0) return;
  const Change change;
  orphan_other_threads();
  forget_other_users();
  if (forks.holds_stream_list) os::reset_stream_list();  // as libc has done in any child
  forks.holds_stream_list = false;
  if (--forks.nested != 0) return;
  give_locks([](auto& lock) { lock.reset(); });
  --thread_state.depth;
}

// Before the constructors of the program: handlers registered first run last before a fork, and first after it.
__attribute__((constructor(101))) void register_fork_handlers() {
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

}  // namespace

}  // namespace brimful::slots
