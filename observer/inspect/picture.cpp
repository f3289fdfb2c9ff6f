// SPDX-License-Identifier: MIT
//
// inspect/picture.h.
#include "inspect/picture.h"

#include <algorithm>
#include <bit>
#include <map>
#include <string>

#include "inspect/kernel.h"
#include "memory/resident.h"

namespace brimful::observer::inspect {
namespace {

using heap::Block;
using heap::kGranuleBytes;
using heap::kGroupObjects;
using heap::kHugepageBytes;
using heap::Model;
using heap::Range;
using heap::Slab;
using memory::PageMap;
using memory::Resident;
using nlohmann::json;

struct Cell {
  std::uint64_t resident = 0;
  std::uint64_t live = 0;
  std::uint64_t free_in_slabs = 0;
  std::uint64_t slabs = 0;
  std::uint64_t metadata = 0;
  std::uint32_t granules = 0;  // handed out
  bool is_moving = false;
  bool is_block = false;                         // a large block lies here
  std::map<std::uint32_t, std::uint32_t> sizes;  // object size: slabs
};

struct ClassUse {
  std::uint64_t slabs = 0;
  std::uint64_t live = 0;
  std::uint64_t free = 0;
  std::uint64_t resident = 0;
  std::uint64_t live_bytes = 0;
  std::uint64_t sampled_slabs = 0;
};

class Painter {
 public:
  Painter(const Model& model, pid_t pid) : model_(model), pages_(pid), classes_(model.classes().size()) {}

  json paint(const PictureOptions& options, pid_t pid) {
    with_hugepages_ = options.with_hugepages;
    for (const heap::Window& window : model_.windows()) paint_window(window);
    for (const Block& block : model_.blocks()) {
      if (block.is_huge) add_huge(block);
    }
    for (const heap::Guarded& object : model_.guarded().objects) add_guarded(object);
    for (const Range& range : model_.metadata())
      totals_.metadata += pages_.look(range.start, range.end).bytes(range.start, range.end);
    json result = {{"totals", totals()}, {"residency", pages_.is_open() ? "kernel" : "unknown"}};
    result["moving"] = {{"slabs", moving_slabs_}, {"bytes", moving_bytes_ + model_.moving_granules() * kGranuleBytes}};
    result["hugepages"] = std::move(cells_);
    result["classes"] = classes();
    result["blocks"] = {{"live", live_blocks_}, {"live_bytes", live_block_bytes_}, {"resident", block_resident_}};
    result["biggest"] = biggest(options.biggest);
    if (options.with_check && pid != 0) result["check"] = compare_with_kernel(model_, pid, totals_.resident());
    return result;
  }

 private:
  template <class Add>
  static void by_hugepage(const Range& range, Add add) {
    for (std::uint64_t at = range.start; at < range.end;) {
      const std::uint64_t next = std::min(range.end, at / kHugepageBytes * kHugepageBytes + kHugepageBytes);
      add(at, next);
      at = next;
    }
  }

  void paint_window(const heap::Window& window) {
    if (window.seen_end <= window.range.start) return;
    const Resident resident = pages_.is_open() ? pages_.look(window.range.start, window.seen_end) : handed_out(window);
    std::vector<Cell> cells((window.seen_end - window.range.start + kHugepageBytes - 1) / kHugepageBytes);
    const auto cell = [&](std::uint64_t address) -> Cell& {
      return cells[(address - window.range.start) / kHugepageBytes];
    };
    const auto holds = [&](std::uint64_t start, std::uint64_t end) {
      return start >= window.range.start && end <= window.seen_end;
    };
    for (const Slab& slab : model_.slabs()) {
      if (holds(slab.start, slab.end)) add_slab(slab, resident, cell);
    }
    for (const Block& block : model_.blocks()) {
      if (!block.is_huge && holds(block.start, block.end)) add_block(block, resident, cell);
    }
    for (const Range& range : model_.metadata_in_windows()) {
      if (holds(range.start, range.end)) cell(range.start).metadata += resident.bytes(range.start, range.end);
    }
    for (std::size_t n = 0; n < cells.size(); ++n) {
      const std::uint64_t start = window.range.start + n * kHugepageBytes;
      cells[n].resident = resident.bytes(start, std::min(start + kHugepageBytes, window.seen_end));
      finish(cells[n], start);
    }
  }

  // Of a core: granules that were handed out and not given back hold something.
  Resident handed_out(const heap::Window& window) const {
    Resident resident(window.range.start, window.seen_end, false);
    for (std::uint64_t at = window.range.start; at < window.seen_end; at += kHugepageBytes) {
      const heap::HugepageRecord* const record = model_.hugepage(at);
      if (record == nullptr) continue;
      for (unsigned n = 0; n < 32; ++n) {
        const std::uint64_t start = at + n * kGranuleBytes;
        const bool is_there = ((record->used_once & (~record->free | record->dirty)) >> n & 1) != 0;
        if (is_there && start < window.seen_end) resident.add(start, start + kGranuleBytes);
      }
    }
    return resident;
  }

