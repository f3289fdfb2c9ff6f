// SPDX-License-Identifier: MIT
//
// slots/take_over.h.
#include "slots/take_over.h"

#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/slab.h"

namespace brimful::slots {
namespace {

// Objects of the slab that make it worth taking.
constexpr int kLeastObjects = 4;
// Slabs taken over without a slow path of malloc in between; for each further one the oldest is passed on.
constexpr std::uint8_t kMostTaken = 1;

bool is_detached(const Slab* slab, std::uint32_t id) {
  // pairs with: detach_full() (last_owner)
  return slab->owner.load(std::memory_order_acquire) == kOwnerDetached &&
         slab->last_owner.load(std::memory_order_relaxed) != id;  // relaxed: ordered by the owner
}

bool lies_in(std::uint64_t object, const Slab* slab) {
  return object - slab->start < slab->count * slab->shape().bytes;
}

// Gives the oldest slab of the queue to whoever asks the central index next.
void pass_on(Context* context, ClassQueue& queue) {
  Slab* slab = queue.partial.front();
  if (slab == nullptr || free_objects(slab) * 8 < slab->count) return;
  if (arch::brimful_seq_store32(context, reinterpret_cast<std::uint32_t*>(&slab->owner), kOwnerMoving) !=
      arch::Outcome::kDone) {
    return;
  }
  queue.partial.remove(slab);
  set_listed(slab, Listed::kNowhere);
  central[slab->size_class].add(slab);
}

}  // namespace

bool take_over(Context* context, Slab* slab, std::uint64_t* objects, std::size_t count) {
  if (!is_detached(slab, context->id)) return false;
  int many = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (lies_in(objects[i], slab)) ++many;
  }
  if (many < kLeastObjects || !context->lock.try_lock()) return false;
  std::uint32_t expected = kOwnerDetached;
  // pairs with: detach_full() (the words as the last owner left them)
  if (!slab->owner.compare_exchange_strong(expected, context->id | kOwnerHasRemote, std::memory_order_acq_rel,
                                           std::memory_order_relaxed)) {  // relaxed: another has it
    context->lock.unlock();
    return false;
  }
  context->events.count(Event::kTakeOver);
  take_mark_down(slab, context);
  for (std::size_t i = 0; i < count; ++i) {
    if (!lies_in(objects[i], slab)) continue;
    const auto group = static_cast<unsigned>(slab->index_of(objects[i]) / kGroupObjects);
    std::uint64_t mask = 0;
    for (std::size_t j = i; j < count; ++j) {
      if (!lies_in(objects[j], slab)) continue;
      const std::uint64_t index = slab->index_of(objects[j]);
      if (index / kGroupObjects != group) continue;
      mask |= std::uint64_t{1} << (index % kGroupObjects);
      objects[j] = 0;
    }
    if (!place(slab, context, group, mask)) {
      return_remote(slab, group, mask);
      mark_remote(slab);
    }
  }
  const bool release = is_all_free(slab);
  if (!release) {
    ClassQueue& queue = context->queues[slab->size_class];
    if (queue.taken >= kMostTaken) {
      pass_on(context, queue);
    } else {
      ++queue.taken;
    }
    enqueue(context, slab);
  }
  context->lock.unlock();
  if (release) release_slab(slab);
  return true;
}

}  // namespace brimful::slots
