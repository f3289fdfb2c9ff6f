// SPDX-License-Identifier: MIT
//
// Taking contexts apart: at thread exit, after a fork that a thread did not survive, and when a context has been idle for
// a second, because nothing that is free may stay with somebody who does not come back for it.
//
// An idle context may be entered by a thread at any moment, so it is first closed from outside: its id is taken away
// (pending sequences refuse), its slots are emptied (malloc misses), its slabs are marked "moving" (free goes the
// remote way), and one membarrier aborts every sequence that read the old state. A second round of the slots follows,
// for a malloc that refilled its slot in between. From there on the words change only through the remote masks, as for
// any slab that nobody owns. Source: membarrier(2), PRIVATE_EXPEDITED_RSEQ.
#include "config/options.h"
#include "os/calls.h"
#include "os/cpus.h"
#include "pages/heap.h"
#include "pages/purger.h"
#include "slots/central.h"
#include "slots/events.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/run_stacks.h"
#include "slots/samples.h"
#include "slots/sampling.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

constexpr std::uint64_t kIdleMs = 1000;
constexpr std::uint64_t kLookEveryMs = 500;
// Contexts closed at a time: two barriers each. With more to do, the next look comes sooner.
constexpr int kMostAtATime = 8;
constexpr std::uint64_t kGoOnMs = 20;
constinit std::atomic<std::uint64_t> next_look_ms{0};
constinit std::atomic<bool> orphans_wait{false};

// Visits every slab of the context's queues and slots. Caller holds its lock.
template <class Visit>
void for_each_slab(Context* context, Visit visit) {
  for (ClassQueue& queue : context->queues) {
    if (queue.current != nullptr) visit(queue.current);
    for (Slab* slab = queue.partial.front(); slab != nullptr; slab = slab->next) visit(slab);
  }
}

// A slab out of its context: gives it back, shares it, or leaves it detached until somebody frees one of its objects.
void rehome(Slab* slab) {
  check_uncollected(slab);
  set_listed(slab, Listed::kNowhere);
  if (is_all_free(slab)) {
    release_slab(slab);
  } else if (has_free(slab)) {
    central[slab->size_class].add(slab);
  } else {
    // Nobody's: its next frees are remote ones.
    slab->last_owner.store(kOwnerMoving, std::memory_order_relaxed);  // relaxed: the store below publishes it
    slab->owner.store(kOwnerDetached, std::memory_order_release);  // pairs with: publish() (the words)
    // pairs with: tell_owner() (either it sees the slab detached, or we see its bits)
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (has_free(slab)) publish(slab);
  }
}

void close_slots(Context* context) {
  for (std::size_t c = 0; c < kClassCount; ++c) {
    drop_offer(context, static_cast<ClassId>(c));
    std::atomic_ref(context->slots[c].word)
        .store(&arch::brimful_zero_word,
               std::memory_order_relaxed);  // relaxed: the barrier orders it
  }
}

}  // namespace

void release_context(Context* context) {
  close_slots(context);
  empty_magazines(context);
  empty_run_stacks(context);
  drain_inbox(context);
  for (ClassQueue& queue : context->queues) {
    if (Slab* slab = queue.current) {
      queue.current = nullptr;
      rehome(slab);
    }
    while (Slab* slab = queue.partial.pop_front()) rehome(slab);
  }
}

