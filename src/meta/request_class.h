// SPDX-License-Identifier: MIT
//
// Which class a request gets, and what a program may use of its objects. With canaries (slots/object_checks.h) that is eight
// bytes less than the object has, and then another table leads from requests to classes: malloc's fast path reads it as ever.
// The largest class has no canary, or requests of its size would have nowhere to go. With the option `guard` the smallest class
// is left to malloc(0).
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "arch/sequences.h"
#include "base/compiler.h"
#include "classes/size_classes.h"
#include "config/options.h"
#include "meta/block.h"

namespace brimful::meta {

inline constexpr std::size_t kCanaryBytes = sizeof(std::uint64_t);

// Objects of malloc(0) alone, which nobody may touch (slots/slab_guard.h).
inline bool is_sealed_class(ClassId size_class) { return size_class == 0 && config::options.guard != 0; }

inline bool has_canary(ClassId size_class) {
  return config::checks.canary && size_class != kClassCount - 1 && !is_sealed_class(size_class);
}

// Bytes of an object of the class that belong to the program.
inline std::size_t usable_bytes(ClassId size_class) {
  if (BRIMFUL_UNLIKELY(is_sealed_class(size_class))) return 0;
  return kSizeClasses[size_class].bytes - (has_canary(size_class) ? kCanaryBytes : 0);
}

// The class of a request, as malloc's fast path has it; kClassCount: none. `alignment` is a power of two.
inline std::size_t class_for(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMaxClassBytes) return kClassCount;
  const Block& block = arch::brimful_block;
  if (alignment > kObjectAlignment) {
    const std::size_t with_canary =
        config::checks.canary ? class_of_aligned(bytes + kCanaryBytes, alignment) : kClassCount;
    return with_canary < kClassCount ? with_canary : class_of_aligned(bytes, alignment);
  }
  if (bytes <= BRIMFUL_SMALL_MAX) return block.small[bytes] / 2U;
  return block.medium[(bytes + (1U << BRIMFUL_MEDIUM_SHIFT) - 1) >> BRIMFUL_MEDIUM_SHIFT] / 2U;
}

// Chooses the tables of the fast paths by the options. Once, before the first object; a request that came before must ask again.
void choose_class_tables();

}  // namespace brimful::meta
