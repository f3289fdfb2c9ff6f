// SPDX-License-Identifier: MIT
//
// Frees that leave the fast path: slabs of another context, of nobody, and slabs that become empty.
//
// A free of another context's object goes into a magazine (slots/magazine.h), and from there to the owner, all objects of
// a group by ONE fetch_or on its remote mask. A second free of the same object is found by these looks: the slab's own
// words (the owner freed it), the remote mask (told before), the magazine, and the old value of the fetch_or; and once
// more at the words when bits leave a magazine or a remote mask (without_twice), for frees that raced.
#include "meta/misuse.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

constexpr int kAttempts = 8;
// Slabs of more groups than these are counted once in so many frees to a group.
constexpr unsigned kGroupsAlwaysCounted = 4;
constexpr unsigned kFreesPerCount = 16;
// Objects that go into magazines until one takes the slow path all the same, for a look at the clock.
constexpr std::int32_t kObjectsPerLook = 128;

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

// Whether a detached slab has enough free objects for another context to make something of it: a quarter. The slab may be
// gone: its words are atomic, its other members are not, so `groups` is the caller's.
bool is_worth_publishing(Slab* slab, unsigned groups) {
  unsigned free = 0;
  for (unsigned g = 0; g < groups; ++g) {
    // pairs with: tell_owner() (of two that told different groups, one sees both)
    free += count_ones(owner_bits(slab, g) | slab->remote(g, groups).load(std::memory_order_seq_cst));
  }
  return free * 4 >= groups * kGroupObjects;
}

// The mask makes the group all free, so perhaps the slab: then somebody must be there to release it.
bool tell_last_of_group(Slab* slab, unsigned group, std::uint64_t mask, std::uint64_t* before) {
  // pairs with: detach_full(), Central::add()
  std::uint32_t owner = owner_id(slab->owner.load(std::memory_order_acquire));
  if (owner == kOwnerDetached && is_worth_publishing(slab, slab->groups)) {
    publish(slab);
    owner = owner_id(slab->owner.load(std::memory_order_acquire));  // pairs with: as above
  }
  return tell_under_lock(slab, owner, group, mask, before);
}

// Others have freed objects of this slab of ours: takes them over, or takes down the mark that makes each free slow.
void look_for_remote(Slab* slab) {
  Context* context = current_context();
  if (context == nullptr || !context->lock.try_lock()) return;
  // relaxed: a slab of this context changes its owner under this lock only
  if (owner_id(slab->owner.load(std::memory_order_relaxed)) == context->id) collect_all(slab, context);
  context->lock.unlock();
}

// Frees object `index` of a slab that the running context owns, with or without the mark. kGroupFree: and the slab's
// countdown has run out. Takes no lock.
arch::Outcome free_own(Slab* slab, std::uint64_t index) {
  const std::uint32_t mark =
      slab->owner.load(std::memory_order_acquire) & kOwnerHasRemote;  // pairs with: detach_full(); verified below
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  // pairs with: tell_owner() (the object's last use)
  const bool is_told = mark != 0 && (slab->remote(group).load(std::memory_order_acquire) & bit) != 0;
  const arch::Outcome outcome =
      BRIMFUL_UNLIKELY(is_told) ? arch::Outcome::kAlreadySet : arch::brimful_seq_free(slab, index, mark);
  if (BRIMFUL_UNLIKELY(outcome == arch::Outcome::kAlreadySet)) {
    report_twice(slab, group, bit);
    return arch::Outcome::kDone;
  }
  // relaxed: lossy by design, as in the fast path
  if (outcome == arch::Outcome::kGroupFree && slab->countdown.fetch_sub(1, std::memory_order_relaxed) > 1) {
    return arch::Outcome::kDone;
  }
  return outcome;
}

}  // namespace

