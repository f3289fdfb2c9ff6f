// SPDX-License-Identifier: MIT
//
// slots/user_heap.h: the end of a heap. Each slab becomes free granules, each block goes where freed blocks go; no
// object is looked at. The heap lock is let go between batches, so that others don't wait for all of a large heap.
//
// In tier:hardened the memory goes back to the system at once and the addresses stay taken, with their headers in the
// granule table, owner kOwnerDestroyed: whoever frees one of those blocks then is told. The last GiB of addresses is
// kept, and all of it given up before memory is refused.
#include "config/options.h"
#include "meta/live_map.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "slots/heap_slabs.h"
#include "slots/slab.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

constexpr int kBatch = 64;
constexpr std::size_t kQuarantineBytes = std::size_t{1} << 30;

// Guarded by the heap lock.
struct Quarantine {
  List<Slab> slabs;
  List<Run> blocks;
  std::size_t bytes;
};
constinit Quarantine quarantine = {};

// The longest dead slab and block. Caller holds the heap lock.
void release_oldest(std::uint64_t now_ms) {
  if (Slab* slab = quarantine.slabs.pop_front()) {
    quarantine.bytes -= bytes_of(slab);
    unmake_slab(slab, now_ms);
  }
  if (Run* run = quarantine.blocks.pop_front()) {
    quarantine.bytes -= run->granules.bytes();
    pages::free_large_run(run, now_ms);
  }
}

void release_until(std::size_t most, std::uint64_t now_ms) {
  const sync::MutexLock guard(pages::heap.lock);
  while (quarantine.bytes > most) release_oldest(now_ms);
}

void keep_dead(Slab* slab) {
  const std::size_t bytes = bytes_of(slab);
  meta::live_map.clear_all(slab->start, bytes);
  slab->free_all();
  slab->owner.store(kOwnerDestroyed, std::memory_order_relaxed);  // relaxed: the program orders its own frees
  os::calls.purge(slab->start, bytes);
  const sync::MutexLock guard(pages::heap.lock);
  quarantine.slabs.push_back(slab);
  quarantine.bytes += bytes;
}

void keep_dead(Run* run) {
  run->owner.store(kOwnerDestroyed, std::memory_order_relaxed);  // relaxed: as above
  os::calls.purge(run->start, run->bytes);
  const sync::MutexLock guard(pages::heap.lock);
  quarantine.blocks.push_back(run);
  quarantine.bytes += run->granules.bytes();
}

void keep_dead(List<Slab>& slabs, std::uint64_t now_ms) {
  while (Slab* slab = slabs.pop_front()) {
    keep_dead(slab);
    release_until(kQuarantineBytes, now_ms);
  }
}

void bury_slabs(List<Slab>& slabs, std::uint64_t now_ms) {
  if (config::is_hardened()) return keep_dead(slabs, now_ms);
  if (config::checks.zero) {
    for (Slab* slab = slabs.front(); slab != nullptr; slab = slab->next) os::calls.purge(slab->start, bytes_of(slab));
  }
  while (!slabs.empty()) {
    const sync::MutexLock guard(pages::heap.lock);
    for (int i = 0; i < kBatch && !slabs.empty(); ++i) unmake_slab(slabs.pop_front(), now_ms);
  }
}

void bury_blocks(Run* run, std::uint64_t now_ms) {
  while (run != nullptr) {
    Run* next = run->heap_next;
    run->last_owner.store(0, std::memory_order_relaxed);  // relaxed: nobody may ask any more
    if (config::is_hardened() && run->kind == Kind::kLarge) {
      keep_dead(run);
      release_until(kQuarantineBytes, now_ms);
    } else {
      if (config::checks.zero) os::calls.purge(run->start, run->bytes);
      // relaxed: as above
      run->owner.store(kOwnerCached, std::memory_order_relaxed);
      const sync::MutexLock guard(pages::heap.lock);
      pages::free_block(run, now_ms);
    }
    run = next;
  }
}

}  // namespace

void bury(UserHeap& heap) {
  const std::uint64_t now_ms = os::calls.now_ms();
  bury_slabs(heap.full, now_ms);
  bury_slabs(heap.lent, now_ms);  // of threads that did not survive a fork
  for (List<Slab>& slabs : heap.partial) bury_slabs(slabs, now_ms);
  bury_blocks(heap.blocks, now_ms);
  heap.blocks = nullptr;
  heap.nested_blocks.store(nullptr, std::memory_order_relaxed);  // relaxed: they were in the list, too
  heap.has_nested.store(false, std::memory_order_relaxed);       // relaxed: what handlers freed is gone
  heap.counts = HeapCounts();
}

void end_quarantine() {
  if (config::is_hardened()) release_until(0, os::calls.now_ms());
}

}  // namespace brimful::slots
