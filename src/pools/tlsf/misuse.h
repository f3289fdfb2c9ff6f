// SPDX-License-Identifier: MIT
//
// What calls of the checked build look at before they change anything. In the other build `refuses` is nothing.
#pragma once

#include "pools/tlsf/pool.h"

namespace brimful::tlsf {

// What is wrong with `pointer`, which should be a live block of the pool, or NULL. O(regions), else constant.
const char* fault_of(const Pool& pool, const void* pointer);

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

}  // namespace brimful::tlsf
