// SPDX-License-Identifier: MIT
//
// slots/offers.h.
#include "slots/offers.h"

#include "arch/sequences.h"
#include "base/bits.h"
#include "slots/sampling.h"

namespace brimful::slots {
namespace {

constexpr std::uint64_t kRestMs = 10;
// Values of offer_step: 1 … 6 offer 1 … 32 objects, 7 … 11 a group at a time, 1 … 16 of them.
constexpr unsigned kFirstOfGroups = 7;
constexpr unsigned kSteps = 12;

}  // namespace

std::uint64_t limit_offer(const Context* context, std::uint64_t objects) {
  const unsigned step = context->offer_step;
  if (BRIMFUL_LIKELY(step == 0) || step >= kFirstOfGroups) return objects;
  return lowest_ones(objects, 1U << (step - 1));
}

void empty_slots(Context* context) {
  if (!context->lock.try_lock()) return;
  context->offer_step = 1;
  beats_of(context) = 0;
  for (std::size_t c = 0; c < kClassCount; ++c) {
    Slot& slot = context->slots[c];
    if (slot.word == &arch::brimful_zero_word) continue;
    drop_offer(context, static_cast<ClassId>(c));
    if (arch::brimful_seq_empty(context, &slot) != arch::Outcome::kDone) break;  // this thread runs elsewhere now
  }
  context->lock.unlock();
}

std::int32_t groups_to_offer(Context* context, std::uint64_t passed_ms, std::int32_t usual) {
  if (!pages::is_waiting() && !context->has_slabs_left_over()) {
    context->offer_step = 0;
  } else if (passed_ms >= kRestMs) {
    context->offer_step = 1;
  }
  const unsigned step = context->offer_step;
  if (step == 0) return usual;
  return step < kFirstOfGroups ? 0 : std::int32_t{1} << (step - kFirstOfGroups);
}

void raise_offers(Context* context) {
  const unsigned step = context->offer_step;
  if (BRIMFUL_UNLIKELY(step != 0)) context->offer_step = static_cast<std::uint8_t>((step + 1) % kSteps);
}

}  // namespace brimful::slots
