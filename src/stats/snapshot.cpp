// SPDX-License-Identifier: MIT
//
// stats/snapshot.h.
#include "stats/snapshot.h"

#include "pages/heap.h"
#include "pages/large_run.h"
#include "slots/guards.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::stats {

void take_snapshot(Snapshot& into) {
  into = Snapshot();
  pages::Heap& heap = pages::heap;
  const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
  const sync::MutexLock guard(heap.lock);
  for (std::uint64_t i = 0; i < heap.table.covered(); ++i) {
    Header* header = heap.table.get(GranuleId(i));
    // Blocks over several granules count once, at their first.
    if (header->kind == Kind::kNone || heap.table.id_of(header->start) != GranuleId(i)) continue;
    // relaxed: written under this lock's holder, or about to be; the heap's destroyer alone cares
    if (header->owner.load(std::memory_order_relaxed) == kOwnerDestroyed) continue;
    if (header->kind == Kind::kSlab) {
      auto* slab = static_cast<Slab*>(header);
      const unsigned free = slots::free_objects(slab);
      ClassUse& use = into.classes[slab->size_class];
      ++use.slabs;
      use.free += free;
      use.live += slab->count() - free;
      into.live_bytes += (slab->count() - free) * slab->shape().bytes;
      into.slab_free_bytes += std::uint64_t{free} * slab->shape().bytes;
    } else if (header->kind == Kind::kLarge && !pages::is_live(static_cast<Run*>(header))) {
      into.dirty_bytes += static_cast<Run*>(header)->granules.bytes();
    } else if (header->kind == Kind::kLarge) {
      ++into.large_blocks;
      into.large_bytes += static_cast<Run*>(header)->usable();
    }
  }
  into.huge_blocks = heap.huge.count();
  into.huge_bytes = heap.huge.used_bytes();
  const slots::GuardedUse guarded = slots::guarded_use();
  into.guarded_objects = guarded.objects;
  into.guarded_bytes = guarded.bytes;
  into.live_bytes += into.large_bytes + into.huge_bytes + guarded.bytes;
  const pages::PageStats pages = heap.pages.stats();
  into.dirty_bytes += pages.dirty_bytes + heap.huge.kept_bytes();
  into.reserved_bytes = pages.reserved_bytes;
  into.committed_bytes = pages.committed_bytes;
  into.hugetlb_bytes = pages.hugetlb_bytes;
  into.metadata_bytes = heap.arena.mapped_bytes();
  into.events = slots::count_events();
}

}  // namespace brimful::stats
