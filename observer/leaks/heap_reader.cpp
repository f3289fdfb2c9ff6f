// SPDX-License-Identifier: MIT
//
// From the anatomy to the objects that live.
//
//   granule table ──▶ headers: read with the arena's chunks, whole ──▶ words, offered words, remote masks: who is free
//   contexts ──▶ magazines: who is free and not told yet
//   tree of huge blocks
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <unordered_map>

#include "leaks/look.h"
#include "meta/sample_record.h"

namespace brimful::observer::leaks {
namespace {

constexpr int kAttempts = 5;
constexpr unsigned kGranuleShift = 16;
constexpr std::uint64_t kMostGranules = std::uint64_t{1} << 24;
constexpr std::size_t kMostChunks = 1 << 20;

class Reader {
 public:
  Reader(memory::Anatomy& anatomy, const memory::Read& read, HeapView& view)
      : anatomy_(anatomy), read_(read), view_(view) {}

  bool run(std::string* error) {
    view_.objects = Objects();
    view_.ours.clear();
    view_.library = anatomy_.version();
    view_.ours.push_back({anatomy_["heap"], anatomy_["heap"] + anatomy_["heap.bytes"]});
    if (!read_layout(error)) return false;
    if (!read_chunks() || !read_windows() || !read_samples() || !read_table() || !read_magazines() || !read_huge()) {
      *error = "its heap can't be read: it changes too fast, or the process has ended";
      return false;
    }
    enter();
    return true;
  }

 private:
  struct Chunk {
    std::uint64_t start;
    std::vector<std::byte> bytes;
  };
  struct Slab {
    std::uint64_t start;
    std::uint64_t bytes;
    std::vector<std::uint64_t> live;
  };
  struct Block {
    std::uint64_t start;
    std::uint64_t bytes;
  };

  bool read_layout(std::string* error) {
    start_ = anatomy_["header.start"];
    bytes_ = anatomy_["header.bytes"];
    owner_ = anatomy_["header.owner"];
    kind_ = anatomy_["header.kind"];
    groups_ = anatomy_["header.groups"];
    words_ = anatomy_["slab.words"];
    offered_ = anatomy_["slab.offered"];
    remote_align_ = anatomy_["slab.remote_align"];
    for (const char* name : {"heap",
                             "heap.bytes",
                             "table.entries",
                             "table.span",
                             "table.covered",
                             "table.none",
                             "arena.chunks",
                             "chunk.next",
                             "chunk.bytes",
                             "windows",
                             "windows.count",
                             "window.size",
                             "window.start",
                             "window.bytes",
                             "huge.root",
                             "huge.kept",
                             "run.left",
                             "run.right",
                             "run.next",
                             "run.size",
                             "kind.slab",
                             "kind.large",
                             "owner.live",
                             "owner.released",
                             "owner.destroyed",
                             "contexts",
                             "contexts.most",
                             "contexts.first_stand_in",
                             "context.size",
                             "context.id",
                             "context.counts",
                             "context.magazines",
                             "magazine.objects",
                             "samples.control",
                             "classes"}) {
      anatomy_[name];
    }
    if (anatomy_.missing().empty()) return true;
    *error = "it has brimful " + anatomy_.version() + ", made by another version: its anatomy does not name " +
             anatomy_.missing();
    return false;
  }

  bool word(std::uint64_t address, std::uint64_t& into) { return read_(address, &into, sizeof into); }
  std::uint64_t variable(const char* name) {
    std::uint64_t value = 0;
    is_good_ = word(anatomy_[name], value) && is_good_;
    return value;
  }

  bool read_chunks() {
    std::uint64_t at = variable("arena.chunks");
    for (std::size_t n = 0; at != 0 && n < kMostChunks; ++n) {
      std::uint64_t next = 0;
      std::uint64_t bytes = 0;
      if (!word(at + anatomy_["chunk.next"], next) || !word(at + anatomy_["chunk.bytes"], bytes)) return false;
      if (bytes == 0 || bytes > (std::uint64_t{1} << 30)) return false;
      Chunk chunk = {at, std::vector<std::byte>(bytes)};
      if (!read_(at, chunk.bytes.data(), bytes)) return false;
      view_.ours.push_back({at, at + bytes});
      chunks_.push_back(std::move(chunk));
      at = next;
    }
    std::sort(chunks_.begin(), chunks_.end(), [](const Chunk& a, const Chunk& b) { return a.start < b.start; });
    return is_good_;
  }