  template <class CellOf>
  void add_slab(const Slab& slab, const Resident& resident, CellOf cell) {
    ClassUse& use = classes_[slab.size_class];
    std::uint64_t live = 0;
    std::uint64_t live_bytes = 0;
    std::uint64_t run = 0;  // first object of a run of live ones
    bool in_run = false;
    const auto end_run = [&](std::uint64_t index) {
      by_hugepage({slab.object(run), slab.object(index)}, [&](std::uint64_t from, std::uint64_t to) {
        const std::uint64_t bytes = resident.bytes(from, to);
        live_bytes += bytes;
        cell(from).live += bytes;
      });
    };
    model_.live_words(slab, live_words_);
    for (std::uint32_t group = 0; group < slab.groups; ++group) {
      const std::uint64_t bits = live_words_[group];
      live += static_cast<std::uint64_t>(std::popcount(bits));
      for (unsigned bit = 0; bit < kGroupObjects; in_run = !in_run) {
        const std::uint64_t rest = (in_run ? ~bits : bits) >> bit;
        if (rest == 0) break;
        bit += static_cast<unsigned>(std::countr_zero(rest));
        const std::uint64_t index = std::uint64_t{group} * kGroupObjects + bit;
        if (in_run) {
          end_run(index);
        } else {
          run = index;
        }
      }
    }
    if (in_run) end_run(slab.count());
    std::uint64_t all = 0;
    by_hugepage({slab.start, slab.end}, [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t bytes = resident.bytes(from, to);
      all += bytes;
      Cell& c = cell(from);
      c.free_in_slabs += bytes;  // the live ones are taken off in finish()
      c.granules += static_cast<std::uint32_t>((to - from) / kGranuleBytes);
      c.is_moving = c.is_moving || slab.is_moving;
    });
    ++cell(slab.start).slabs;
    ++cell(slab.start).sizes[slab.object_bytes];
    ++use.slabs;
    use.live += live;
    use.free += slab.count() - live;
    use.resident += all;
    use.live_bytes += live_bytes;
    if (slab.owner == model_.layout().owner_sampled) ++use.sampled_slabs;
    totals_.live += live_bytes;
    totals_.free_in_slabs += all - live_bytes;
    if (slab.is_moving) {
      ++moving_slabs_;
      moving_bytes_ += all;
    }
  }

  template <class CellOf>
  void add_block(const Block& block, const Resident& resident, CellOf cell) {
    std::uint64_t live = 0;
    std::uint64_t all = 0;
    by_hugepage({block.start, block.end}, [&](std::uint64_t from, std::uint64_t to) {
      const std::uint64_t bytes = resident.bytes(from, to);
      all += bytes;
      Cell& c = cell(from);
      if (!block.is_live) return;
      c.granules += static_cast<std::uint32_t>((to - from) / kGranuleBytes);
      c.is_block = true;
      const std::uint64_t usable = from < block.usable_end ? resident.bytes(from, std::min(to, block.usable_end)) : 0;
      live += usable;
      c.live += usable;
      c.free_in_slabs += bytes;
    });
    if (!block.is_live) return;  // free runs are what is left over
    note_block(block, all, live);
  }

  void add_huge(const Block& block) {
    const Resident resident = pages_.look(block.start, block.end);
    const std::uint64_t bytes = resident.bytes(block.start, block.end);
    if (block.is_live) {
      note_block(block, bytes, bytes);
    } else {
      totals_.free_runs += bytes;
    }
  }

  // A page for each: what is not of a live object is counted as what is free beside one.
  void add_guarded(const heap::Guarded& object) {
    const std::uint64_t end = object.page + model_.guarded().page_bytes;
    const Resident resident = pages_.look(object.page, end);
    const std::uint64_t all = resident.bytes(object.page, end);
    const std::uint64_t live = object.is_live ? resident.bytes(object.start, object.start + object.bytes) : 0;
    totals_.live += live;
    totals_.free_in_slabs += all - live;
    if (object.is_live) ++guarded_;
  }

  void note_block(const Block& block, std::uint64_t all, std::uint64_t live) {
    ++live_blocks_;
    live_block_bytes_ += block.usable_end - block.start;
    block_resident_ += all;
    totals_.live += live;
    totals_.free_in_slabs += all - live;
    blocks_.push_back({block.usable_end - block.start, all, &block});
  }