void tell_owner(Slab* slab, unsigned group, std::uint64_t mask) {
  count(Event::kTell);
  const unsigned groups = slab->groups;
  // While an object lies in a magazine its slab can't be given back, unless its owner freed the object, too.
  // pairs with: release_slab()
  if (BRIMFUL_UNLIKELY(slab->owner.load(std::memory_order_acquire) == kOwnerReleased)) {
    return report_twice(slab, group, mask);
  }
  const std::uint64_t own = owner_bits(slab, group);
  if (BRIMFUL_UNLIKELY((own & mask) != 0)) {
    report_twice(slab, group, own & mask);
    mask &= ~own;
    if (mask == 0) return;
  }
  std::uint64_t before =
      slab->remote(group).load(std::memory_order_relaxed);  // relaxed: decides where to look, no more
  if ((own | before | mask) == kAllFree && tell_last_of_group(slab, group, mask, &before)) {
    mark_remote(slab);
    if ((before & mask) != 0) report_twice(slab, group, before & mask);
    return;
  }
  // pairs with: detach_full() (either it sees our bits, or we see the slab detached), collect_remote()
  before = slab->remote(group).fetch_or(mask, std::memory_order_seq_cst);
  if ((before & mask) != 0) report_twice(slab, group, before & mask);
  // The slab may be gone by now, its header another slab's; a mark, and publishing a detached slab, are legal on any.
  mark_remote(slab);
  const unsigned was = count_ones(own | before);
  const bool is_time =
      groups <= kGroupsAlwaysCounted || was / kFreesPerCount != count_ones(own | before | mask) / kFreesPerCount;
  // pairs with: detach_full()
  if (is_time && slab->owner.load(std::memory_order_seq_cst) == kOwnerDetached && is_worth_publishing(slab, groups)) {
    publish(slab);
  }
}

void free_remote(Slab* slab, std::uint64_t index) {
  if (keep_with_room(slab, index)) return;
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  if ((free_bits(slab, group) & bit) != 0) return report_twice(slab, group, bit);
  tell_owner(slab, group, bit);
}

void free_nested(Slab* slab, std::uint64_t index) {
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  if ((free_bits(slab, group) & bit) != 0) return report_twice(slab, group, bit);
  count(Event::kTell);
  // pairs with: collect_remote() (the object's last use)
  const std::uint64_t before = slab->remote(group).fetch_or(bit, std::memory_order_seq_cst);
  if ((before & bit) != 0) report_twice(slab, group, bit);
  mark_remote(slab);
}

bool free_lightly(Slab* slab, std::uint64_t index) {
  const std::uint32_t id = current_id();
  Context* context = context_of(id);
  if (context == nullptr || context->until_look < 0) return false;
  // pairs with: detach_full()
  if (owner_id(slab->owner.load(std::memory_order_acquire)) != id) return keep(context, slab, index);
  const arch::Outcome outcome = free_own(slab, index);
  if (outcome == arch::Outcome::kGroupFree) arch::brimful_free_event(slab);
  return outcome == arch::Outcome::kDone || outcome == arch::Outcome::kGroupFree;
}

void free(Slab* slab, std::uint64_t index) {
  count(Event::kSlowFree);
  if (Context* context = current_context()) context->until_look = kObjectsPerLook;
  tick();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const std::uint32_t owner = slab->owner.load(std::memory_order_acquire);  // pairs with: detach_full()
    const std::uint32_t id = current_id();
    if (id == arch::kNoContext) break;
    if (owner_id(owner) == id) {
      if ((owner & kOwnerHasRemote) != 0) look_for_remote(slab);
      const arch::Outcome outcome = free_own(slab, index);
      if (outcome == arch::Outcome::kGroupFree) on_countdown(slab);
      if (outcome == arch::Outcome::kDone || outcome == arch::Outcome::kGroupFree) return;
      continue;
    }
    // relaxed: ordered by the owner; adopt() finds out whether the slab is still detached
    if (owner != kOwnerDetached || slab->last_owner.load(std::memory_order_relaxed) != id) break;
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
        // Fewer where looks at the clock are far apart, as tick() has just found.
        slab->countdown.store(context->heartbeat > 4 * kHeartbeat ? context->heartbeat / 4 : kHeartbeat,
                              std::memory_order_relaxed);  // relaxed: as above
        break;
      default:
        drain_inbox(context);
    }
  }
  context->lock.unlock();
  if (release) release_slab(slab);
}

}  // namespace brimful::slots
