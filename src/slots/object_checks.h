// SPDX-License-Identifier: MIT
//
// What is looked at in objects themselves, when they are freed and before they are offered: the options `canary` and `zero`.
//
//   object  │ what the program may use │ canary │      8 bytes, drawn by address and a secret of the process
//
// malloc hands objects out by their bits, so nothing of a free object is the allocator's and what was written there once stays.
// Therefore the canary is written when a group is offered, and malloc's hit does nothing for it. free() compares it:
// an overflow of one byte or more into it is seen then. Its lowest byte is never 0, so a string's end is seen, too.
//
// With `zero` free() clears the object, and all of it has to be zero when it is to be offered next: who wrote to it meanwhile
// used it after free. Three places hand out objects: groups (slots/refill.cpp), one by one (the shared slabs, samples, heaps)
// and the signal handlers' reserve; each calls before_offer() first. What was never offered is not looked at, so
// memory that nobody has touched stays so; a slab that begins in used memory is cleared when it is made.
//
// Pages of free objects may go back to the system meanwhile (slots/free_pages.cpp): they come back as zeros, and the canary is
// written at each offer anyway.
#pragma once

#include <cstdint>

#include "base/compiler.h"
#include "config/options.h"
#include "meta/header.h"

namespace brimful::slots {

// Draws the secret, if there are canaries, and has the classes chosen that leave room for them. Once, before the first object.
void begin_object_checks();

// The memory of a new slab, which nobody else has seen yet.
void clear_slab(const Slab* slab);

namespace checks_detail {
void look_before_offer(Slab* slab, unsigned group, std::uint64_t objects);
bool look_before_free(Slab* slab, std::uint64_t index);
}  // namespace checks_detail

// Objects of the group (a mask), free and out of everybody's reach but the caller's, are going to be handed out. Reports a
// write after free. O(bytes) with `zero`, else O(objects).
inline void before_offer(Slab* slab, unsigned group, std::uint64_t objects) {
  if (BRIMFUL_UNLIKELY(config::checks.objects)) checks_detail::look_before_offer(slab, group, objects);
}

// The object is being freed: still its last user's, and from here on nobody's. Reports a write past its end, which the free
// goes on behind; false: it was free already, which was reported.
[[nodiscard]] inline bool before_free(Slab* slab, std::uint64_t index) {
  return BRIMFUL_LIKELY(!config::checks.objects) || checks_detail::look_before_free(slab, index);
}

}  // namespace brimful::slots
