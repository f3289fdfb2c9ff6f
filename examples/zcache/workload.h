// SPDX-License-Identifier: MIT
//
// What is done to the cache, and what is measured of it. Three states are weighed:
//
//   loaded    each piece of the corpus was put once, in order: the best that any allocator can look
//   churned   values were replaced by others of other sizes, erased, and put again, at random: a cache in its steady state
//   thinned   most values were erased, at random: a cache after its peak
//
// Each get() compares the value with the corpus, and at the end each key is read, also those that must be absent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache.h"
#include "corpus.h"
#include "options.h"

namespace zcache {

struct Weight {
  const char* state;
  Cache::Use cache;
  ValueMemory::Use memory;
  std::size_t resident;   // bytes more than before the first value
  std::size_t lazy_free;  // of those
  std::size_t settled;    // `resident` again after --settle seconds
};

// Nanoseconds.
struct Times {
  std::size_t calls = 0;
  double mean = 0;
  std::uint32_t median = 0;
  std::uint32_t p99 = 0;
  std::uint32_t most = 0;
};

struct Outcome {
  std::vector<Weight> weights;
  Times put;
  Times get;
  Times erase;
  std::size_t refused = 0;  // puts that found no memory
  std::size_t wrong = 0;    // values that were not what was put
};

// Throws Interrupted and std::bad_alloc.
Outcome run(const Options& options, const Corpus& corpus);

}  // namespace zcache
