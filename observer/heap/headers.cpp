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
  slab.start = field<std::uint64_t>(header, constants_["header.start"]);
  slab.object_bytes = static_cast<std::uint32_t>(field<std::uint64_t>(header, constants_["header.bytes"]));
  slab.groups = field<std::uint16_t>(header, constants_["header.groups"]);
  slab.size_class = field<std::uint8_t>(header, constants_["header.size_class"]);
  slab.owner = field<std::uint32_t>(header, constants_["header.owner"]);
  slab.last_owner = field<std::uint32_t>(header, constants_["header.last_owner"]);
  if (slab.size_class >= classes_.size()) return false;
  const SizeClass& shape = classes_[slab.size_class];
  if (slab.groups != shape.groups || slab.object_bytes != shape.bytes) return false;
  slab.end = slab.start + shape.granules * kGranuleBytes;
  const std::uint64_t align = constants_["slab.remote_align"];
  const std::uint64_t remote = constants_["slab.offered"] + (slab.groups * 8 + align - 1) / align * align;
  const std::byte* const all = piece(raw_, address, remote + slab.groups * 8);
  if (all == nullptr) return false;
  slab.words = all + constants_["slab.words"];
  slab.offered = all + constants_["slab.offered"];
  slab.remote = all + remote;
  slabs_.push_back(slab);
  return true;
}

void Model::find_slabs(std::uint64_t n) {
  const std::uint64_t address = raw_.table[n];
  if (address == 0 || address == constants_["table.none"]) return;
  const std::byte* const header = piece(raw_, address, constants_["slab.words"]);
  if (header == nullptr) {
    ++moving_granules_;
    return;
  }
  const auto start = field<std::uint64_t>(header, constants_["header.start"]);
  const auto kind = field<std::uint8_t>(header, constants_["header.kind"]);
  const auto owner = field<std::uint32_t>(header, constants_["header.owner"]);
  if (((start >> kGranuleShift) & (span_ - 1)) != n) return;  // not its first granule
  if (kind == constants_["kind.slab"]) {
    if (owner == constants_["owner.released"] || owner == constants_["owner.destroyed"]) return;
    if (!add_slab(header, address)) ++moving_granules_;
  } else if (kind == constants_["kind.large"]) {
    const auto bytes = field<std::uint64_t>(header, constants_["header.bytes"]);
    const auto* const run = piece(raw_, address, constants_["run.size"]);
    if (run == nullptr) return;
    const auto granules = field<std::uint32_t>(run, constants_["run.granules"]);
    const std::uint64_t end = start + granules * kGranuleBytes;
    if (granules == 0 || start + bytes > end) {
      ++moving_granules_;
      return;
    }
    blocks_.push_back({start, start + bytes, end, field<std::uint32_t>(header, constants_["header.last_owner"]), false,
                       owner == constants_["owner.live"]});
  }
}

bool Model::read_magazines() {
  std::vector<std::uint64_t> contexts(std::min<std::uint64_t>(constants_["contexts.most"], 65536));
  std::uint32_t first_stand_in = 0;
  if (!(*read_)(constants_["contexts"], contexts.data(), contexts.size() * 8) ||
      !(*read_)(constants_["contexts.first_stand_in"], &first_stand_in, sizeof first_stand_in)) {
    return false;
  }
  const std::uint64_t most = constants_["magazine.objects"];
  for (std::uint64_t n = 0; n + 1 < contexts.size() && n < first_stand_in; ++n) {
    const std::byte* const context = piece(raw_, contexts[n + 1], constants_["context.size"]);
    if (context == nullptr || field<std::uint32_t>(context, constants_["context.id"]) != n) continue;  // the empty one
    for (std::uint64_t c = 0; c < classes_.size(); ++c) {
      const auto count = field<std::uint32_t>(context, constants_["context.counts"] + c * 4);
      for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, most); ++i) {
        const auto address = field<std::uint64_t>(context, constants_["context.magazines"] + (c * most + i) * 8);
        kept_.push_back({address, static_cast<std::uint32_t>(n)});
      }
    }
  }
  return true;
}

bool Model::read_huge() {
  std::uint64_t root = 0;
  std::uint64_t kept = 0;
  if (!variable("huge.root", root) || !variable("huge.kept", kept)) return false;
  const auto add = [this](std::uint64_t address, bool is_live) -> const std::byte* {
    const std::byte* const run = address == 0 ? nullptr : piece(raw_, address, constants_["run.size"]);
    if (run == nullptr) return nullptr;
    const auto start = field<std::uint64_t>(run, constants_["header.start"]);
    const auto bytes = field<std::uint64_t>(run, constants_["header.bytes"]);
    const auto owner = field<std::uint32_t>(run, constants_["header.owner"]);
    blocks_.push_back({start, start + bytes, start + bytes, field<std::uint32_t>(run, constants_["header.last_owner"]), true,
                       is_live && owner == constants_["owner.live"]});
    return run;
  };
  std::vector<std::uint64_t> todo = {root};
  for (std::size_t n = 0; !todo.empty() && n < kMostHuge; ++n) {
    const std::byte* const run = add(todo.back(), true);
    todo.pop_back();
    if (run == nullptr) continue;
    todo.push_back(field<std::uint64_t>(run, constants_["run.left"]));
    todo.push_back(field<std::uint64_t>(run, constants_["run.right"]));
  }
  for (std::size_t n = 0; kept != 0 && n < kMostHuge; ++n) {
    const std::byte* const run = add(kept, false);
    kept = run == nullptr ? 0 : field<std::uint64_t>(run, constants_["run.next"]);
  }
  return true;
}

void Model::compare(const Raw& second) {
  const std::size_t common = std::min(raw_.table.size(), second.table.size());
  for (std::size_t n = 0; n < common; ++n) {
    if (raw_.table[n] != second.table[n]) ++moving_granules_;
  }
  const std::uint64_t align = constants_["slab.remote_align"];
  for (Slab& slab : slabs_) {
    const std::uint64_t words = slab.groups * 8;
    const std::uint64_t remote = constants_["slab.offered"] + (words + align - 1) / align * align;
    const std::byte* const again = piece(second, slab.header, remote + words);
    slab.is_moving = again == nullptr || field<std::uint64_t>(again, constants_["header.start"]) != slab.start ||
                     std::memcmp(again + constants_["slab.words"], slab.words, words) != 0 ||
                     std::memcmp(again + constants_["slab.offered"], slab.offered, words) != 0 ||
                     std::memcmp(again + remote, slab.remote, words) != 0;
  }
}

}  // namespace brimful::observer::heap
