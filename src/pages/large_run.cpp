// SPDX-License-Identifier: MIT
//
// pages/large_run.h.
#include "pages/large_run.h"

#include "config/options.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/purger.h"
#include "pages/run_cache.h"
#include "pages/run_stacks.h"

namespace brimful::pages {

namespace {

// A block of what `place` finds for so many granules.
template <class Place>
Run* make_run(std::size_t usable, Place place) {
  auto* run = static_cast<Run*>(heap.arena.allocate(sizeof(Run)));
  if (run == nullptr) return nullptr;
  const GranuleCount granules = GranuleCount::covering(usable);
  run->start = place(granules);
  if (run->start == 0) {
    heap.arena.free(run, sizeof(Run));
    return nullptr;
  }
  run->multiplier = kRunMultiplier;
  run->kind = Kind::kLarge;
  run->size_class = kNoClass;
  run->bytes = usable;
  set_length(run, granules);
  revive(run);
  heap.table.set(heap.table.id_of(run->start), run);
  return run;
}

}  // namespace

Run* allocate_large_run(std::size_t usable, std::size_t alignment) {
  return make_run(usable, [alignment](GranuleCount granules) {
    use_cached_before_fresh(granules);
    return heap.pages.allocate(granules, alignment, os::calls.node());
  });
}

Run* allocate_resident_run(std::size_t usable) {
  return make_run(usable,
                  [](GranuleCount granules) { return heap.pages.allocate_resident(granules, os::calls.node()); });
}

void free_large_run(Run* run, std::uint64_t stamp_ms) {
  const std::uint64_t start = run->start;
  const GranuleCount granules = run->granules;
  heap.table.clear(heap.table.id_of(start));
  run->kind = Kind::kNone;
  heap.arena.free(run, sizeof(Run));
  heap.pages.free(start, granules, stamp_ms);
  note_freed(stamp_ms, granules.bytes());
}

void free_block(Run* run, std::uint64_t now_ms) {
  if (run->kind != Kind::kHuge) return free_large_run(run, now_ms);
  heap.pages.backing().forget(run->start);
  config::options.purge_delay_ms != 0 ? heap.huge.keep(run, now_ms) : heap.huge.free(run);
}

}  // namespace brimful::pages
