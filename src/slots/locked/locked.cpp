// SPDX-License-Identifier: MIT
//
// The middle layer for study (docs/design/0010): every malloc takes an object from a slab of its class under a lock, and
// every free puts it back under the same lock. Two builds of it: a mutex for each class, or one for all classes.
//
//   ClassSlabs[class].partial   front: the slab that malloc takes from, behind it those with free objects, oldest first
//   full slabs                  in no list; the first free of one lists it again
//
// The rest of the allocator is the same: slabs, words and granules, page heap, purging, large blocks, reports. A slab's
// owner is kOwnerCentral for life. Only the word of a group is used: nothing is ever offered, and remote masks are set by
// signal handlers alone, which must not wait for a lock. So a bit says all there is to know, and each double free is
// found, whoever commits it.
//
// Not tried: a private cache in front of the lock. That is what the contexts are.
#include <bit>

#include "config/build.h"
#include "config/options.h"
#include "meta/misuse.h"
#include "os/calls.h"
#include "pages/purger.h"
#include "slots/background.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/samples.h"
#include "slots/sampling.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

// Calls of a class until somebody looks at the clock: few, because a program may make no more than a trickle of them.
constexpr std::int32_t kCallsPerLook = 16;
constexpr std::uint64_t kSweepMs = 250;
constexpr int kSlabsPerSweep = 256;
// A slab is looked at for free pages when it has waited for two sweeps, then at every eighth.
constexpr unsigned kWaitSweeps = 2;
constexpr unsigned kSweepPeriod = 8;

// All of it is guarded by lock_of(the class).
struct alignas(64) ClassSlabs {
  List<Slab> partial;
  unsigned scan;       // the group of the front slab that malloc looks at first
  std::int32_t calls;  // until the next look at the clock
};
constinit ClassSlabs all_slabs[kClassCount] = {};
constinit std::atomic<std::uint64_t> swept_ms{0};

// The global lock is the first class's.
sync::CentralMutex& lock_of(ClassId size_class) {
  return central[config::kMiddle == config::Middle::kGlobalLock ? 0 : size_class].lock;
}

// The object's bit set in a mask of its group.
struct Place {
  unsigned group;
  std::uint64_t bit;
};
Place place_of(std::uint64_t index) {
  return {static_cast<unsigned>(index / kGroupObjects), std::uint64_t{1} << (index % kGroupObjects)};
}

// Sets the group's word. The lock orders it among writers; purge_slab() and statistics read without.
void set_word(Slab* slab, unsigned group, std::uint64_t bits) {
  slab->word(group).store(bits, std::memory_order_release);  // pairs with: owner_bits() (the objects' last use)
}

bool is_time_to_look(ClassSlabs& slabs) {
  if (--slabs.calls > 0) return false;
  slabs.calls = kCallsPerLook;
  return true;
}

void unlist(ClassSlabs& slabs, Slab* slab) {
  if (slab == slabs.partial.front()) slabs.scan = 0;
  slabs.partial.remove(slab);
  set_listed(slab, Listed::kNowhere);
}

void list(ClassSlabs& slabs, Slab* slab) {
  set_listed(slab, Listed::kCentral);
  slab->idle_ticks = 0;
  slabs.partial.push_back(slab);
}

// An object of the front slab, or nullptr when it is full.
void* take_from(ClassSlabs& slabs, Slab* slab) {
  for (unsigned i = 0; i < slab->groups; ++i) {
    const unsigned group = (slabs.scan + i) % slab->groups;
    const std::uint64_t free = owner_bits(slab, group) | collect_remote(slab, group);
    if (free == 0) continue;
    slabs.scan = group;
    set_word(slab, group, free & (free - 1));
    return reinterpret_cast<void*>(slab->object(group * kGroupObjects + static_cast<unsigned>(std::countr_zero(free))));
  }
  return nullptr;
}

// Caller holds the class's lock. Takes the heap lock for a new slab.
void* take(ClassSlabs& slabs, ClassId size_class) {
  for (;;) {
    Slab* slab = slabs.partial.front();
    if (slab == nullptr) {
      slab = make_slab(size_class, kOwnerCentral);
      if (slab == nullptr) return nullptr;
      list(slabs, slab);
    }
    void* object = take_from(slabs, slab);
    if (object != nullptr) return object;
    unlist(slabs, slab);
  }
}

void* allocate_once(ClassId size_class, bool* look) {
  const sync::MutexLock guard(lock_of(size_class));
  ClassSlabs& slabs = all_slabs[size_class];
  *look = is_time_to_look(slabs);
  return take(slabs, size_class);
}

