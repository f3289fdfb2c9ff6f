// SPDX-License-Identifier: MIT
//
// heap/model.h: from headers to slabs and blocks, magazines, huge blocks; and what moved between two looks.
#include <algorithm>
#include <cstring>

#include "heap/model.h"

namespace brimful::observer::heap {
namespace {

template <class T>
T field(const std::byte* at, std::uint64_t offset) {
  T value;
  std::memcpy(&value, at + offset, sizeof value);
  return value;
}

constexpr std::size_t kMostHuge = 1 << 24;

}  // namespace

bool Model::add_slab(const std::byte* header, std::uint64_t address) {
  Slab slab = {};
  slab.header = address;
  slab.start = field<std::uint64_t>(header, layout_->header_start);
  slab.object_bytes = static_cast<std::uint32_t>(field<std::uint64_t>(header, layout_->header_bytes));
  slab.groups = field<std::uint16_t>(header, layout_->header_groups);
  slab.size_class = field<std::uint8_t>(header, layout_->header_size_class);
  slab.owner = field<std::uint32_t>(header, layout_->header_owner);
  slab.last_owner = field<std::uint32_t>(header, layout_->header_last_owner);
  if (slab.size_class >= classes_.size()) return false;
  const SizeClass& shape = classes_[slab.size_class];
  // A slab that ends in a page without access may have fewer groups, and nothing of an object of malloc(0) may be used.
  if (slab.groups == 0 || slab.groups > shape.groups || shape.bytes == 0) return false;
  if (slab.object_bytes != shape.bytes && slab.object_bytes != 0) return false;
  slab.object_bytes = static_cast<std::uint32_t>(shape.bytes);
  slab.end = slab.start + shape.granules * kGranuleBytes;
  const std::uint64_t align = layout_->slab_remote_align;
  const std::uint64_t words = slab.groups * std::uint64_t{8};
  const std::uint64_t remote = layout_->slab_offered + (words + align - 1) / align * align;
  const std::byte* const all = piece(raw_, address, remote + words);
  if (all == nullptr) return false;
  slab.words = all + layout_->slab_words;
  slab.offered = all + layout_->slab_offered;
  slab.remote = all + remote;
  slabs_.push_back(slab);
  return true;
}

void Model::find_slabs(std::uint64_t n) {
  const std::uint64_t address = raw_.table[n];
  if (address == 0 || address == layout_->table_none) return;
  const std::byte* const header = piece(raw_, address, layout_->slab_words);
  if (header == nullptr) {
    ++moving_granules_;
    return;
  }
  const auto start = field<std::uint64_t>(header, layout_->header_start);
  const auto kind = field<std::uint8_t>(header, layout_->header_kind);
  const auto owner = field<std::uint32_t>(header, layout_->header_owner);
  if (((start >> kGranuleShift) & (span_ - 1)) != n) return;  // not its first granule
  if (kind == layout_->kind_slab) {
    if (owner == layout_->owner_released || owner == layout_->owner_destroyed) return;
    if (!add_slab(header, address)) ++moving_granules_;
  } else if (kind == layout_->kind_large) {
    const auto bytes = field<std::uint64_t>(header, layout_->header_bytes);
    const auto* const run = piece(raw_, address, layout_->run_size);
    if (run == nullptr) return;
    const auto granules = field<std::uint32_t>(run, layout_->run_granules);
    const std::uint64_t end = start + granules * kGranuleBytes;
    if (granules == 0 || start + bytes > end) {
      ++moving_granules_;
      return;
    }
    blocks_.push_back({start, start + bytes, end, field<std::uint32_t>(header, layout_->header_last_owner), false,
                       owner == layout_->owner_live});
  }
}

bool Model::read_magazines() {
  std::vector<std::uint64_t> contexts(std::min<std::uint64_t>(layout_->contexts_most, 65536));
  std::uint32_t first_stand_in = 0;
  if (!(*read_)(layout_->contexts, contexts.data(), contexts.size() * 8) ||
      !(*read_)(layout_->contexts_first_stand_in, &first_stand_in, sizeof first_stand_in)) {
    return false;
  }
  const std::uint64_t most = layout_->magazine_objects;
  for (std::uint64_t n = 0; n + 1 < contexts.size() && n < first_stand_in; ++n) {
    const std::byte* const context = piece(raw_, contexts[n + 1], layout_->context_size);
    if (context == nullptr || field<std::uint32_t>(context, layout_->context_id) != n) continue;  // the empty one
    for (std::uint64_t c = 0; c < classes_.size(); ++c) {
      const auto count = field<std::uint32_t>(context, layout_->context_counts + c * 4);
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, most); ++i) {
        const auto address = field<std::uint64_t>(context, layout_->context_magazines + (c * most + i) * 8);
        kept_.push_back({address, static_cast<std::uint32_t>(n)});
      }
    }
  }
  return true;
}

bool Model::read_huge() {
  std::uint64_t root = 0;
  std::uint64_t kept = 0;
  if (!word_at(layout_->huge_root, root) || !word_at(layout_->huge_kept, kept)) return false;
  const auto add = [this](std::uint64_t address, bool is_live) -> const std::byte* {
    const std::byte* const run = address == 0 ? nullptr : piece(raw_, address, layout_->run_size);
    if (run == nullptr) return nullptr;
    const auto start = field<std::uint64_t>(run, layout_->header_start);
    const auto bytes = field<std::uint64_t>(run, layout_->header_bytes);
    const auto owner = field<std::uint32_t>(run, layout_->header_owner);
    blocks_.push_back({start, start + bytes, start + bytes, field<std::uint32_t>(run, layout_->header_last_owner), true,
                       is_live && owner == layout_->owner_live});
    return run;
  };
  std::vector<std::uint64_t> todo = {root};
  for (std::size_t n = 0; !todo.empty() && n < kMostHuge; ++n) {
    const std::byte* const run = add(todo.back(), true);
    todo.pop_back();
    if (run == nullptr) continue;
    todo.push_back(field<std::uint64_t>(run, layout_->run_left));
    todo.push_back(field<std::uint64_t>(run, layout_->run_right));
  }
  for (std::size_t n = 0; kept != 0 && n < kMostHuge; ++n) {
    const std::byte* const run = add(kept, false);
    kept = run == nullptr ? 0 : field<std::uint64_t>(run, layout_->run_next);
  }
  return true;
}

void Model::compare(const Raw& second) {
  const std::size_t common = std::min(raw_.table.size(), second.table.size());
  for (std::size_t n = 0; n < common; ++n) {
    if (raw_.table[n] != second.table[n]) ++moving_granules_;
  }
  const std::uint64_t align = layout_->slab_remote_align;
  for (Slab& slab : slabs_) {
    const std::uint64_t words = slab.groups * std::uint64_t{8};
    const std::uint64_t remote = layout_->slab_offered + (words + align - 1) / align * align;
    const std::byte* const again = piece(second, slab.header, remote + words);
    slab.is_moving = again == nullptr || field<std::uint64_t>(again, layout_->header_start) != slab.start ||
                     std::memcmp(again + layout_->slab_words, slab.words, words) != 0 ||
                     std::memcmp(again + layout_->slab_offered, slab.offered, words) != 0 ||
                     std::memcmp(again + remote, slab.remote, words) != 0;
  }
}

}  // namespace brimful::observer::heap