  // Where a piece of the arena is in our copy; nullptr: nowhere.
  const std::byte* piece(std::uint64_t address, std::size_t bytes) const {
    auto behind = std::upper_bound(chunks_.begin(), chunks_.end(), address,
                                   [](std::uint64_t a, const Chunk& c) { return a < c.start; });
    if (behind == chunks_.begin()) return nullptr;
    const Chunk& chunk = *--behind;
    const std::uint64_t offset = address - chunk.start;
    return offset + bytes <= chunk.bytes.size() ? chunk.bytes.data() + offset : nullptr;
  }

  template <class T>
  static T field(const std::byte* at, std::uint64_t offset) {
    T value;
    std::memcpy(&value, at + offset, sizeof value);
    return value;
  }

  bool read_windows() {
    const std::uint64_t count = std::min<std::uint64_t>(variable("windows.count"), 1024);
    for (std::uint64_t n = 0; n < count; ++n) {
      const std::uint64_t at = anatomy_["windows"] + n * anatomy_["window.size"];
      std::uint64_t start = 0;
      std::uint64_t bytes = 0;
      if (!word(at + anatomy_["window.start"], start) || !word(at + anatomy_["window.bytes"], bytes)) return false;
      view_.ours.push_back({start, start + bytes});
    }
    return is_good_;
  }

  // Records of samples hold addresses of objects, and copies of stacks: they are no roots.
  bool read_samples() {
    const std::uint64_t control = anatomy_["samples.control"];
    std::uint64_t records = 0;
    std::uint64_t slot_bytes = 0;
    std::uint64_t slots = 0;
    if (!word(control + offsetof(meta::SampleControl, records), records) ||
        !word(control + offsetof(meta::SampleControl, slot_bytes), slot_bytes) ||
        !word(control + offsetof(meta::SampleControl, slots), slots)) {
      return false;
    }
    if (records != 0) view_.ours.push_back({records, records + slots * slot_bytes});
    return true;
  }

  bool read_table() {
    const std::uint64_t entries = variable("table.entries");
    const std::uint64_t span = variable("table.span");
    const std::uint64_t covered = variable("table.covered");
    if (!is_good_ || covered > kMostGranules) return false;
    std::vector<std::uint64_t> table(covered);
    if (covered != 0 && !read_(entries, table.data(), covered * sizeof(std::uint64_t))) return false;
    const std::uint64_t none = anatomy_["table.none"];
    const std::uint64_t slab_kind = anatomy_["kind.slab"];
    const std::uint64_t large_kind = anatomy_["kind.large"];
    for (std::uint64_t n = 0; n < covered; ++n) {
      if (table[n] == none || table[n] == 0) continue;
      const std::byte* const header = piece(table[n], words_);
      // A header made just now in a chunk that is newer than our copy: only while the process runs.
      if (header == nullptr) continue;
      const auto start = field<std::uint64_t>(header, start_);
      const auto kind = field<std::uint8_t>(header, kind_);
      const auto owner = field<std::uint32_t>(header, owner_);
      if (((start >> kGranuleShift) & (span - 1)) != n) continue;  // not its first granule
      if (kind == slab_kind && owner != anatomy_["owner.released"] && owner != anatomy_["owner.destroyed"]) {
        add_slab(table[n], header, start);
      } else if (kind == large_kind && owner == anatomy_["owner.live"]) {
        blocks_.push_back({start, field<std::uint64_t>(header, bytes_)});
      }
    }
    return true;
  }

  void add_slab(std::uint64_t address, const std::byte* header, std::uint64_t start) {
    const auto groups = field<std::uint16_t>(header, groups_);
    const auto bytes = field<std::uint64_t>(header, bytes_);
    const std::uint64_t remote = offered_ + (groups * 8 + remote_align_ - 1) / remote_align_ * remote_align_;
    if (groups == 0 || bytes == 0 || piece(address, remote + groups * 8) == nullptr) return;
    Slab slab = {start, bytes, std::vector<std::uint64_t>(groups)};
    for (std::uint64_t g = 0; g < groups; ++g) {
      slab.live[g] = ~(field<std::uint64_t>(header, words_ + g * 8) | field<std::uint64_t>(header, offered_ + g * 8) |
                       field<std::uint64_t>(header, remote + g * 8));
    }
    for (std::uint64_t granule = start >> kGranuleShift; granule <= (start + bytes * groups * 64 - 1) >> kGranuleShift;
         ++granule) {
      by_granule_[granule] = slabs_.size();
    }
    slabs_.push_back(std::move(slab));
  }

