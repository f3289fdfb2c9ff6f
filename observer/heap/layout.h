// SPDX-License-Identifier: MIT
//
// Where the library's structures are and how they are laid out: what src/debug/anatomy.cpp says of each name, looked up once.
#pragma once

#include <cstdint>

#include "memory/anatomy.h"

namespace brimful::observer::heap {

class Layout {
 public:
  // A name that the library lacks is 0, and `anatomy` says which.
  explicit Layout(memory::Anatomy& anatomy) : anatomy_(anatomy) {}

  // Whether each member lies in its structure, and no structure is of a length that none could have. What is read by this layout
  // then stays inside of what was copied.
  [[nodiscard]] bool makes_sense() const;

 private:
  memory::Anatomy& anatomy_;

 public:
  std::uint64_t heap = anatomy_["heap"];
  std::uint64_t heap_bytes = anatomy_["heap.bytes"];
  std::uint64_t table_entries = anatomy_["table.entries"];
  std::uint64_t table_span = anatomy_["table.span"];
  std::uint64_t table_covered = anatomy_["table.covered"];
  std::uint64_t table_none = anatomy_["table.none"];
  std::uint64_t table_hugepages = anatomy_["table.hugepages"];
  std::uint64_t table_entry_bytes = anatomy_["table.entry_bytes"];
  std::uint64_t table_record_bytes = anatomy_["table.record_bytes"];
  std::uint64_t hugepage_size = anatomy_["hugepage.size"];
  std::uint64_t hugepage_free = anatomy_["hugepage.free"];
  std::uint64_t hugepage_dirty = anatomy_["hugepage.dirty"];
  std::uint64_t hugepage_committed = anatomy_["hugepage.committed"];
  std::uint64_t hugepage_used_once = anatomy_["hugepage.used_once"];
  std::uint64_t hugepage_state = anatomy_["hugepage.state"];
  std::uint64_t hugepage_used = anatomy_["hugepage.used"];
  std::uint64_t arena_chunks = anatomy_["arena.chunks"];
  std::uint64_t chunk_next = anatomy_["chunk.next"];
  std::uint64_t chunk_bytes = anatomy_["chunk.bytes"];
  std::uint64_t chunk_in_window = anatomy_["chunk.in_window"];
  std::uint64_t live_map_regions = anatomy_["live_map.regions"];
  std::uint64_t live_map_count = anatomy_["live_map.count"];
  std::uint64_t region_size = anatomy_["region.size"];
  std::uint64_t region_covered = anatomy_["region.covered"];
  std::uint64_t region_words = anatomy_["region.words"];
  std::uint64_t windows = anatomy_["windows"];
  std::uint64_t windows_count = anatomy_["windows.count"];
  std::uint64_t window_size = anatomy_["window.size"];
  std::uint64_t window_start = anatomy_["window.start"];
  std::uint64_t window_bytes = anatomy_["window.bytes"];
  std::uint64_t huge_root = anatomy_["huge.root"];
  std::uint64_t huge_kept = anatomy_["huge.kept"];
  std::uint64_t header_start = anatomy_["header.start"];
  std::uint64_t header_bytes = anatomy_["header.bytes"];
  std::uint64_t header_owner = anatomy_["header.owner"];
  std::uint64_t header_last_owner = anatomy_["header.last_owner"];
  std::uint64_t header_kind = anatomy_["header.kind"];
  std::uint64_t header_size_class = anatomy_["header.size_class"];
  std::uint64_t header_groups = anatomy_["header.groups"];
  std::uint64_t slab_words = anatomy_["slab.words"];
  std::uint64_t slab_offered = anatomy_["slab.offered"];
  std::uint64_t slab_remote_align = anatomy_["slab.remote_align"];
  std::uint64_t run_left = anatomy_["run.left"];
  std::uint64_t run_right = anatomy_["run.right"];
  std::uint64_t run_next = anatomy_["run.next"];
  std::uint64_t run_granules = anatomy_["run.granules"];
  std::uint64_t run_size = anatomy_["run.size"];
  std::uint64_t kind_slab = anatomy_["kind.slab"];
  std::uint64_t kind_large = anatomy_["kind.large"];
  std::uint64_t owner_live = anatomy_["owner.live"];
  std::uint64_t owner_released = anatomy_["owner.released"];
  std::uint64_t owner_destroyed = anatomy_["owner.destroyed"];
  std::uint64_t owner_detached = anatomy_["owner.detached"];
  std::uint64_t owner_central = anatomy_["owner.central"];
  std::uint64_t owner_shared = anatomy_["owner.shared"];
  std::uint64_t owner_moving = anatomy_["owner.moving"];
  std::uint64_t owner_heap = anatomy_["owner.heap"];
  std::uint64_t owner_sampled = anatomy_["owner.sampled"];
  std::uint64_t owner_has_remote = anatomy_["owner.has_remote"];
  std::uint64_t owner_first_special = anatomy_["owner.first_special"];
  std::uint64_t contexts = anatomy_["contexts"];
  std::uint64_t contexts_most = anatomy_["contexts.most"];
  std::uint64_t contexts_first_stand_in = anatomy_["contexts.first_stand_in"];
  std::uint64_t context_size = anatomy_["context.size"];
  std::uint64_t context_id = anatomy_["context.id"];
  std::uint64_t context_counts = anatomy_["context.counts"];
  std::uint64_t context_magazines = anatomy_["context.magazines"];
  std::uint64_t magazine_objects = anatomy_["magazine.objects"];
  std::uint64_t classes = anatomy_["classes"];
  std::uint64_t class_table = anatomy_["class.table"];
  std::uint64_t class_size = anatomy_["class.size"];
  std::uint64_t class_bytes = anatomy_["class.bytes"];
  std::uint64_t class_groups = anatomy_["class.groups"];
  std::uint64_t class_granules = anatomy_["class.granules"];
  std::uint64_t samples_control = anatomy_["samples.control"];
  std::uint64_t guards_pool = anatomy_["guards.pool"];
};

}  // namespace brimful::observer::heap
