// SPDX-License-Identifier: MIT
//
// slots/stand_in.h: where stand-ins come from, and what heaps lend them.
#include "slots/stand_in.h"

#include <atomic>
#include <bit>

#include "config/build.h"
#include "config/options.h"
#include "meta/block.h"
#include "pages/heap.h"
#include "slots/front_end.h"
#include "slots/heap_slabs.h"
#include "slots/slab.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

// Guarded by the heap lock.
constinit StandIn* free_stand_ins = nullptr;

StandIn* make_stand_in() {
  // relaxed: written under the heap lock, as what is covered
  const std::uint32_t first = first_stand_in.load(std::memory_order_relaxed);
  if (first == kMaxContexts - kMaxStandIns || first == contexts_covered()) return nullptr;
  auto* stand_in = static_cast<StandIn*>(pages::heap.arena.allocate(sizeof(StandIn)));
  if (stand_in == nullptr) return nullptr;
  for (Slot& slot : stand_in->slots) slot.word = &arch::brimful_zero_word;
  stand_in->active_id = arch::kNoContext;
  stand_in->id = first - 1;
  // relaxed: no thread has such an id yet
  arch::brimful_block.contexts[1 + stand_in->id].store(reinterpret_cast<Context*>(stand_in), std::memory_order_relaxed);
  first_stand_in.store(stand_in->id,
                       std::memory_order_relaxed);  // relaxed: as above; this thread is the first to have it
  return stand_in;
}

}  // namespace

StandIn* take_stand_in() {
  // Lent objects would need live bits in the hardened tier; the middle layers for study have no hits; and a stand-in offers by
  // itself.
  if (config::offers_by_hand() || config::kMiddle != config::Middle::kContexts) return nullptr;
  const sync::MutexLock guard(pages::heap.lock);
  StandIn* stand_in = free_stand_ins;
  if (stand_in == nullptr) return make_stand_in();
  free_stand_ins = stand_in->next_free;
  return stand_in;
}

void recycle_stand_in(StandIn* stand_in) {
  const sync::MutexLock guard(pages::heap.lock);
  stand_in->next_free = free_stand_ins;
  free_stand_ins = stand_in;
}

