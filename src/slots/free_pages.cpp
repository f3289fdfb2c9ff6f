// SPDX-License-Identifier: MIT
//
// Free pages inside live slabs go back to the system, too. No list runs through free objects, so a page that only holds
// free ones holds nothing: it can be dropped, and comes back as zeros when malloc offers its objects again.
//
// Which bits may be trusted depends on where the slab is:
//
//   in a queue or in the central index    all three words: objects are handed out of a current slab only, and it takes the
//                                         list's lock to make it one. So anybody who holds that lock may purge
//   current                               the freed word, less what is offered, which malloc may take at any moment; and
//                                         only by a thread that holds the lock and was seen to run in the context after
//                                         taking it: a malloc that had begun to offer before was aborted, and one that begins
//                                         later finds the lock taken
//
// A bounded number at a time, when a slab has been left alone for a while, and again only when a page's worth of objects
// has been freed since. malloc_trim() waits for nothing and leaves out nothing whose lock is free.
#include <atomic>

#include "config/options.h"
#include "os/calls.h"
#include "os/clock.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

// Of each class's index: slabs purged, and slabs looked at, while its lock is held.
constexpr int kCentralSlabsAtATime = 128;
constexpr int kCentralLooks = 1024;
// Of each context that nobody looks after while it does not run.
constexpr int kIdleSlabsAtATime = 512;
// A partial slab is looked at when it has waited for two looks, then at every eighth.
constexpr unsigned kWaitLooks = 2;
constexpr unsigned kLookPeriod = 8;
// The slab in use of a class whose objects hold pages is looked at each time, of others when it has been at rest.
constexpr std::uint32_t kPageClassBytes = 2048;
constexpr unsigned kRestPeriod = 16;
constexpr std::uint64_t kCentralEveryMs = 250;
constinit std::atomic<std::uint64_t> next_central_ms{0};

void purge_current(ClassQueue& queue, bool at_once) {
  Slab* slab = queue.current;
  if (slab == nullptr || !has_free(slab)) return;
  // Four bits each.
  const unsigned scan = queue.scan & 0xF;
  const unsigned looks = scan == (slab->rest & 0xFU) ? ((slab->rest >> 4) + 1U) % kRestPeriod : 0;
  slab->rest = static_cast<std::uint8_t>(looks << 4 | scan);
  const bool is_time = slab->shape().bytes >= kPageClassBytes || looks == kWaitLooks;
  if (at_once || is_time) purge_slab(slab, InUse::kYes);
}

// Of at most `budget` partial slabs of any context, whose lock is held. Returns how many; `budget`: there may be more.
int purge_partial_slabs(Context* context, Look look, int budget) {
  int purged = 0;
  for (ClassQueue& queue : context->queues) {
    for (Slab* slab = queue.partial.front(); slab != nullptr; slab = slab->next) {
      if (look == Look::kNext) ++slab->idle_ticks;
      if (purged == budget) {
        if (look == Look::kNext) continue;  // the others have waited, too
        return purged;
      }
      const bool is_time = look == Look::kAll || slab->idle_ticks % kLookPeriod == kWaitLooks + 1;
      if (!is_time || !has_news(slab)) continue;
      purge_slab(slab, InUse::kNo);
      ++purged;
    }
  }
  return purged;
}

// One look, or what the last one has left over.
void look_at_partial_slabs(Context* context, int budget) {
  const Look look = context->has_slabs_left_over() ? Look::kSame : Look::kNext;
  const bool is_more = purge_partial_slabs(context, look, budget) == budget;
  context->is_sweeping.store(is_more, std::memory_order_relaxed);  // relaxed: our lock orders it
}

// The slabs in use of the running context, whose lock is held, unless this thread has left it.
void purge_currents(Context* context, bool at_once) {
  std::uint64_t nothing = 0;
  if (arch::brimful_seq_or(context, &nothing, 0) != arch::Outcome::kDone) return;
  for (ClassQueue& queue : context->queues) purge_current(queue, at_once);
}

}  // namespace

void purge_free_pages(Context* context, int budget) {
  if (!context->has_slabs_left_over()) purge_currents(context, false);
  look_at_partial_slabs(context, budget);
}

int Central::purge_free_pages(int budget, Look look) {
  if (!lock.try_lock()) return 0;
  int purged = 0;
  int looks = look == Look::kNext ? kCentralLooks : INT32_MAX;
  slabs_.rotate([&](Slab* slab) {
    if (purged == budget || looks-- == 0) return false;
    if (look != Look::kAll && slab->idle_ticks < kWaitLooks) {
      if (look != Look::kSame) ++slab->idle_ticks;
    } else if (has_news(slab)) {
      purge_slab(slab, InUse::kNo);
      ++purged;
    }
    return true;
  });
  lock.unlock();
  return purged;
}

void purge_idle_pages(std::uint64_t now_ms, std::uint64_t most_ns) {
  if (config::options.purge_delay_ms < 0) return;
  // relaxed: two threads may both look; the locks sort them
  if (now_ms < next_central_ms.load(std::memory_order_relaxed)) return;
  next_central_ms.store(now_ms + kCentralEveryMs, std::memory_order_relaxed);  // relaxed: as above
  const std::uint64_t began_ns = most_ns != 0 ? os::thread_cpu_ns() : 0;
  for (Central& index : central) {
    int purged = index.purge_free_pages(kCentralSlabsAtATime, most_ns != 0 ? Look::kEach : Look::kNext);
    // The lock is let go between slices: a malloc may wait for it.
    while (purged == kCentralSlabsAtATime && most_ns != 0 && os::thread_cpu_ns() - began_ns < most_ns) {
      purged = index.purge_free_pages(kCentralSlabsAtATime, Look::kSame);
    }
  }
  purge_heaps(false);
  // Most contexts are closed when they are idle, so that what they had lies in the index. The running one looks itself.
  const Context* own = current_context();
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    if (context == own || is_closable(context) || !context->lock.try_lock()) continue;
    look_at_partial_slabs(context, kIdleSlabsAtATime);
    context->lock.unlock();
  }
}

int purge_all_pages() {
  int purged = purge_heaps(true);
  Context* own = current_context();
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    if (!context->lock.try_lock()) continue;
    drain_inbox(context);
    purged += purge_partial_slabs(context, Look::kAll, INT32_MAX);
    if (context == own) purge_currents(context, true);
    context->lock.unlock();
  }
  for (Central& index : central) {
    // The lock is let go between slices: a malloc may wait for it.
    for (int more = kCentralSlabsAtATime; more == kCentralSlabsAtATime; purged += more) {
      more = index.purge_free_pages(kCentralSlabsAtATime, Look::kAll);
    }
  }
  return purged;
}

}  // namespace brimful::slots