  void finish(Cell& cell, std::uint64_t start) {
    const std::uint64_t slack = cell.free_in_slabs - std::min(cell.free_in_slabs, cell.live);
    const std::uint64_t held = cell.live + slack + cell.metadata;
    const std::uint64_t runs = cell.resident - std::min(cell.resident, held);
    totals_.free_runs += runs;
    totals_.metadata += cell.metadata;
    if (!with_hugepages_) return;
    const heap::HugepageRecord* const record = model_.hugepage(start);
    const std::uint32_t once = record == nullptr ? 0 : record->used_once;
    if (cell.resident == 0 && cell.granules == 0 && once == 0) return;  // nobody was ever there
    const std::uint64_t free = slack + runs;
    const char* kind = "mixed";
    if (cell.resident == 0) {
      kind = cell.granules != 0 ? "untouched" : "purged";
    } else if (cell.live == 0) {
      kind = cell.metadata != 0 ? "metadata" : "free";
    } else if (free * 8 <= cell.resident) {
      kind = "live";
    }
    json sizes = json::array();
    for (const auto& [bytes, count] : cell.sizes) sizes.push_back({{"bytes", bytes}, {"slabs", count}});
    // What was used once and is not resident now went back, or was never touched.
    const auto used = static_cast<std::uint64_t>(std::popcount(once)) * kGranuleBytes;
    cells_.push_back({{"address", start},
                      {"kind", kind},
                      {"resident", cell.resident},
                      {"live", cell.live},
                      {"free_in_slabs", slack},
                      {"free_runs", runs},
                      {"metadata", cell.metadata},
                      {"away", used - std::min(used, cell.resident)},
                      {"granules", cell.granules},
                      {"slabs", std::move(sizes)},
                      {"blocks", cell.is_block},
                      {"moving", cell.is_moving}});
  }

  json totals() const {
    std::uint64_t objects = 0;
    for (const ClassUse& use : classes_) objects += use.live;
    return {{"resident", totals_.resident()}, {"live", totals_.live},         {"free_in_slabs", totals_.free_in_slabs},
            {"free_runs", totals_.free_runs}, {"metadata", totals_.metadata}, {"live_objects", objects},
            {"live_blocks", live_blocks_},    {"live_guarded", guarded_}};
  }

  json classes() const {
    std::vector<std::uint64_t> kept(classes_.size());
    for (const Model::Kept& object : model_.kept()) {
      const Slab* const slab = model_.slab_at(object.address);
      if (slab != nullptr) ++kept[slab->size_class];
    }
    json all = json::array();
    for (std::size_t n = 0; n < classes_.size(); ++n) {
      const ClassUse& use = classes_[n];
      if (use.slabs == 0) continue;
      all.push_back({{"bytes", model_.classes()[n].bytes},
                     {"slabs", use.slabs},
                     {"sampled_slabs", use.sampled_slabs},
                     {"live", use.live},
                     {"free", use.free},
                     {"in_magazines", kept[n]},
                     {"resident", use.resident},
                     {"live_bytes", use.live_bytes},
                     {"waste", use.resident - use.live_bytes}});
    }
    return all;
  }

  json biggest(std::size_t most) {
    const std::size_t count = std::min(most, blocks_.size());
    std::partial_sort(blocks_.begin(), blocks_.begin() + static_cast<std::ptrdiff_t>(count), blocks_.end(),
                      [](const Big& a, const Big& b) { return a.bytes > b.bytes; });
    json all = json::array();
    for (std::size_t n = 0; n < count; ++n) {
      const Block& block = *blocks_[n].block;
      all.push_back({{"address", block.start},
                     {"bytes", blocks_[n].bytes},
                     {"resident", blocks_[n].resident},
                     {"kind", block.is_huge ? "huge" : "large"},
                     {"heap", block.heap}});
    }
    return all;
  }

  struct Big {
    std::uint64_t bytes;
    std::uint64_t resident;
    const Block* block;
  };

  const Model& model_;
  PageMap pages_;
  Totals totals_;
  std::vector<ClassUse> classes_;
  bool with_hugepages_ = true;
  json cells_ = json::array();
  std::vector<Big> blocks_;
  std::uint64_t guarded_ = 0;  // that live
  std::uint64_t live_blocks_ = 0;
  std::uint64_t live_block_bytes_ = 0;
  std::uint64_t block_resident_ = 0;
  std::vector<std::uint64_t> live_words_;  // of one slab at a time
  std::uint64_t moving_slabs_ = 0;
  std::uint64_t moving_bytes_ = 0;
};

}  // namespace

json picture(const Model& model, pid_t pid, const PictureOptions& options) {
  return Painter(model, pid).paint(options, pid);
}

}  // namespace brimful::observer::inspect
