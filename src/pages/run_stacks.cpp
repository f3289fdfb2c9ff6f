// SPDX-License-Identifier: MIT
//
// pages/run_stacks.h.
#include "pages/run_stacks.h"

#include <atomic>

#include "pages/run_cache.h"

namespace brimful::pages {
namespace {

constexpr std::size_t kStackGranules = (std::size_t{1} << 20) >> kGranuleShift;
// Looks nearer to each other than this are more than it takes to know the time; the clock's own step is up to 10 ms.
constexpr std::uint64_t kSoonMs = 4;
constexpr std::int32_t kMostFrees = 32;

constinit std::atomic<RunStacks*> all_stacks{nullptr};

}  // namespace

void begin_stacks(RunStacks& stacks) {
  stacks.clock.set_until_sample(kNoSample);
  if (!keeps_runs()) return;
  for (std::size_t granules = 1; granules <= BRIMFUL_RUN_STACK_MOST; ++granules) {
    const std::size_t fitting = kStackGranules / granules;
    stacks.of(granules).limit = static_cast<std::uint32_t>(fitting < RunStack::kRoom ? fitting : RunStack::kRoom);
  }
  stacks.clock.next = all_stacks.load(std::memory_order_relaxed);  // relaxed: written under the heap lock only
  all_stacks.store(&stacks, std::memory_order_release);            // pairs with: stacked_run_bytes() (the link)
}

void note_look(RunStacks& stacks, std::uint64_t now_ms) {
  RunStacks::Clock& clock = stacks.clock;
  const bool is_soon = now_ms - clock.now_ms < kSoonMs;
  clock.look_every = is_soon ? clock.look_every * 2 + 1 : clock.look_every / 4;
  if (clock.look_every > kMostFrees) clock.look_every = kMostFrees;
  clock.now_ms = now_ms;
  clock.until_look = clock.look_every;
}

std::size_t stacked_run_bytes() {
  std::size_t sum = 0;
  // pairs with: begin_stacks()
  for (RunStacks* stacks = all_stacks.load(std::memory_order_acquire); stacks != nullptr; stacks = stacks->clock.next) {
    for (std::size_t granules = 1; granules <= BRIMFUL_RUN_STACK_MOST; ++granules) {
      // relaxed: a rough figure
      const std::size_t count = std::atomic_ref(stacks->of(granules).count).load(std::memory_order_relaxed);
      sum += count * granules << kGranuleShift;
    }
  }
  return sum;
}

}  // namespace brimful::pages
