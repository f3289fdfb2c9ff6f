// SPDX-License-Identifier: MIT
//
// slots/magazine.h.
#include "slots/magazine.h"

#include <atomic>

#include "config/options.h"
#include "meta/block.h"
#include "meta/granule_table.h"
#include "meta/misuse.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

constexpr int kAttempts = 8;
// A magazine holds no more than this, but two objects of any size.
constexpr std::uint32_t kMagazineBytes = 64 << 10;
constexpr std::uint32_t kLeastObjects = 2;
// With more threads' contexts than these, each keeps less: together no more than these would.
constexpr std::uint32_t kThreadsAtEase = 64;

// What is looked at, or chosen, when it is offered can't be handed out from here.
bool keeps_nothing() { return config::checks.offers || config::cache() == config::Cache::kNone; }

struct Place {
  unsigned group;
  std::uint64_t bit;
};

Place place_of(std::uint64_t index) {
  return {static_cast<unsigned>(index / kGroupObjects), std::uint64_t{1} << (index % kGroupObjects)};
}

// Its owner frees with two stores, adopting it makes everybody faster, and what signal handlers get must stay there.
bool is_foreign(const Slab* slab, std::uint32_t id) {
  const std::uint32_t owner = slab->owner.load(std::memory_order_acquire);  // pairs with: detach_full() (last_owner)
  // relaxed: ordered by the owner; the slab may have been let go again since, then either answer will do
  if (owner == kOwnerDetached) return slab->last_owner.load(std::memory_order_relaxed) != id;
  return owner_id(owner) != id && owner != kOwnerShared && owner != kOwnerReleased;
}

// kDone: also of one that is free already, which has been reported.
arch::Outcome push(Context* context, Slab* slab, std::uint64_t index) {
  const Place place = place_of(index);
  const bool is_free = (free_bits(slab, place.group) & place.bit) != 0;
  const arch::Outcome pushed = BRIMFUL_UNLIKELY(is_free)
                                   ? arch::Outcome::kAlreadySet
                                   : arch::brimful_seq_magazine_push(context, slab->size_class, slab->object(index));
  if (BRIMFUL_LIKELY(pushed != arch::Outcome::kAlreadySet)) return pushed;
  report_twice(slab, place.group, place.bit);
  return arch::Outcome::kDone;
}

// The slab of an object in a magazine. It can't be given back meanwhile, unless its owner freed the object, too: nullptr,
// and the second free has been reported.
Slab* slab_of(std::uint64_t object, ClassId size_class) {
  Header* header = meta::header_of(object);
  auto* slab = static_cast<Slab*>(header);
  if (BRIMFUL_UNLIKELY(header->kind != Kind::kSlab || header->size_class != size_class ||
                       slab->index_of(object) >= slab->count())) {
    meta::report_bad_pointer("free", object, true, nullptr);
    return nullptr;
  }
  return slab;
}

// Tells the owners of `count` objects of a class, one call for all objects of a group. Overwrites the addresses.
void tell_all(ClassId size_class, std::uint64_t* objects, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (objects[i] == 0) continue;
    Slab* slab = slab_of(objects[i], size_class);
    if (BRIMFUL_UNLIKELY(slab == nullptr)) continue;
    const std::uint64_t index = slab->index_of(objects[i]);
    const Place place = place_of(index);
    const std::uint64_t base = slab->object(index - index % kGroupObjects);
    const std::uint64_t group_bytes = std::uint64_t{slab->shape().bytes} * kGroupObjects;
    std::uint64_t mask = 0;
    for (std::size_t j = i; j < count; ++j) {
      if (objects[j] - base >= group_bytes) continue;
      mask |= std::uint64_t{1} << (slab->index_of(objects[j]) % kGroupObjects);
      objects[j] = 0;
    }
    tell_owner(slab, place.group, mask);
  }
}

}  // namespace

void set_magazine_limits(std::uint32_t threads) {
  if (config::cache() == config::Cache::kNone) return;  // they are 0
  if (config::cache() == config::Cache::kUnlimited) threads = 0;
  for (std::size_t c = 0; c < kClassCount; ++c) {
    std::uint32_t objects = kMagazineBytes / kSizeClasses[c].bytes;
    if (objects > kMagazineObjects) objects = kMagazineObjects;
    if (threads > kThreadsAtEase) objects = objects * kThreadsAtEase / threads;
    // relaxed: any value that it ever had will do
    std::atomic_ref(arch::brimful_block.limits[c])
        .store(static_cast<std::uint8_t>(objects > kLeastObjects ? objects : kLeastObjects), std::memory_order_relaxed);
  }
}

bool keep(Context* context, Slab* slab, std::uint64_t index) {
  if (keeps_nothing() || !is_foreign(slab, context->id)) return false;
  // In tier:hardened no fast path has counted.
  if (config::is_hardened()) --context->until_look;
  return push(context, slab, index) == arch::Outcome::kDone;
}

bool keep_with_room(Slab* slab, std::uint64_t index) {
  if (keeps_nothing()) return false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Context* context = current_context();
    if (context == nullptr || !is_foreign(slab, context->id)) return false;
    const arch::Outcome pushed = push(context, slab, index);
    if (pushed == arch::Outcome::kDone) {
      context->events.count(Event::kKeep);
      return true;
    }
    if (pushed == arch::Outcome::kRefused) flush_magazine(context, slab->size_class);
  }
  return false;
}

void flush_magazine(Context* context, ClassId size_class) {
  std::uint64_t objects[kMagazineObjects];
  // relaxed: an empty magazine is left alone, a full one is taken by the sequence
  if (std::atomic_ref(context->counts[size_class]).load(std::memory_order_relaxed) == 0) return;
  const arch::Answer taken = arch::brimful_seq_magazine_take(context, size_class, objects);
  if (taken.outcome != arch::Outcome::kDone) return;
  arch::brimful_seq_magazine_forget(context, size_class);
  context->events.count(Event::kFlush);
  tell_all(size_class, objects, taken.value);
}

void flush_magazines(Context* context) {
  for (std::size_t c = 0; c < kClassCount; ++c) flush_magazine(context, static_cast<ClassId>(c));
}

void empty_magazines(Context* context) {
  for (std::size_t c = 0; c < kClassCount; ++c) {
    const std::uint32_t count = context->counts[c];
    context->counts[c] = 0;
    tell_all(static_cast<ClassId>(c), context->magazines[c], count);
  }
}

}  // namespace brimful::slots
