// SPDX-License-Identifier: MIT
//
// slots/stand_in.h: where stand-ins come from.
#include "slots/stand_in.h"

#include <atomic>

#include "config/build.h"
#include "config/options.h"
#include "meta/block.h"
#include "pages/heap.h"

namespace brimful::slots {
namespace {

// Guarded by the heap lock.
constinit StandIn* free_stand_ins = nullptr;
constinit std::uint32_t made = 0;

StandIn* make_stand_in() {
  if (made == kMaxStandIns) return nullptr;
  auto* stand_in = static_cast<StandIn*>(pages::heap.arena.allocate(sizeof(StandIn)));
  if (stand_in == nullptr) return nullptr;
  for (Slot& slot : stand_in->slots) slot.word = &arch::brimful_zero_word;
  stand_in->active_id = arch::kNoContext;
  stand_in->id = kMaxContexts + made++;
  // relaxed: no thread has such an id yet
  arch::brimful_block.contexts[1 + stand_in->id].store(reinterpret_cast<Context*>(stand_in), std::memory_order_relaxed);
  return stand_in;
}

}  // namespace

StandIn* take_stand_in() {
  // The hardened tier's malloc has no hits, and neither have the middle layers for study.
  if (config::is_hardened() || config::kMiddle != config::Middle::kContexts) return nullptr;
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

}  // namespace brimful::slots
