// SPDX-License-Identifier: MIT
//
// slots/central.h.
#include "slots/central.h"

#include <atomic>
#include <bit>

#include "os/calls.h"
#include "slots/events.h"
#include "slots/lives.h"
#include "slots/object_checks.h"
#include "slots/slab.h"

namespace brimful::slots {

BRIMFUL_ZEROS_COLD constinit Central central[kClassCount];

namespace {

// Some index has had a slab. Most programs end before one has: they need not touch the indices, nor lock them.
constinit std::atomic<bool> is_used{false};

}  // namespace

Slab* Central::take(std::uint32_t id) {
  // relaxed: who does not see the first slab yet makes one of its own, as if it had come a moment earlier
  if (!is_used.load(std::memory_order_relaxed)) return nullptr;
  const std::uint32_t node = os::calls.node();
  const sync::MutexLock guard(lock);
  Slab* slab = slabs_.pop_front(node);
  if (slab == nullptr) return nullptr;
  set_listed(slab, Listed::kNowhere);
  // pairs with: acquire of owner in free (the words as the last owner left them are read by the new one)
  slab->owner.store(id | kOwnerHasRemote, std::memory_order_release);
  return slab;
}

void Central::add(Slab* slab) {
  count(Event::kCentralAdd);
  // relaxed: as take() says; it is read at each new slab, so it is written once
  if (!is_used.load(std::memory_order_relaxed)) is_used.store(true, std::memory_order_relaxed);
  const sync::MutexLock guard(lock);
  // pairs with: take() by way of the lock; readers that compare the owner only need its value
  slab->owner.store(kOwnerCentral, std::memory_order_release);
  set_listed(slab, Listed::kCentral);
  slab->idle_ticks = 0;
  slab->purged_at = 0;
  slabs_.push_back(slab);
}

bool Central::tell(Slab* slab, unsigned group, std::uint64_t mask, std::uint64_t* before) {
  {
    const sync::MutexLock guard(lock);
    // relaxed: only holders of this lock take a slab out of the state "central" and list
    if (slab->owner.load(std::memory_order_relaxed) != kOwnerCentral || listed(slab) != Listed::kCentral) return false;
    // pairs with: collect_remote() (the objects' last use)
    *before = slab->remote(group).fetch_or(mask, std::memory_order_acq_rel);
    if ((*before & mask) != 0 || !is_all_free(slab)) return true;
    slabs_.remove(slab);
    set_listed(slab, Listed::kNowhere);
    slab->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: release_slab() publishes it
  }
  release_slab(slab);
  return true;
}

void Central::release_empty() {
  const sync::MutexLock guard(lock);
  const auto release = [](Slab* slab) {
    set_listed(slab, Listed::kNowhere);
    slab->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: release_slab() publishes it
    release_slab(slab);
  };
  slabs_.for_each([&](Slab* slab) {
    if (!is_all_free(slab)) return;
    slabs_.remove(slab);
    release(slab);
  });
  if (shared_ != nullptr && is_all_free(shared_)) {
    release(shared_);
    shared_ = nullptr;
  }
}

void publish(Slab* slab) {
  std::uint32_t expected = kOwnerDetached;
  // pairs with: detach_full() (the words as the last owner left them)
  if (slab->owner.compare_exchange_strong(expected, kOwnerCentral, std::memory_order_acq_rel,
                                          std::memory_order_relaxed)) {  // relaxed: somebody else has it
    count(Event::kPublish);
    central[slab->size_class].add(slab);
  }
}

// Address of an object of the shared slab, or 0. Its words are written under the lock only: no context owns it, so all
// frees of its objects come through the remote masks.
std::uint64_t Central::take_from_shared() {
  for (unsigned g = 0; g < shared_->groups; ++g) {
    const std::uint64_t told = without_twice(shared_, g, collect_remote(shared_, g));
    const std::uint64_t free = owner_bits(shared_, g) | told;
    if (free == 0) continue;
    const auto bit = static_cast<unsigned>(std::countr_zero(free));
    end_offer(shared_, g);
    // relaxed: the lock orders all writers of a shared slab's words
    shared_->word(g).store(free & (free - 1), std::memory_order_relaxed);
    shared_->offered(g).store(0, std::memory_order_relaxed);  // relaxed: as above
    before_offer(shared_, g, std::uint64_t{1} << bit);
    const std::uint64_t object = shared_->object(g * kGroupObjects + bit);
    // Under the lock: as long as it is held, nobody makes the slab his own and offers its neighbours.
    begin_life(reinterpret_cast<void*>(object));
    return object;
  }
  return 0;
}

void* Central::allocate_shared(ClassId size_class) {
  const sync::MutexLock guard(lock);
  for (;;) {
    if (shared_ != nullptr) {
      const std::uint64_t object = take_from_shared();
      if (object != 0) {
        count(Event::kSharedObject);
        return reinterpret_cast<void*>(object);
      }
      shared_->last_owner.store(kOwnerShared, std::memory_order_relaxed);  // relaxed: the store below publishes it
      // pairs with: publish() (our words)
      shared_->owner.store(kOwnerDetached, std::memory_order_release);
      // pairs with: tell_owner() (either it sees the slab detached, or we see its bits)
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (has_free(shared_)) {
        std::uint32_t expected = kOwnerDetached;
        // pairs with: publish() (who loses this race leaves the slab to the other)
        if (shared_->owner.compare_exchange_strong(expected, kOwnerShared, std::memory_order_acq_rel)) continue;
      }
      shared_ = nullptr;
    }
    Slab* slab = slabs_.pop_front(os::calls.node());
    if (slab == nullptr) slab = make_slab(size_class, kOwnerShared);
    if (slab == nullptr) return nullptr;
    set_listed(slab, Listed::kNowhere);
    // pairs with: take_from_shared() by way of the lock
    slab->owner.store(kOwnerShared, std::memory_order_release);
    shared_ = slab;
  }
}

}  // namespace brimful::slots
