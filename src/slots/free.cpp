// SPDX-License-Identifier: MIT
//
// Frees that leave the fast path: slabs of another context, of nobody, and slabs that become empty.
//
// A free of another context's object is remembered in a pending entry, 64 objects to an entry, and told to the owner by
// ONE fetch_or on the group's remote mask when the entry is needed for another group, holds enough bytes, or time has
// passed. A second free of the same object is found by these looks: the slab's own words (the owner freed it), the remote
// mask (told before), the entry's own mask, and the old value of the fetch_or; and once more at the words when bits leave
// an entry or a remote mask (check_collected), for frees that raced.
#include <bit>

#include "config/options.h"
#include "meta/misuse.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

constexpr int kAttempts = 8;
// An entry is told when it holds this many bytes: idle contexts keep at most 64 KiB of others' memory.
constexpr unsigned kPendingBytes = 4096;

std::uint64_t key_of(Slab* slab, unsigned group) { return reinterpret_cast<std::uint64_t>(slab) | group; }
Slab* slab_of(std::uint64_t key) { return reinterpret_cast<Slab*>(key & ~std::uint64_t{63}); }
unsigned group_of(std::uint64_t key) { return static_cast<unsigned>(key & 63); }

PendingEntry& entry_for(Context* context, std::uint64_t key) {
  const std::uint64_t hash = ((key >> 6) + (key & 63)) * 0x9E3779B97F4A7C15U;
  return context->pending[hash >> 60];
}
static_assert(kPendingEntries == 16);

