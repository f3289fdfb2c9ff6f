// SPDX-License-Identifier: MIT
//
// slots/slab.h: a slab's birth and death.
#include "slots/slab.h"

#include "base/check.h"
#include "config/options.h"
#include "meta/live_map.h"
#include "meta/misuse.h"
#include "meta/request_class.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/limit.h"
#include "pages/purger.h"
#include "pages/run_cache.h"
#include "slots/events.h"
#include "slots/lives.h"
#include "slots/object_checks.h"
#include "slots/offer_book.h"
#include "slots/run_stacks.h"
#include "slots/samples.h"
#include "slots/sampling.h"
#include "slots/slab_guard.h"

namespace brimful::slots {
namespace {

// Drops the whole pages inside [start, end).
void purge_pages(std::uint64_t start, std::uint64_t end) {
  const std::size_t page = os::page_bytes();
  const std::uint64_t first = round_up(start, page);
  const std::uint64_t last = round_down(end, page);
  if (first < last) os::calls.purge(first, last - first);
}

// What a slab is made of.
struct Parts {
  Slab* slab;  // zeros; nullptr: no memory
  std::uint64_t start;
  pages::MemoryRange populate;
  bool is_resident;  // its memory was used before, and is there
  Plan plan;
};

Parts take_parts(ClassId size_class, Expected expected) {
  const SizeClass& shape = kSizeClasses[size_class];
  const GranuleCount granules(shape.granules);
  pages::Heap& heap = pages::heap;
  Parts parts = {};
  const sync::MutexLock guard(heap.lock);
  if (!pages::may_grow(granules.bytes())) return parts;
  parts.plan = plan_slab(size_class);
  const std::size_t header_bytes = Slab::bytes_for(parts.plan.groups);
  auto* slab = static_cast<Slab*>(heap.arena.allocate(header_bytes));
  if (slab == nullptr) return parts;
  if (heap.pages.stats().dirty_bytes < granules.bytes()) flush_own_runs(UINT64_MAX);
  pages::use_cached_before_fresh(granules);
  parts.start = heap.pages.allocate(granules, kGranuleBytes, os::calls.node(), size_class,
                                    expected == Expected::kMany ? pages::Memory::kResident : pages::Memory::kFresh);
  if (parts.start == 0) {
    heap.arena.free(slab, header_bytes);
    return parts;
  }
  if (config::is_hardened() && !meta::live_map.cover(parts.start + granules.bytes())) {
    heap.pages.free(parts.start, granules, os::calls.now_ms());
    heap.arena.free(slab, header_bytes);
    return parts;
  }
  parts.slab = slab;
  parts.populate = heap.pages.backing().take_populate();
  const GranuleId first = heap.table.id_of(parts.start);
  meta::Hugepage* hugepage = heap.table.hugepage_of(first);
  parts.is_resident = (hugepage->dirty() >> first.raw() % meta::kGranulesPerHugepage & 1) != 0;
  slab->node = heap.pages.node_of(parts.start) & (os::kMaxNodes - 1);
  return parts;
}

}  // namespace

Slab* make_slab(ClassId size_class, std::uint32_t owner, Expected expected) {
  const Parts parts = take_parts(size_class, expected);
  Slab* slab = parts.slab;
  if (slab == nullptr) return nullptr;
  pages::populate(parts.populate);
  const bool is_resident = parts.is_resident || parts.populate.bytes != 0;
  const SizeClass& shape = kSizeClasses[size_class];
  slab->groups = static_cast<std::uint16_t>(parts.plan.groups);
  slab->start = parts.start;
  slab->multiplier = shape.multiplier;
  slab->bytes = meta::is_sealed_class(size_class) ? 0 : shape.bytes;
  slab->owner.store(owner, std::memory_order_relaxed);             // relaxed: no other thread has seen the slab
  slab->last_owner.store(owner, std::memory_order_relaxed);        // relaxed: as above
  slab->countdown.store(slab->groups, std::memory_order_relaxed);  // relaxed: as above
  slab->size_class = size_class;
  // Where memory is resident already, malloc may go everywhere at once.
  slab->opened = static_cast<std::uint8_t>(
      is_resident || groups_of_a_page(shape.bytes) > slab->groups ? slab->groups : groups_of_a_page(shape.bytes));
  slab->batch = is_resident || expected == Expected::kMany ? shape.batch : shape.young;
  slab->least = most_wanted(slab);
  set_listed(slab, Listed::kNowhere);
  slab->free_all();
  if (config::checks.books) begin_book(slab);
  if (config::checks.zero) clear_slab(slab);
  if (BRIMFUL_UNLIKELY(parts.plan.is_sealed)) seal_slab(slab);
  slab->kind = Kind::kSlab;
  // Without the lock: the granules are ours, and who reads their entries meanwhile finds nothing, or a whole header.
  pages::heap.table.set_all(pages::heap.table.id_of(slab->start), GranuleCount(shape.granules), slab);
  return slab;
}

void report_twice(Slab* slab, unsigned group, std::uint64_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const std::uint64_t index = std::uint64_t{group} * kGroupObjects + static_cast<unsigned>(std::countr_zero(mask));
    meta::report_double_free("free", *slab, index, history_of(slab->object(index), slab));
    restore_life(slab, group, mask & -mask);
  }
}