// Releases slabs of the class that have no live object after more than `sweeps` sweeps, and gives back free pages of up to
// `*budget` others (nullptr: of none). Those it does not come to do not age.
void sweep(ClassId size_class, unsigned sweeps, int* budget) {
  const sync::MutexLock guard(lock_of(size_class));
  ClassSlabs& slabs = all_slabs[size_class];
  for (Slab* slab = slabs.partial.front(); slab != nullptr;) {
    Slab* next = slab->next;
    const bool is_empty = is_all_free(slab);
    const unsigned waited = slab->idle_ticks;
    if (is_empty || (budget != nullptr && *budget > 0)) ++slab->idle_ticks;
    if (is_empty && waited >= sweeps) {
      unlist(slabs, slab);
      release_slab(slab);
    } else if (!is_empty && budget != nullptr && *budget > 0 && waited % kSweepPeriod == kWaitSweeps) {
      purge_slab(slab, InUse::kNo);
      --*budget;
    }
    slab = next;
  }
}

// The reserve for signal handlers is taken from by its remote masks, so an object goes back there.
bool set_remote(Slab* slab, Place place) {
  // pairs with: collect_remote(), allocate_emergency() (the object's last use)
  return (slab->remote(place.group).fetch_or(place.bit, std::memory_order_release) & place.bit) == 0;
}

}  // namespace

// Nothing here is done without a lock.
void* take(ClassId) { return nullptr; }
bool free_lightly(Slab*, std::uint64_t) { return false; }

Allocation allocate(ClassId size_class) {
  const std::uint64_t interval = draws_sample(kSizeClasses[size_class].bytes);
  if (BRIMFUL_UNLIKELY(interval != 0)) return {nullptr, interval, false};
  return {allocate_unsampled(size_class), 0, false};
}

void* allocate_unsampled(ClassId size_class) {
  bool look = false;
  void* object = allocate_once(size_class, &look);
  if (BRIMFUL_UNLIKELY(object == nullptr)) {
    reclaim_all();
    object = allocate_once(size_class, &look);
  }
  if (look) tick();
  return object;
}

void free(Slab* slab, std::uint64_t index) {
  const Place place = place_of(index);
  // relaxed: constant from the slab's birth to its end
  if (slab->owner.load(std::memory_order_relaxed) == kOwnerShared) return free_nested(slab, index);
  bool twice = false;
  bool look = false;
  bool release = false;
  {
    const sync::MutexLock guard(lock_of(slab->size_class));
    ClassSlabs& slabs = all_slabs[slab->size_class];
    const std::uint64_t word = owner_bits(slab, place.group);
    // relaxed: a slab is born and unlisted under this lock
    twice = slab->owner.load(std::memory_order_relaxed) != kOwnerCentral ||
            ((word | slab->remote(place.group).load(std::memory_order_relaxed)) & place.bit) != 0;  // relaxed: a hint
    if (!twice) {
      set_word(slab, place.group, word | place.bit);
      if (listed(slab) == Listed::kNowhere) list(slabs, slab);
      // The one that malloc takes from stays, or a program that allocates and frees one object would make a slab each time.
      release = slab != slabs.partial.front() && (word | place.bit) == kAllFree && is_all_free(slab);
      if (release) {
        unlist(slabs, slab);
        slab->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: for whoever waits for this lock
      }
      look = is_time_to_look(slabs);
    }
  }
  if (twice) return meta::report_double_free("free", *slab, index);
  if (release) release_slab(slab);
  if (look) tick();
}

void free_nested(Slab* slab, std::uint64_t index) {
  const Place place = place_of(index);
  if ((free_bits(slab, place.group) & place.bit) != 0 || !set_remote(slab, place)) {
    meta::report_double_free("free", *slab, index);
  }
}

// Never reached: free() of arch/ counts down for the owner's context only.
void on_countdown(Slab*) { tick(); }

void tick() { tick(os::calls.now_ms()); }

void tick(std::uint64_t now_ms) {
  pages::tick(now_ms, true);
  std::uint64_t last_ms = swept_ms.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  // relaxed: it only chooses the one that sweeps
  if (now_ms - last_ms < kSweepMs || !swept_ms.compare_exchange_strong(last_ms, now_ms, std::memory_order_relaxed)) {
    return;
  }
  if (config::options.purge_delay_ms >= 0) purge_heaps(false);
  int budget = kSlabsPerSweep;
  for (std::size_t c = 0; c < kClassCount; ++c) {
    sweep(static_cast<ClassId>(c), 1, config::options.purge_delay_ms >= 0 ? &budget : nullptr);
  }
}

int purge_all_pages() {
  int budget = INT32_MAX;
  for (std::size_t c = 0; c < kClassCount; ++c) sweep(static_cast<ClassId>(c), 0, &budget);
  return INT32_MAX - budget + purge_heaps(true);
}

void reclaim_all() {
  for (std::size_t c = 0; c < kClassCount; ++c) sweep(static_cast<ClassId>(c), 0, nullptr);
  release_sampled();
  reclaim_heaps();
  pages::empty_caches();
}

// There is no background thread.
constinit std::atomic<std::uint32_t> thread_tries{0};
void start_background_thread(const void* /*caller*/, Call /*call*/) {}
bool has_background_thread() { return false; }

}  // namespace brimful::slots