  bool read_magazines() {
    std::vector<std::uint64_t> contexts(std::min<std::uint64_t>(anatomy_["contexts.most"], 65536));
    if (!read_(anatomy_["contexts"], contexts.data(), contexts.size() * sizeof(std::uint64_t))) return false;
    std::uint32_t first_stand_in = 0;
    if (!read_(anatomy_["contexts.first_stand_in"], &first_stand_in, sizeof first_stand_in)) return false;
    const std::uint64_t classes = anatomy_["classes"];
    const std::uint64_t most = anatomy_["magazine.objects"];
    for (std::uint64_t n = 0; n + 1 < contexts.size() && n < first_stand_in; ++n) {
      const std::byte* const context =
          contexts[n + 1] == 0 ? nullptr : piece(contexts[n + 1], anatomy_["context.size"]);
      if (context == nullptr || field<std::uint32_t>(context, anatomy_["context.id"]) != n) continue;  // the empty one
      for (std::uint64_t c = 0; c < classes; ++c) {
        const auto count = field<std::uint32_t>(context, anatomy_["context.counts"] + c * 4);
        for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, most); ++i) {
          free_object(field<std::uint64_t>(context, anatomy_["context.magazines"] + (c * most + i) * 8));
        }
      }
    }
    return true;
  }

  void free_object(std::uint64_t address) {
    const auto found = by_granule_.find(address >> kGranuleShift);
    if (found == by_granule_.end()) return;
    Slab& slab = slabs_[found->second];
    const std::uint64_t index = (address - slab.start) / slab.bytes;
    if (index / 64 < slab.live.size()) slab.live[index / 64] &= ~(std::uint64_t{1} << (index % 64));
  }

  bool read_huge() {
    std::vector<std::uint64_t> todo = {variable("huge.root")};
    const auto visit = [&](std::uint64_t address, bool is_live) -> const std::byte* {
      const std::byte* const run = piece(address, anatomy_["run.size"]);
      if (run == nullptr) return nullptr;
      const auto start = field<std::uint64_t>(run, start_);
      const auto bytes = field<std::uint64_t>(run, bytes_);
      view_.ours.push_back({start, start + bytes});
      if (is_live && bytes != 0 && field<std::uint32_t>(run, owner_) == anatomy_["owner.live"])
        blocks_.push_back({start, bytes});
      return run;
    };
    for (std::size_t n = 0; !todo.empty() && n < kMostGranules; ++n) {
      const std::uint64_t address = todo.back();
      todo.pop_back();
      const std::byte* const run = address == 0 ? nullptr : visit(address, true);
      if (run == nullptr) continue;
      todo.push_back(field<std::uint64_t>(run, anatomy_["run.left"]));
      todo.push_back(field<std::uint64_t>(run, anatomy_["run.right"]));
    }
    std::uint64_t kept = variable("huge.kept");
    for (std::size_t n = 0; kept != 0 && n < kMostGranules; ++n) {
      const std::byte* const run = visit(kept, false);
      kept = run == nullptr ? 0 : field<std::uint64_t>(run, anatomy_["run.next"]);
    }
    return is_good_;
  }

  void enter() {
    for (const Slab& slab : slabs_) {
      view_.objects.add(slab.start, slab.bytes, static_cast<std::uint32_t>(slab.live.size() * 64), true,
                        slab.live.data());
    }
    const std::uint64_t live = 1;
    for (const Block& block : blocks_) view_.objects.add(block.start, block.bytes, 1, false, &live);
    view_.objects.finish();
  }

  memory::Anatomy& anatomy_;
  const memory::Read& read_;
  HeapView& view_;
  bool is_good_ = true;
  std::uint64_t start_ = 0, bytes_ = 0, owner_ = 0, kind_ = 0, groups_ = 0, words_ = 0, offered_ = 0, remote_align_ = 1;
  std::vector<Chunk> chunks_;
  std::vector<Slab> slabs_;
  std::vector<Block> blocks_;
  std::unordered_map<std::uint64_t, std::size_t> by_granule_;
};

}  // namespace

bool read_heap(memory::Target& target, HeapView& view, std::string* error) {
  std::string why;
  // What moves may make no sense for a moment; held, it makes sense at once.
  for (int attempt = 0; attempt < (target.pid() != 0 ? kAttempts : 1); ++attempt) {
    if (!target.mappings(view.mappings)) {
      *error = target.error();
      return false;
    }
    if (Reader(target.anatomy(), target.reader(), view).run(&why)) return true;
  }
  *error = target.name() + ": " + why;
  return false;
}

}  // namespace brimful::observer::leaks