void purge_slab(Slab* slab, InUse in_use) {
  std::uint64_t run = 0;  // start of the current run of free objects
  for (unsigned g = 0; g < slab->groups; ++g) {
    // pairs with: the owner's free (the objects' last use)
    const std::uint64_t word = slab->word(g).load(std::memory_order_acquire);
    const std::uint64_t offered = slab->offered(g).load(std::memory_order_acquire);  // pairs with: as above
    const std::uint64_t free = in_use == InUse::kNo ? free_bits(slab, g) : word & ~offered;
    if (free == kAllFree && run != 0) continue;
    for (unsigned bit = 0; bit < kGroupObjects; ++bit) {
      const std::uint64_t object = slab->object(std::uint64_t{g} * kGroupObjects + bit);
      const bool is_free = (free >> bit & 1) != 0;
      if (is_free && run == 0) run = object;
      if (!is_free && run != 0) {
        purge_pages(run, object);
        run = 0;
      }
    }
  }
  if (run != 0) purge_pages(run, slab->object(slab->count()));
}

bool has_news(Slab* slab) {
  const unsigned free = free_objects(slab);
  if (free <= slab->purged_at || std::uint64_t{free - slab->purged_at} * slab->shape().bytes < os::page_bytes()) {
    return false;
  }
  slab->purged_at = free & 0x1FFF;
  return true;
}

void release_slab(Slab* slab) {
  BRIMFUL_ASSERT(is_all_free(slab));
  check_uncollected(slab);
  count(Event::kReleaseSlab);
  forget_offers(slab);
  for (unsigned g = 0; g < slab->groups; ++g) end_offer(slab, g);
  const std::uint64_t now_ms = os::calls.now_ms();
  const sync::MutexLock guard(pages::heap.lock);
  unmake_slab(slab, now_ms);
}

void unmake_slab(Slab* slab, std::uint64_t now_ms) {
  const GranuleCount granules(slab->shape().granules);
  pages::Heap& heap = pages::heap;
  // pairs with: nothing the program may do; a free() that races with this is a double free, and reads "released"
  slab->owner.store(kOwnerReleased, std::memory_order_release);
  slab->kind = Kind::kNone;
  heap.table.set_all(heap.table.id_of(slab->start), granules, &meta::none);
  if (BRIMFUL_LIKELY(unseal_slab(slab))) {
    heap.pages.free(slab->start, granules, now_ms);
    pages::note_freed(now_ms, granules.bytes());
  }
  heap.arena.free(slab, Slab::bytes_for(slab->groups));
}

}  // namespace brimful::slots