// The first free of a slab that nobody owns takes it back for the context that let it go.
void adopt(Slab* slab, Context* context) {
  std::uint32_t expected = kOwnerDetached;
  // pairs with: detach_full() (the words as we left them)
  if (!slab->owner.compare_exchange_strong(expected, context->id | kOwnerHasRemote, std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {  // relaxed: another has it
    return;
  }
  context->events.count(Event::kAdopt);
  if (context->lock.try_lock()) {
    enqueue(context, slab);
    context->lock.unlock();
    return;
  }
  set_listed(slab, Listed::kInbox);
  Slab* head = context->inbox.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  do {
    slab->next = head;
    // pairs with: drain_inbox() (the link)
  } while (!context->inbox.compare_exchange_weak(head, slab, std::memory_order_release,
                                                 std::memory_order_relaxed));  // relaxed: tried again
}

// Tells the owner and, if that emptied the slab, releases it. The slab can't vanish before our bits are set, and it
// can't vanish after that while we hold the lock of the list it is in; without that lock it is not touched again.
bool tell_under_lock(Slab* slab, std::uint32_t owner, unsigned group, std::uint64_t mask, std::uint64_t* before) {
  if (owner == kOwnerCentral) return central[slab->size_class].tell(slab, group, mask, before);
  Context* context = owner < kFirstSpecialOwner ? context_of(owner) : nullptr;
  if (context == nullptr || !context->lock.try_lock()) return false;
  bool told = false;
  bool release = false;
  // relaxed: a slab in a context's queue changes its owner under the context's lock only
  if (owner_id(slab->owner.load(std::memory_order_relaxed)) == owner && listed(slab) == Listed::kQueue) {
    // pairs with: collect_remote() (the objects' last use)
    *before = slab->remote(group).fetch_or(mask, std::memory_order_acq_rel);
    told = true;
    release = (*before & mask) == 0 && is_all_free(slab);
    if (release) {
      context->queues[slab->size_class].partial.remove(slab);
      set_listed(slab, Listed::kNowhere);
    }
  }
  context->lock.unlock();
  if (release) release_slab(slab);
  return told;
}

}  // namespace

void tell_owner(Slab* slab, unsigned group, std::uint64_t mask) {
  count(Event::kTell);
  const auto bits = static_cast<unsigned>(std::popcount(mask));
  // relaxed: a count that only decides when to publish
  const std::uint64_t told = slab->remote_count().fetch_add(bits, std::memory_order_relaxed) + bits;
  const bool worth_publishing = told * 4 >= slab->count;
  // pairs with: detach_full(), Central::add()
  std::uint32_t owner = owner_id(slab->owner.load(std::memory_order_acquire));
  if (owner == kOwnerDetached && worth_publishing) {
    publish(slab);
    owner = owner_id(slab->owner.load(std::memory_order_acquire));  // pairs with: as above
  }
  // While an object's free is pending its slab can't be given back, unless its owner freed the object, too.
  if (BRIMFUL_UNLIKELY(owner == kOwnerReleased)) report_twice(slab, group, mask);
  check_collected(slab, group, mask);
  std::uint64_t before = 0;
  if ((free_bits(slab, group) | mask) == kAllFree && tell_under_lock(slab, owner, group, mask, &before)) {
    mark_remote(slab);
    if ((before & mask) != 0) report_twice(slab, group, before & mask);
    return;
  }
  // pairs with: detach_full() (either it sees our bits, or we see the slab detached), collect_remote()
  before = slab->remote(group).fetch_or(mask, std::memory_order_seq_cst);
  if ((before & mask) != 0) report_twice(slab, group, before & mask);
  // The slab may be gone by now, its header another slab's; a mark, and publishing a detached slab, are legal on any.
  mark_remote(slab);
  // pairs with: detach_full()
  if (worth_publishing && slab->owner.load(std::memory_order_seq_cst) == kOwnerDetached) {
    publish(slab);
  }
}

void flush_pending(Context* context) {
  for (PendingEntry& entry : context->pending) {
    // relaxed: a stale key or mask is refused by the sequence, or found at the next flush
    const std::uint64_t key = std::atomic_ref(entry.key).load(std::memory_order_relaxed);
    if (std::atomic_ref(entry.mask).load(std::memory_order_relaxed) == 0) continue;  // relaxed: as above
    const arch::Answer taken = arch::brimful_seq_pending_take(context, &entry, key);
    if (taken.outcome == arch::Outcome::kDone && taken.value != 0) {
      tell_owner(slab_of(key), group_of(key), taken.value);
    }
  }
}

void free_remote(Slab* slab, std::uint64_t index) {
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  if ((free_bits(slab, group) & bit) != 0) report_twice(slab, group, bit);
  const std::uint64_t key = key_of(slab, group);
  for (int attempt = 0; attempt < kAttempts && !config::is_hardened(); ++attempt) {
    Context* context = current_context();
    if (context == nullptr) break;
    PendingEntry& entry = entry_for(context, key);
    const arch::Answer added = arch::brimful_seq_pending_add(context, &entry, key, bit);
    if (added.outcome == arch::Outcome::kDone) {
      context->events.count(Event::kPending);
      if (static_cast<unsigned>(std::popcount(added.value)) * slab->shape().bytes < kPendingBytes &&
          added.value != kAllFree) {
        return;
      }
      const arch::Answer full = arch::brimful_seq_pending_take(context, &entry, key);
      if (full.outcome == arch::Outcome::kDone && full.value != 0) tell_owner(slab, group, full.value);
      return;
    }
    if (added.outcome == arch::Outcome::kAlreadySet) report_twice(slab, group, bit);
    if (added.outcome != arch::Outcome::kRefused) continue;
    // The entry holds another group: tell that one, then claim the entry.
    // relaxed: a stale key is refused by the sequence
    const std::uint64_t other = std::atomic_ref(entry.key).load(std::memory_order_relaxed);
    const arch::Answer evicted = arch::brimful_seq_pending_take(context, &entry, other);
    if (evicted.outcome == arch::Outcome::kDone && evicted.value != 0) {
      context->events.count(Event::kEvict);
      tell_owner(slab_of(other), group_of(other), evicted.value);
    }
    arch::brimful_seq_pending_claim(context, &entry, key);
  }
  tell_owner(slab, group, bit);
}

void free_nested(Slab* slab, std::uint64_t index) {
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  if ((free_bits(slab, group) & bit) != 0) report_twice(slab, group, bit);
  count(Event::kTell);
  slab->remote_count().fetch_add(1, std::memory_order_relaxed);  // relaxed: a count that only decides when to publish
  // pairs with: collect_remote() (the object's last use)
  const std::uint64_t before = slab->remote(group).fetch_or(bit, std::memory_order_seq_cst);
  if ((before & bit) != 0) report_twice(slab, group, bit);
  mark_remote(slab);
}

void free(Slab* slab, std::uint64_t index) {
  count(Event::kSlowFree);
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint32_t owner = slab->owner.load(std::memory_order_acquire);  // pairs with: detach_full()
    const std::uint32_t id = current_id();
    if (id == arch::kNoContext) break;
    if (owner == id) {
      switch (arch::brimful_seq_free(slab, index)) {
        case arch::Outcome::kAlreadySet:
          meta::report_double_free("free", *slab, index);
        case arch::Outcome::kGroupFree:
          // relaxed: lossy by design, as in the fast path
          if (slab->countdown.fetch_sub(1, std::memory_order_relaxed) <= 1) on_countdown(slab);
          return;
        case arch::Outcome::kDone:
          return;
        default:
          continue;
      }
    }
    if (owner == (id | kOwnerHasRemote)) {
      Context* context = current_context();
      if (context == nullptr || !context->lock.try_lock()) break;
      // relaxed: a slab of this context changes its owner under this lock only
      const bool ours = owner_id(slab->owner.load(std::memory_order_relaxed)) == context->id;
      if (ours) collect_all(slab, context);
      context->lock.unlock();
      continue;
    }
    if (owner != kOwnerDetached || slab->last_owner != id) break;
    Context* context = current_context();
    if (context != nullptr && context->id == id) adopt(slab, context);
  }
  free_remote(slab, index);
}

void on_countdown(Slab* slab) {
  tick();
  Context* context = current_context();
  // relaxed: decided again under the lock
  if (context == nullptr || owner_id(slab->owner.load(std::memory_order_relaxed)) != context->id) return;
  if (!context->lock.try_lock()) return;
  bool release = false;
  // relaxed: a slab in this context's queue or slot changes its owner under this lock only
  if (owner_id(slab->owner.load(std::memory_order_relaxed)) == context->id) {
    switch (listed(slab)) {
      case Listed::kQueue:
        release = is_all_free(slab);
        if (release) {
          context->queues[slab->size_class].partial.remove(slab);
          set_listed(slab, Listed::kNowhere);
        } else {
          slab->countdown.store(busy_groups(slab), std::memory_order_relaxed);  // relaxed: times a later look
        }
        break;
      case Listed::kCurrent:
        slab->countdown.store(kHeartbeat, std::memory_order_relaxed);  // relaxed: as above
        break;
      default:
        drain_inbox(context);
    }
  }
  context->lock.unlock();
  if (release) release_slab(slab);
}

}  // namespace brimful::slots
