// SPDX-License-Identifier: MIT
//
// heap/layout.h. The table is the process's own word, and its memory may be damaged: it is believed as far as it is possible.
#include "heap/layout.h"

#include <algorithm>
#include <initializer_list>

namespace brimful::observer::heap {
namespace {

constexpr std::uint64_t kMostStructure = std::uint64_t{1} << 16;
constexpr std::uint64_t kMostContext = std::uint64_t{1} << 24;

// Members of at most 8 bytes, at these offsets.
bool are_in(std::uint64_t structure_bytes, std::uint64_t most, std::initializer_list<std::uint64_t> offsets) {
  return structure_bytes >= sizeof(std::uint64_t) && structure_bytes <= most &&
         std::all_of(offsets.begin(), offsets.end(),
                     [&](std::uint64_t offset) { return offset <= structure_bytes - sizeof(std::uint64_t); });
}

}  // namespace

bool Layout::makes_sense() const {
  const auto header = {header_start, header_bytes,  header_owner,     header_last_owner,
                       header_kind,  header_groups, header_size_class};
  const bool has_members =
      are_in(slab_words, kMostStructure, header) && are_in(run_size, kMostStructure, header) &&
      are_in(run_size, kMostStructure, {run_left, run_right, run_next, run_granules}) &&
      // Its members are of four bytes, or of one.
      are_in(hugepage_size + 4, kMostStructure,
             {hugepage_free, hugepage_dirty, hugepage_committed, hugepage_used_once, hugepage_state}) &&
      are_in(region_size, kMostStructure, {region_covered, region_words}) &&
      are_in(window_size, kMostStructure, {window_start, window_bytes}) &&
      are_in(class_size + 4, kMostStructure, {class_bytes, class_groups, class_granules}) &&
      are_in(context_size, kMostContext, {context_id, context_counts, context_magazines}) &&
      chunk_in_window < kMostStructure;
  const bool has_words = slab_offered >= slab_words && slab_offered <= kMostStructure && slab_remote_align != 0 &&
                         slab_remote_align <= kMostStructure;
  const std::uint64_t rows = std::min<std::uint64_t>(classes, 255);
  const bool has_magazines = magazine_objects <= kMostContext && context_counts + rows * 4 <= context_size &&
                             context_magazines + rows * magazine_objects * 8 <= context_size;
  return has_members && has_words && has_magazines;
}

}  // namespace brimful::observer::heap
