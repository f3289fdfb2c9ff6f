// SPDX-License-Identifier: MIT
//
// Run stacks: freed large blocks of up to 1 MiB that wait in a context for the next request of their length. They stand
// before the run caches (pages/run_cache.h), which take what finds no room here.
//
//   context ── stacks[0]        no block; when free() looks at the clock again, and what it said last
//          └── stacks[1 … 16]   of blocks of so many granules: count │ limit │ up to 7 headers, the last one freed on top
//
// malloc pops and free pushes in restartable sequences (arch/): a pair has one locked instruction, the one that ends the
// block's life (pages/large_run.h), where a run cache needs three. So a stack changes in its context alone. Others get at it
// when they close the context (slots/reclaim.cpp), and the context itself empties it for them (slots/run_stacks.h): in
// a look at the clock, before fresh memory is touched, when a thread ends, for malloc_trim().
//
// free() can't read the clock each time, for that costs as much as all else it does. It writes down what the last look
// said. The next look comes after so many frees as the last ones took for a few milliseconds: a program that frees one
// block every 10 ms looks each time, one that does nothing else looks once in 32 frees.
//
// Limits are few megabytes in all: of each length one block, and up to 7 while those are no more than 1 MiB.
#pragma once

#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "meta/header.h"

namespace brimful::pages {

struct alignas(64) RunStack {
  static constexpr std::size_t kRoom = 7;

  std::uint32_t count;
  std::uint32_t limit;  // constant; 0 where nothing is kept
  Run* runs[kRoom];
};

struct RunStacks {
  // In place of a stack for no granules: blocks that have no stack are refused here.
  struct alignas(64) Clock {
    std::uint32_t count;      // 0 for good
    std::uint32_t limit;      // 0 for good
    std::int32_t until_look;  // frees until one looks at the clock; lossy by design
    std::int32_t look_every;  // what it begins with
    std::uint64_t now_ms;     // the last look
    RunStacks* next;          // every context's; constant
    // Bytes that malloc may hand out before one block is sampled (slots/sampling.h); below 0: the next one is. Sequences
    // count it down; others store it, lossy by design.
    std::int64_t until_sample;
    // What it was raised by so far: less what it is now, the bytes that malloc has taken from the stacks. Modulo 2^64.
    std::uint64_t raised;

    void set_until_sample(std::int64_t until) {
      raised += static_cast<std::uint64_t>(until) - static_cast<std::uint64_t>(until_sample);
      until_sample = until;
    }
  };

  Clock clock;
  RunStack stacks[BRIMFUL_RUN_STACK_MOST];

  RunStack& of(std::size_t granules) { return stacks[granules - 1]; }
};

static_assert(sizeof(RunStack) == std::size_t{1} << BRIMFUL_RUN_STACK_SHIFT && offsetof(RunStack, count) == 0 &&
              offsetof(RunStack, limit) == BRIMFUL_RUN_STACK_LIMIT &&
              offsetof(RunStack, runs) == BRIMFUL_RUN_STACK_RUNS);
static_assert(sizeof(RunStacks::Clock) == sizeof(RunStack) && offsetof(RunStacks::Clock, count) == 0 &&
              offsetof(RunStacks::Clock, limit) == BRIMFUL_RUN_STACK_LIMIT &&
              offsetof(RunStacks::Clock, until_look) == BRIMFUL_RUN_STACKS_UNTIL_LOOK &&
              offsetof(RunStacks::Clock, now_ms) == BRIMFUL_RUN_STACKS_NOW &&
              offsetof(RunStacks::Clock, until_sample) == BRIMFUL_RUN_STACKS_UNTIL_SAMPLE);

// The block is so long from here on.
inline void set_length(Run* run, GranuleCount granules) {
  run->granules = granules;
  const std::uint32_t stack = granules.raw() <= BRIMFUL_RUN_STACK_MOST ? granules.raw() : 0;
  run->stack_offset = static_cast<std::uint16_t>(stack << BRIMFUL_RUN_STACK_SHIFT);
}

// What until_sample is while nothing is sampled.
inline constexpr std::int64_t kNoSample = INT64_MAX;

// Gives empty stacks their limits and makes them known. Caller holds the heap lock.
void begin_stacks(RunStacks& stacks);

// A free looked at the clock: when the next one does.
void note_look(RunStacks& stacks, std::uint64_t now_ms);

// Bytes of the blocks in all stacks at this moment. Any moment.
std::size_t stacked_run_bytes();

}  // namespace brimful::pages
