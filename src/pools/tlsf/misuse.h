// SPDX-License-Identifier: MIT
//
// What calls of the checked build look at before they change anything. In the other build `refuses` is nothing.
#pragma once

#include "base/compiler.h"
#include "pools/tlsf/block.h"

namespace brimful::tlsf {

using Pool = brimful_tlsf;

// What is wrong with `pointer`, which should be a live block of the pool, or NULL. O(regions), else constant.
const char* fault_of(const Pool& pool, const void* pointer);

// The first block that a search for `stride` bytes reads and that is no free block of the pool, as one that was written
// to after its free is not; `*what` says why. NULL: none.
const Block* damaged_in_search(const Pool& pool, std::size_t stride, const char** what);

// Tells the pool's hook, or traps.
void report(Pool& pool, const char* what, const void* pointer);

// Whether `pointer` is no live block of the pool; reported then.
BRIMFUL_INLINE bool refuses(Pool& pool, const void* pointer) {
  if constexpr (!kChecked) return false;
  const char* const what = fault_of(pool, pointer);
  if (BRIMFUL_LIKELY(what == nullptr)) return false;
  report(pool, what, pointer);
  return true;
}

// Whether a search for `stride` bytes would read what is no free block of the pool; reported then.
BRIMFUL_INLINE bool refuses_search(Pool& pool, std::size_t stride) {
  if constexpr (!kChecked) return false;
  const char* what = nullptr;
  const Block* const damaged = damaged_in_search(pool, stride, &what);
  if (BRIMFUL_LIKELY(damaged == nullptr)) return false;
  report(pool, what, payload_of(damaged));
  return true;
}

}  // namespace brimful::tlsf