namespace {

// Empties a context that no thread should be running in (one that is loses only its speed). Caller holds its
// lock. false: this kernel has no barrier for it (before Linux 5.10); nothing has changed.
bool close_context(Context* context) {
  drain_inbox(context);
  // relaxed: the barrier orders it
  std::atomic_ref(context->active_id).store(arch::kNoContext, std::memory_order_relaxed);
  close_slots(context);
  for_each_slab(context, [](Slab* slab) {
    slab->owner.store(kOwnerMoving, std::memory_order_relaxed);  // relaxed: the barrier orders it
  });
  bool closed = os::rseq_barrier();
  if (closed) {
    // A malloc that had passed its checks may have filled its slot again just before the barrier. From here on nothing
    // fills a slot; so empty them once more, and abort whoever has read the old ones.
    close_slots(context);
    closed = os::rseq_barrier();
  }
  if (closed) {
    count(Event::kCloseContext);
    release_context(context);
    context->active_ms.store(0, std::memory_order_relaxed);  // relaxed: a rough age
  } else {
    for_each_slab(context, [context](Slab* slab) {
      // relaxed: nobody took the slab for another's
      slab->owner.store(context->id | kOwnerHasRemote, std::memory_order_relaxed);
    });
  }
  // pairs with: sequences, which read it in their context
  std::atomic_ref(context->active_id).store(context->id, std::memory_order_release);
  return closed;
}

// A CPU that only frees what others allocated has no slow path that looks at the clock.
bool keeps_something(Context* context) {
  for (std::uint32_t& count : context->counts) {
    if (std::atomic_ref(count).load(std::memory_order_relaxed) != 0) return true;  // relaxed: a hint
  }
  return holds_runs(context);
}

void release_empty_partials(Context* context) {
  for (ClassQueue& queue : context->queues) {
    for (Slab* slab = queue.partial.front(); slab != nullptr;) {
      Slab* next = slab->next;
      if (is_all_free(slab)) {
        queue.partial.remove(slab);
        set_listed(slab, Listed::kNowhere);
        release_slab(slab);
      }
      slab = next;
    }
  }
}

}  // namespace

void orphan_other_threads() {
  for (Context* c = all_contexts(); c != nullptr; c = c->next_all) {
    if (c->taken && c != thread_state.own_context) c->orphaned = true;
  }
  orphans_wait.store(true, std::memory_order_relaxed);  // relaxed: the process has one thread
}

void reclaim_orphans() {
  // relaxed: a hint; the context's own flag is read under the heap lock
  if (BRIMFUL_LIKELY(!orphans_wait.load(std::memory_order_relaxed))) return;
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    {
      const sync::MutexLock guard(pages::heap.lock);
      if (!context->orphaned) continue;
      context->orphaned = false;
    }
    context->lock.lock();
    release_context(context);
    context->lock.unlock();
    recycle_context(context);
    return;
  }
  orphans_wait.store(false, std::memory_order_relaxed);  // relaxed: as above
}

void reclaim_idle(std::uint64_t now_ms) {
  // relaxed: two threads may both look; the contexts' locks sort them
  if (BRIMFUL_LIKELY(now_ms < next_look_ms.load(std::memory_order_relaxed))) return;
  next_look_ms.store(now_ms + kLookEveryMs, std::memory_order_relaxed);  // relaxed: as above
  if (config::cache() == config::Cache::kUnlimited) return;
  const std::uint32_t own_id = current_id();
  int budget = kMostAtATime;
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    const std::uint64_t active = context->active_ms.load(std::memory_order_relaxed);  // relaxed: a rough age
    if (context->id == own_id || !is_closable(context)) continue;
    if (active == 0) {
      if (keeps_something(context))
        context->active_ms.store(now_ms, std::memory_order_relaxed);  // relaxed: a rough age
      continue;
    }
    if (now_ms - active < kIdleMs) continue;
    if (budget-- == 0) {
      next_look_ms.store(now_ms + kGoOnMs, std::memory_order_relaxed);  // relaxed: as above
      return;
    }
    if (!context->lock.try_lock()) continue;
    const bool closed = close_context(context);
    context->lock.unlock();
    if (!closed) return;
  }
}

void reclaim_all() {
  Context* own = current_context();
  if (own != nullptr) flush_magazines(own);
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    if (!context->lock.try_lock()) continue;
    drain_inbox(context);
    release_empty_partials(context);
    if (context == own) {
      release_empty_currents(context, 0);
    } else if (is_closable(context)) {
      close_context(context);
    }
    context->lock.unlock();
  }
  for (Central& index : central) index.release_empty();
  release_sampled();
  reclaim_heaps();
  {
    const sync::MutexLock guard(pages::heap.lock);
    flush_own_runs(UINT64_MAX);
  }
  pages::empty_caches();
}

}  // namespace brimful::slots