namespace {

// How many objects a stand-in gets at a time: of large ones few, so that memory that was never touched stays so.
std::uint32_t most_lent(const UserHeap& heap, const Slab* slab) {
  if (heap.limit_bytes != 0) return 1;
  const std::uint32_t count = kOfferedBytes / slab->shape().bytes;
  return count < 1 ? 1 : count < kGroupObjects ? count : kGroupObjects;
}

// The lowest bits of a mask, so many.
std::uint64_t lowest_bits(std::uint64_t mask, std::uint32_t count) {
  std::uint64_t rest = mask;
  for (; count != 0 && rest != 0; --count) rest &= rest - 1;
  return mask & ~rest;
}

// What is left of the group that the slot leads to is the heap's again.
void empty_slot(StandIn& stand_in, UserHeap& heap, ClassId size_class) {
  Slab* slab = stand_in.lent[size_class];
  Slot& slot = stand_in.slots[size_class];
  std::uint64_t* word = slot.word;
  // A handler on this thread finds the slot empty, or its group as it was. relaxed: nobody else looks
  std::atomic_ref(slot.word).store(&arch::brimful_zero_word, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a handler on this thread
  if (word == &arch::brimful_zero_word) return;
  const auto group = static_cast<unsigned>(word - slab->words() - BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t));
  const std::uint64_t left = slab->offered(group).load(std::memory_order_relaxed);  // relaxed: ours
  if (left == 0) return;
  slab->offered(group).store(0, std::memory_order_relaxed);  // relaxed: as above
  put_back(heap, slab, group, left, static_cast<std::int32_t>(count_ones(left)));
}

// The slab is the heap's again.
void take_back(StandIn& stand_in, UserHeap& heap, ClassId size_class) {
  Slab* slab = stand_in.lent[size_class];
  stand_in.lent[size_class] = nullptr;
  slab->least = 0;
  heap.lent.remove(slab);
  (is_full(slab) ? heap.full : heap.partial[size_class]).push_back(slab);
}

// A slab with free objects that is lent to the stand-in; nullptr when there is no memory.
Slab* slab_to_lend(StandIn& stand_in, UserHeap& heap, ClassId size_class) {
  if (Slab* slab = stand_in.lent[size_class]) {
    if (!is_full(slab)) return slab;
    take_back(stand_in, heap, size_class);
  }
  Slab* slab = heap.partial[size_class].front();
  if (slab == nullptr) slab = add_slab(heap, size_class);
  if (slab == nullptr) return nullptr;
  heap.partial[size_class].remove(slab);
  heap.lent.push_back(slab);
  slab->least = 1;
  slab->purged_at = 0;
  stand_in.lent[size_class] = slab;
  return slab;
}

// The first of the objects is the caller's, the others the slot's.
void* lend(StandIn& stand_in, UserHeap& heap, Slab* slab) {
  const unsigned group = lowest_group(slab);
  const std::uint64_t free = word_of(slab, group);
  const std::uint64_t lent = lowest_bits(free, most_lent(heap, slab));
  const std::uint32_t count = count_ones(lent);
  set_word(slab, group, free & ~lent);
  slab->offered(group).store(lent & (lent - 1), std::memory_order_relaxed);  // relaxed: read by reports
  set_live_objects(slab, live_objects(slab) + static_cast<std::int32_t>(count));
  heap.counts.live_blocks += count;
  add_live(heap, std::size_t{count} * slab->shape().bytes);
  Slot& slot = stand_in.slots[slab->size_class];
  slot.base = slab->object(std::uint64_t{group} * kGroupObjects);
  std::atomic_signal_fence(
      std::memory_order_seq_cst);  // pairs with: a handler on this thread, which takes from the slot
  // relaxed: this thread's own
  std::atomic_ref(slot.word).store(slab->words() + group + BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t),
                                   std::memory_order_relaxed);
  const auto first = static_cast<std::uint64_t>(std::countr_zero(lent));
  return reinterpret_cast<void*>(slot.base + first * slab->shape().bytes);
}

}  // namespace

void* allocate_through(StandIn& stand_in, UserHeap& heap, ClassId size_class, HeapAnswer* answer) {
  void* object = nullptr;
  bool look = false;
  {
    const HeapScope scope(heap);
    empty_slot(stand_in, heap, size_class);
    *answer = HeapAnswer::kOverLimit;
    if (BRIMFUL_UNLIKELY(exceeds(heap, kSizeClasses[size_class].bytes))) return nullptr;
    *answer = HeapAnswer::kNoMemory;
    Slab* slab = slab_to_lend(stand_in, heap, size_class);
    if (slab == nullptr) return nullptr;
    object = lend(stand_in, heap, slab);
    look = is_time_to_look(heap);
  }
  if (BRIMFUL_UNLIKELY(look)) tick();
  *answer = HeapAnswer::kDone;
  return object;
}

void return_all(StandIn& stand_in, UserHeap& heap) {
  const HeapScope scope(heap);
  for (std::size_t c = 0; c < kClassCount; ++c) {
    if (stand_in.lent[c] == nullptr) continue;
    empty_slot(stand_in, heap, static_cast<ClassId>(c));
    take_back(stand_in, heap, static_cast<ClassId>(c));
  }
}

Held held_by_stand_ins(UserHeap& heap) {
  Held held = {};
  for (Slab* slab = heap.lent.front(); slab != nullptr; slab = slab->next) {
    std::uint64_t objects = 0;
    for (unsigned g = 0; g < slab->groups; ++g) {
      objects += count_ones(slab->offered(g).load(std::memory_order_relaxed));  // relaxed: a figure for reports
    }
    held.objects += objects;
    held.bytes += objects * slab->shape().bytes;
  }
  return held;
}

}  // namespace brimful::slots
