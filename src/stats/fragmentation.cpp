// SPDX-License-Identifier: MIT
//
// stats/fragmentation.h.
#include "stats/fragmentation.h"

#include <atomic>
#include <bit>

#include "meta/live_map.h"
#include "os/calls.h"
#include "os/resident.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::stats {
namespace {

using os::ResidentPages;

// Bytes of live objects on resident pages. Sets `live` to their number.
std::uint64_t live_bytes(Slab* slab, ResidentPages& pages, std::uint64_t& live) {
  std::uint64_t bytes = 0;
  std::uint64_t begin = 0;  // number of the first object of the current run of live ones
  bool in_run = false;
  live = 0;
  for (unsigned g = 0; g < slab->groups; ++g) {
    const std::uint64_t word = ~slots::free_bits(slab, g);
    live += count_ones(word);
    for (unsigned bit = 0; bit < kGroupObjects; in_run = !in_run) {
      const std::uint64_t rest = (in_run ? ~word : word) >> bit;
      if (rest == 0) break;
      bit += static_cast<unsigned>(std::countr_zero(rest));
      const std::uint64_t index = std::uint64_t{g} * kGroupObjects + bit;
      if (in_run) {
        bytes += pages.bytes(slab->object(begin), slab->object(index));
      } else {
        begin = index;
      }
    }
  }
  return in_run ? bytes + pages.bytes(slab->object(begin), slab->object(slab->count())) : bytes;
}

void add_slab(MemoryReport& into, Slab* slab, ResidentPages& pages) {
  MemoryUse& use = into.classes[slab->size_class];
  const std::uint64_t resident = pages.bytes(slab->start, slab->start + GranuleCount(slab->shape().granules).bytes());
  std::uint64_t live = 0;
  const std::uint64_t covered = live_bytes(slab, pages, live);
  ++use.slabs;
  use.live += live;
  use.live_bytes += covered;
  // The kernel makes hugepages of what is there at any moment (khugepaged), also between our two looks.
  use.resident_bytes += resident < covered ? covered : resident;
}

void add_block(MemoryReport& into, const Run* run, std::uint64_t end, ResidentPages& pages) {
  ++into.blocks.slabs;
  ++into.blocks.live;
  const std::uint64_t usable_end = run->start + run->usable();
  const std::uint64_t live = pages.bytes(run->start, usable_end);
  into.blocks.live_bytes += live;
  into.blocks.resident_bytes += live + pages.bytes(usable_end, end);
}

// Granules that begin neither a slab nor a block are free, or hold metadata.
void add_window(MemoryReport& into, std::uint64_t start, std::uint64_t end) {
  meta::GranuleTable& table = pages::heap.table;
  ResidentPages pages(start, end);
  for (std::uint64_t at = start; at < end;) {
    Header* header = table.look_up(at);
    std::uint64_t next = at + kGranuleBytes;
    if (header->kind == Kind::kSlab && header->start == at) {
      auto* slab = static_cast<Slab*>(header);
      next = at + GranuleCount(slab->shape().granules).bytes();
      add_slab(into, slab, pages);
    } else if (header->kind == Kind::kLarge && header->start == at) {
      auto* run = static_cast<Run*>(header);
      next = at + run->granules.bytes();
      if (pages::is_live(run)) {
        add_block(into, run, next, pages);
      } else {
        into.run_free_bytes += pages.bytes(at, next);
      }
    } else {
      into.run_free_bytes += pages.bytes(at, next);
    }
    at = next;
  }
}

void add_windows(MemoryReport& into) {
  pages::Heap& heap = pages::heap;
  std::uint64_t granules = heap.table.covered();  // numbered through all windows; what lies behind was never used
  for (std::size_t i = 0; i < heap.pages.window_count() && granules != 0; ++i) {
    const auto window = heap.pages.window(i);
    const std::uint64_t count = window.bytes >> kGranuleShift;
    const std::uint64_t seen = count < granules ? count : granules;
    add_window(into, window.start, window.start + (seen << kGranuleShift));
    granules -= seen;
  }
}

void add_metadata(MemoryReport& into) {
  pages::Heap& heap = pages::heap;
  const auto add = [&into](std::uint64_t start, std::uint64_t bytes) {
    into.metadata_bytes += ResidentPages(start, start + bytes).all_bytes();
  };
  heap.table.visit_memory(add);
  meta::live_map.visit_memory(add);
  heap.arena.visit_chunks([&](std::uint64_t start, std::uint64_t bytes, bool in_window) {
    add(start, bytes);
    if (in_window) into.run_free_bytes -= ResidentPages(start, start + bytes).all_bytes();
  });
}

// Objects in magazines are free, but their slabs don't know yet.
void take_off_magazines(MemoryReport& into) {
  for (Context* context = slots::all_contexts(); context != nullptr; context = context->next_all) {
    for (std::size_t c = 0; c < kClassCount; ++c) {
      MemoryUse& use = into.classes[c];
      // relaxed: a count for reports
      const std::uint64_t held = std::atomic_ref(context->counts[c]).load(std::memory_order_relaxed);
      const std::uint64_t objects = held < use.live ? held : use.live;
      const std::uint64_t bytes = objects * kSizeClasses[c].bytes;
      use.live -= objects;
      use.live_bytes -= bytes < use.live_bytes ? bytes : use.live_bytes;
    }
  }
}

void sum_up(MemoryReport& into) {
  const slots::RequestCounts requests = slots::count_requests();
  const auto add = [&into](MemoryUse& use, const slots::RequestSums& seen) {
    use.requests = seen;
    into.live_bytes += use.live_bytes;
    into.slab_free_bytes += use.resident_bytes - use.live_bytes;
    into.internal_bytes += use.internal_bytes();
  };
  for (std::size_t c = 0; c < kClassCount; ++c) add(into.classes[c], requests[c]);
  add(into.blocks, requests[slots::kLargeRequests]);
  into.resident_bytes = into.live_bytes + into.slab_free_bytes + into.run_free_bytes + into.metadata_bytes;
}

}  // namespace

std::uint64_t MemoryUse::internal_bytes() const {
  if (requests.granted_bytes == 0) return 0;
  const std::uint64_t waste = requests.granted_bytes - requests.requested_bytes;
  // Products of two sums of bytes exceed 64 bits.
  return static_cast<std::uint64_t>(static_cast<double>(live_bytes) * static_cast<double>(waste) /
                                    static_cast<double>(requests.granted_bytes));
}

std::uint64_t share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<std::uint64_t>(static_cast<double>(part) / static_cast<double>(whole) * 1000.0);
}

void take_memory_report(MemoryReport& into) {
  into = MemoryReport();
  pages::Heap& heap = pages::heap;
  const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
  into.sampled = slots::sampled_use();
  const sync::MutexLock guard(heap.lock);
  add_windows(into);
  heap.huge.visit([&into](const Run& block) {
    ResidentPages pages(block.start, block.start + block.bytes);
    add_block(into, &block, block.start + block.bytes, pages);
  });
  heap.huge.visit_kept([&into](const Run& block) {
    into.run_free_bytes += ResidentPages(block.start, block.start + block.bytes).all_bytes();
  });
  add_metadata(into);
  take_off_magazines(into);
  sum_up(into);
}

}  // namespace brimful::stats
