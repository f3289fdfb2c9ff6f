// SPDX-License-Identifier: MIT
//
// The definition of slots::empty_context, which is not all of a Context; so it has a file of its own, where the name is not
// declared.
#include <cstddef>
#include <cstdint>

#include "arch/sequences.h"
#include "slots/context.h"

namespace brimful::slots {

// In no anonymous namespace: what has a type of one is local to the file.
struct alignas(Context) EmptyContext {
  constexpr EmptyContext() {
    for (Slot& slot : slots) slot.word = &arch::brimful_zero_word;
  }

  Slot slots[kClassCount] = {};
  std::uint32_t counts[kClassCount] = {};
  std::uint32_t active_id = arch::kNoContext;
  std::uint32_t id = arch::kNoContext;
  std::byte zeros[offsetof(Context, sampling) - offsetof(Context, lock)] = {};
};
static_assert(offsetof(EmptyContext, active_id) == offsetof(Context, active_id) &&
              offsetof(EmptyContext, id) == offsetof(Context, id) &&
              offsetof(EmptyContext, zeros) == offsetof(Context, lock) &&
              sizeof(EmptyContext) == offsetof(Context, sampling));

extern constinit EmptyContext defined_empty_context asm("brimful_empty_context");
BRIMFUL_HIDDEN constinit EmptyContext defined_empty_context;

}  // namespace brimful::slots
