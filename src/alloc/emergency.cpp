// SPDX-License-Identifier: MIT
//
// alloc/emergency.h.
#include "alloc/emergency.h"

#include <atomic>
#include <bit>

#include "base/compiler.h"
#include "meta/request_class.h"
#include "slots/lives.h"
#include "slots/object_checks.h"
#include "slots/slab.h"

namespace brimful::alloc {
namespace {

constexpr std::size_t kSizes[] = {64, 512, 4096, 16384};
constexpr std::size_t kSlabs = sizeof kSizes / sizeof kSizes[0];

constinit std::atomic<Slab*> reserve[kSlabs] = {};
constinit std::atomic<bool> is_prepared{false};

void* take_from(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    std::uint64_t free = slab->remote(g).load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
    while (free != 0) {
      // pairs with: tell_owner() (the object's last use)
      if (slab->remote(g).compare_exchange_weak(free, free & (free - 1), std::memory_order_acquire,
                                                std::memory_order_relaxed)) {  // relaxed: tried again
        const auto bit = static_cast<unsigned>(std::countr_zero(free));
        slots::before_offer(slab, g, std::uint64_t{1} << bit);
        return slots::begin_life(reinterpret_cast<void*>(slab->object(std::uint64_t{g} * kGroupObjects + bit)));
      }
    }
  }
  return nullptr;
}

}  // namespace

void prepare_emergency() {
  // relaxed: only the one that sets it goes on
  if (BRIMFUL_LIKELY(is_prepared.load(std::memory_order_relaxed)) ||
      is_prepared.exchange(true, std::memory_order_relaxed)) {  // relaxed: as above
    return;
  }
  for (std::size_t i = 0; i < kSlabs; ++i) {
    Slab* slab = slots::make_slab(class_of(kSizes[i]), kOwnerShared);
    if (slab == nullptr) return;
    for (unsigned g = 0; g < slab->groups; ++g) {
      slab->word(g).store(0, std::memory_order_relaxed);                  // relaxed: published below
      slab->remote(g).store(slots::kAllFree, std::memory_order_relaxed);  // relaxed: as above
    }
    reserve[i].store(slab, std::memory_order_release);  // pairs with: allocate_emergency() (the slab)
  }
}

void* allocate_emergency(std::size_t bytes, std::size_t alignment) {
  for (std::size_t i = 0; i < kSlabs; ++i) {
    if (bytes > meta::usable_bytes(class_of(kSizes[i])) || alignment > kSizes[i]) continue;
    Slab* slab = reserve[i].load(std::memory_order_acquire);  // pairs with: prepare_emergency()
    void* object = slab != nullptr ? take_from(slab) : nullptr;
    if (object != nullptr) return object;
  }
  return nullptr;
}

}  // namespace brimful::alloc
