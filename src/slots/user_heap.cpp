// SPDX-License-Identifier: MIT
//
// slots/user_heap.h: a heap's slabs and blocks while it lives.
#include "slots/user_heap.h"

#include <bit>

#include "meta/misuse.h"
#include "meta/request_class.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/run_stacks.h"
#include "slots/front_end.h"
#include "slots/heap_slabs.h"
#include "slots/object_checks.h"
#include "slots/slab.h"

namespace brimful::slots {
namespace {

// A heap that holds more than this gets slabs whose memory is there already, where there are such.
constexpr std::size_t kManyBytes = std::size_t{1} << 20;

// A slab is looked at for free pages when it has waited for two looks, then at every eighth; as slots/free_pages.cpp
// does.
constexpr unsigned kWaitLooks = 2;
constexpr unsigned kLookPeriod = 8;

void* take_from(UserHeap& heap, Slab* slab) {
  const unsigned group = lowest_group(slab);
  const std::uint64_t free = word_of(slab, group);
  before_offer(slab, group, free & -free);
  set_word(slab, group, free & (free - 1));
  slab->idle_ticks = 0;
  if (slab->purged_at != 0) slab->purged_at = 0;
  set_live_objects(slab, live_objects(slab) + 1);
  if (is_full(slab)) {
    heap.partial[slab->size_class].remove(slab);
    heap.full.push_back(slab);
  }
  ++heap.counts.live_blocks;
  add_live(heap, meta::usable_bytes(slab->size_class));
  const std::uint64_t index = group * kGroupObjects + static_cast<unsigned>(std::countr_zero(free));
  return reinterpret_cast<void*>(slab->object(index));
}

void collect(UserHeap& heap, List<Slab>& list) {
  for (Slab* slab = list.front(); slab != nullptr;) {
    Slab* next = slab->next;
    Slab* emptied = nullptr;
    for (unsigned g = 0; g < slab->groups && emptied == nullptr; ++g) {
      const std::uint64_t mask = without_twice(slab, g, collect_remote(slab, g));
      if (mask == 0) continue;
      emptied = put_back(heap, slab, g, mask, static_cast<std::int32_t>(count_ones(mask)));
    }
    if (emptied != nullptr) release_slab(emptied);
    slab = next;
  }
}

void link(UserHeap& heap, Run* run) {
  run->heap_prev = nullptr;
  run->heap_next = heap.blocks;
  if (heap.blocks != nullptr) heap.blocks->heap_prev = run;
  heap.blocks = run;
  run->last_owner.store(heap.number, std::memory_order_relaxed);  // relaxed: the lock orders it
  run->stack_offset = 0;                                          // free() must not keep it as nobody's
  heap.counts.held_bytes += run->bytes;
  ++heap.counts.large_blocks;
}

void unlink(UserHeap& heap, Run* run) {
  (run->heap_prev != nullptr ? run->heap_prev->heap_next : heap.blocks) = run->heap_next;
  if (run->heap_next != nullptr) run->heap_next->heap_prev = run->heap_prev;
  run->last_owner.store(0, std::memory_order_relaxed);  // relaxed: the lock orders it
  pages::set_length(run, run->granules);
  heap.counts.held_bytes -= run->bytes;
  --heap.counts.large_blocks;
}

void uncount(UserHeap& heap, std::size_t bytes) {
  heap.counts.live_bytes -= bytes;
  --heap.counts.live_blocks;
}

void release_empty(UserHeap& heap, Slab* slab) {
  unlist(heap, slab);
  release_slab(slab);
}

void note_nested(UserHeap& heap) {
  heap.has_nested.store(true, std::memory_order_release);  // pairs with: take_over_nested() (the mask, the links)
}

}  // namespace

Slab* add_slab(UserHeap& heap, ClassId size_class) {
  const bool is_small = heap.counts.held_bytes < kManyBytes;
  Slab* slab = make_slab(size_class, kOwnerHeap, is_small ? Expected::kFew : Expected::kMany);
  if (slab == nullptr) return nullptr;
  slab->last_owner.store(heap.number, std::memory_order_relaxed);  // relaxed: nobody has an object of it
  slab->least = 0;
  set_live_objects(slab, 0);
  heap.partial[size_class].push_back(slab);
  ++heap.counts.slabs;
  heap.counts.held_bytes += bytes_of(slab);
  return slab;
}

void unlist(UserHeap& heap, Slab* slab) {
  heap.partial[slab->size_class].remove(slab);
  --heap.counts.slabs;
  heap.counts.held_bytes -= bytes_of(slab);
  slab->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: for whoever waits for this lock
}

Slab* put_back(UserHeap& heap, Slab* slab, unsigned group, std::uint64_t mask, std::int32_t count) {
  const bool was_full = is_full(slab);
  set_word(slab, group, word_of(slab, group) | mask);
  set_live_objects(slab, live_objects(slab) - count);
  heap.counts.live_blocks -= static_cast<std::uint64_t>(count);
  heap.counts.live_bytes -= static_cast<std::size_t>(count) * meta::usable_bytes(slab->size_class);
  slab->idle_ticks = 0;
  if (group < slab->rest) slab->rest = static_cast<std::uint8_t>(group);
  if (is_lent(slab)) return nullptr;
  if (was_full) {
    heap.full.remove(slab);
    heap.partial[slab->size_class].push_back(slab);
  }
  if (live_objects(slab) != 0 || slab == heap.partial[slab->size_class].front()) return nullptr;
  unlist(heap, slab);
  return slab;
}

void* allocate_in(UserHeap& heap, HeapHandle handle, ClassId size_class, HeapAnswer* answer) {
  void* object = nullptr;
  bool look = false;
  {
    const HeapScope scope(heap);
    if (BRIMFUL_UNLIKELY(!is_good(heap, handle))) {
      *answer = HeapAnswer::kClosed;
      return nullptr;
    }
    if (BRIMFUL_UNLIKELY(exceeds(heap, kSizeClasses[size_class].bytes))) {
      *answer = HeapAnswer::kOverLimit;
      return nullptr;
    }
    Slab* slab = heap.partial[size_class].front();
    if (slab == nullptr) slab = add_slab(heap, size_class);
    if (slab == nullptr) {
      *answer = HeapAnswer::kNoMemory;
      return nullptr;
    }
    object = take_from(heap, slab);
    look = is_time_to_look(heap);
  }
  if (BRIMFUL_UNLIKELY(look)) tick();
  *answer = HeapAnswer::kDone;
  return object;
}

void free_in_heap(Slab* slab, std::uint64_t index) {
  UserHeap* heap = heap_of_number(heap_number(slab));
  if (BRIMFUL_UNLIKELY(heap == nullptr)) return meta::report_double_free("free", *slab, index);
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  Slab* emptied = nullptr;
  bool is_open = false;
  bool twice = false;
  bool look = false;
  {
    const HeapScope scope(*heap);
    is_open = heap->is_open;
    twice = heap_number(slab) != heap->number || (owner_bits(slab, group) & bit) != 0;
    if (BRIMFUL_LIKELY(is_open && !twice)) emptied = put_back(*heap, slab, group, bit, 1);
    look = is_time_to_look(*heap);
  }
  if (BRIMFUL_UNLIKELY(!is_open)) return meta::report_destroyed("free", slab->object(index));
  if (BRIMFUL_UNLIKELY(twice)) return meta::report_double_free("free", *slab, index);
  if (emptied != nullptr) release_slab(emptied);
  if (BRIMFUL_UNLIKELY(look)) tick();
}

void free_in_heap_nested(Slab* slab, std::uint64_t index) {
  UserHeap* heap = heap_of_number(heap_number(slab));
  free_nested(slab, index);
  if (heap != nullptr) note_nested(*heap);
}

void take_over_nested(UserHeap& heap) {
  // pairs with: note_nested() (the masks, the links)
  if (!heap.has_nested.exchange(false, std::memory_order_acquire)) return;
  // pairs with: leave_heap_later() (the links)
  Run* run = heap.nested_blocks.exchange(nullptr, std::memory_order_acquire);
  while (run != nullptr) {
    Run* next = run->next;
    unlink(heap, run);
    uncount(heap, run->bytes);
    const std::uint64_t now_ms = os::calls.now_ms();
    const sync::MutexLock guard(pages::heap.lock);
    pages::free_block(run, now_ms);
    run = next;
  }
  collect(heap, heap.full);
  collect(heap, heap.lent);
  for (List<Slab>& list : heap.partial) collect(heap, list);
}

HeapAnswer charge(UserHeap& heap, HeapHandle handle, std::size_t bytes) {
  const HeapScope scope(heap);
  if (!is_good(heap, handle)) return HeapAnswer::kClosed;
  if (exceeds(heap, bytes)) return HeapAnswer::kOverLimit;
  add_live(heap, bytes);
  ++heap.counts.live_blocks;
  return HeapAnswer::kDone;
}

void uncharge(UserHeap& heap, std::size_t bytes) {
  const HeapScope scope(heap);
  uncount(heap, bytes);
}

void adopt_block(UserHeap& heap, Run* run) {
  const HeapScope scope(heap);
  link(heap, run);
}

bool leave_heap(Run* run) {
  UserHeap* heap = heap_of_number(heap_number(run));
  const std::uint64_t start = run->start;
  if (heap != nullptr) {
    const HeapScope scope(*heap);
    if (heap->is_open && heap_number(run) == heap->number) {
      unlink(*heap, run);
      uncount(*heap, run->bytes);
      return true;
    }
  }
  meta::report_destroyed("free", start);
  return false;
}

void leave_heap_later(Run* run) {
  UserHeap* heap = heap_of_number(heap_number(run));
  if (heap == nullptr) return;
  Run* head = heap->nested_blocks.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  do {
    run->next = head;
    // pairs with: take_over_nested() (the link)
  } while (!heap->nested_blocks.compare_exchange_weak(head, run, std::memory_order_release,
                                                      std::memory_order_relaxed));  // relaxed: tried again
  note_nested(*heap);
}

bool take_for_resize(UserHeap& heap, Run* run, std::size_t bytes) {
  const HeapScope scope(heap);
  if (heap_number(run) != heap.number || !pages::is_live(run)) return false;
  if (bytes > run->bytes && exceeds(heap, bytes - run->bytes)) return false;
  unlink(heap, run);
  heap.counts.live_bytes -= run->bytes;
  add_live(heap, bytes);
  return true;
}

void restore_block(UserHeap& heap, Run* run, std::size_t counted_bytes, std::size_t bytes) {
  const HeapScope scope(heap);
  heap.counts.live_bytes = heap.counts.live_bytes - counted_bytes + bytes;
  link(heap, run);
}

int purge_heap(UserHeap& heap, int budget, bool at_once) {
  if (heap.has_nested.load(std::memory_order_relaxed)) take_over_nested(heap);  // relaxed: as HeapScope
  int purged = 0;
  for (List<Slab>& list : heap.partial) {
    for (Slab* slab = list.front(); slab != nullptr && purged < budget;) {
      Slab* next = slab->next;
      const bool is_time = at_once || slab->idle_ticks++ % kLookPeriod == kWaitLooks;
      if (is_time && live_objects(slab) == 0) {
        release_empty(heap, slab);
        ++purged;
      } else if (is_time && has_news(slab)) {
        purge_slab(slab, InUse::kNo);
        ++purged;
      }
      slab = next;
    }
  }
  return purged;
}

void release_empty_slabs(UserHeap& heap) {
  for (List<Slab>& list : heap.partial) {
    for (Slab* slab = list.front(); slab != nullptr;) {
      Slab* next = slab->next;
      if (live_objects(slab) == 0) release_empty(heap, slab);
      slab = next;
    }
  }
}

}  // namespace brimful::slots
