// SPDX-License-Identifier: MIT
//
// slots/slab.h: a slab's birth and death.
#include "slots/slab.h"

#include <string.h>

#include "base/check.h"
#include "config/options.h"
#include "meta/live_map.h"
#include "meta/misuse.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "slots/events.h"

namespace brimful::slots {

namespace {

// A slab without its memory populated, which is to be done without the lock.
Slab* make_slab_locked(ClassId size_class, std::uint32_t owner, pages::MemoryRange& populate) {
  const SizeClass& shape = kSizeClasses[size_class];
  const GranuleCount granules(shape.granules);
  pages::Heap& heap = pages::heap;
  const sync::MutexLock guard(heap.lock);
  auto* slab = static_cast<Slab*>(heap.arena.allocate(Slab::bytes_for(shape.groups)));
  if (slab == nullptr) return nullptr;
  const std::uint64_t start = heap.pages.allocate(granules, kGranuleBytes, 0, size_class);
  if (start == 0) {
    heap.arena.free(slab, Slab::bytes_for(shape.groups));
    return nullptr;
  }
  if (config::is_hardened() && !meta::live_map.cover(start + granules.bytes())) {
    heap.pages.free(start, granules, os::calls.now_ms());
    heap.arena.free(slab, Slab::bytes_for(shape.groups));
    return nullptr;
  }
  populate = heap.pages.backing().take_populate();
  slab->start = start;
  slab->multiplier = shape.multiplier;
  slab->count = std::uint64_t{shape.groups} * kGroupObjects;
  slab->owner.store(owner, std::memory_order_relaxed);             // relaxed: no other thread has seen the slab
  slab->last_owner.store(owner, std::memory_order_relaxed);        // relaxed: as above
  slab->countdown.store(shape.groups, std::memory_order_relaxed);  // relaxed: as above
  slab->kind = Kind::kSlab;
  slab->size_class = size_class;
  slab->groups = shape.groups;
  slab->batch = shape.batch;
  slab->least = shape.least;
  set_listed(slab, Listed::kNowhere);
  memset(slab->words(), 0xFF, BRIMFUL_OFFERED_BEHIND);  // also behind the last group: see free in arch/
  heap.table.set_all(heap.table.id_of(start), granules, slab);
  return slab;
}

}  // namespace

Slab* make_slab(ClassId size_class, std::uint32_t owner) {
  pages::MemoryRange populate = {};
  Slab* slab = make_slab_locked(size_class, owner, populate);
  pages::populate(populate);
  return slab;
}

void report_twice(Slab* slab, unsigned group, std::uint64_t mask) {
  meta::report_double_free("free", *slab,
                           std::uint64_t{group} * kGroupObjects + static_cast<unsigned>(std::countr_zero(mask)));
}

void release_slab(Slab* slab) {
  BRIMFUL_ASSERT(is_all_free(slab));
  check_uncollected(slab);
  count(Event::kReleaseSlab);
  const GranuleCount granules(slab->shape().granules);
  pages::Heap& heap = pages::heap;
  const std::uint64_t now_ms = os::calls.now_ms();
  const sync::MutexLock guard(heap.lock);
  // pairs with: nothing the program may do; a free() that races with this is a double free, and reads "released"
  slab->owner.store(kOwnerReleased, std::memory_order_release);
  slab->kind = Kind::kNone;
  heap.table.set_all(heap.table.id_of(slab->start), granules, &meta::none);
  heap.pages.free(slab->start, granules, now_ms);
  heap.arena.free(slab, Slab::bytes_for(slab->groups));
}

}  // namespace brimful::slots
