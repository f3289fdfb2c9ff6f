// SPDX-License-Identifier: MIT
//
// The block: everything malloc's fast path looks up by number, behind one base register. The class tables are bytes
// (class numbers doubled, as slots are 16 bytes), indexed by the request itself up to 1 KiB and by 128-byte steps up to
// 32 KiB. Entry 0 of `contexts` is the empty context, for threads that are not attached; context i is entry i + 1.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "classes/size_classes.h"

namespace brimful {

struct Context;

// The table is 32 KiB of the library's data. More threads than this at once (in thread mode) share slabs that are served under a lock.
inline constexpr std::uint32_t kMaxContexts = 4096;

struct Block {
  std::uint8_t small[BRIMFUL_BLOCK_MEDIUM];
  std::uint8_t medium[BRIMFUL_BLOCK_SIZES - BRIMFUL_BLOCK_MEDIUM];
  std::uint64_t sizes[kClassCount];
  std::uint8_t limits[kClassCount];  // of objects in a magazine (slots/magazine.h)
  std::atomic<Context*> contexts[1 + kMaxContexts];

  // The class tables are filled at compile time; entry 0 of the contexts is `empty`.
  constexpr explicit Block(Context* empty) : small{}, medium{}, sizes{}, limits{}, contexts{empty} {
    for (std::size_t n = 0; n <= BRIMFUL_SMALL_MAX; ++n) small[n] = static_cast<std::uint8_t>(2 * class_of(n));
    for (std::size_t i = 0; i <= BRIMFUL_MEDIUM_MAX >> BRIMFUL_MEDIUM_SHIFT; ++i) {
      medium[i] = static_cast<std::uint8_t>(2 * class_of(i << BRIMFUL_MEDIUM_SHIFT));
    }
    for (std::size_t i = 0; i < kClassCount; ++i) sizes[i] = kSizeClasses[i].bytes;
  }
};

static_assert(offsetof(Block, medium) == BRIMFUL_BLOCK_MEDIUM);
static_assert(offsetof(Block, sizes) == BRIMFUL_BLOCK_SIZES);
static_assert(offsetof(Block, limits) == BRIMFUL_BLOCK_LIMITS);
static_assert(offsetof(Block, contexts) == BRIMFUL_BLOCK_CONTEXTS);
static_assert(BRIMFUL_SMALL_MAX < BRIMFUL_BLOCK_MEDIUM);
static_assert((BRIMFUL_MEDIUM_MAX >> BRIMFUL_MEDIUM_SHIFT) < BRIMFUL_BLOCK_SIZES - BRIMFUL_BLOCK_MEDIUM);

}  // namespace brimful
