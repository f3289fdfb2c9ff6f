// SPDX-License-Identifier: MIT
//
// census.h.
#include "census.h"

#include <sys/mman.h>

#include <algorithm>
#include <map>
#include <vector>

#include "os/calls.h"
#include "pages/heap.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::topology {
namespace {

void add_kept(Census& census, const Context& context) {
  for (std::size_t c = 0; c < kClassCount; ++c) {
    census.kept_objects += context.counts[c];
    census.kept_bytes += std::uint64_t{context.counts[c]} * kSizeClasses[c].bytes;
  }
}

std::uint64_t resident_bytes(std::uint64_t start, std::size_t bytes) {
  const std::size_t page = os::page_bytes();
  std::vector<unsigned char> pages(bytes / page);
  if (mincore(reinterpret_cast<void*>(start), bytes, pages.data()) != 0) return 0;
  return page * static_cast<std::uint64_t>(
                    std::count_if(pages.begin(), pages.end(), [](unsigned char state) { return (state & 1) != 0; }));
}

void add_slab(Census& census, Slab* slab, std::map<std::uint32_t, std::uint64_t>& owned) {
  const std::uint32_t owner = slots::owner_id(slab->owner.load());
  if (owner == kOwnerShared) return;
  const std::uint64_t free = slots::free_objects(slab);
  ++census.slabs;
  const std::size_t bytes = GranuleCount(slab->shape().granules).bytes();
  census.slab_bytes += bytes;
  census.resident_bytes += resident_bytes(slab->start, bytes);
  census.free_bytes += free * slab->shape().bytes;
  census.live_bytes += (slab->count() - free) * slab->bytes;
  census.header_bytes += Slab::bytes_for(slab->groups);
  if (owner < kFirstSpecialOwner) census.most_owned = std::max(census.most_owned, ++owned[owner]);
  if (owner < kFirstSpecialOwner) ++census.owned_slabs;
  if (owner == kOwnerDetached) ++census.detached_slabs;
  if (owner == kOwnerCentral) ++census.central_slabs;
}

}  // namespace

Census take_census() {
  Census census = {};
  pages::Heap& heap = pages::heap;
  const sync::MutexLock guard(heap.lock);
  for (Context* context = slots::all_contexts(); context != nullptr; context = context->next_all) {
    ++census.contexts;
    add_kept(census, *context);
  }
  std::map<std::uint32_t, std::uint64_t> owned;
  for (std::uint64_t i = 0; i < heap.table.covered(); ++i) {
    Header* header = heap.table.get(GranuleId(i));
    if (header->kind != Kind::kSlab || heap.table.id_of(header->start) != GranuleId(i)) continue;
    add_slab(census, static_cast<Slab*>(header), owned);
  }
  census.live_bytes -= census.kept_bytes;
  census.context_bytes = census.contexts * sizeof(Context);
  census.metadata_bytes = heap.arena.mapped_bytes();
  census.table_bytes = heap.table.covered() * (sizeof(Header*) + 1);
  return census;
}

}  // namespace brimful::topology
