// SPDX-License-Identifier: MIT
//
// Where a run goes (pages/page_heap.h). Nothing changes here.
#include <bit>

#include "pages/page_heap.h"

namespace brimful::pages {

using meta::kGranulesPerHugepage;

PageHeap::Place PageHeap::find(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted) {
  if (count.raw() < kGranulesPerHugepage && alignment <= kHugepageBytes) {
    const Place place = find_in_hugepage(count, alignment, node, wanted);
    if (place.start != 0) return place;
  } else {
    const Place place = find_range(count, alignment);
    if (place.start != 0) return place;
  }
  return find_anywhere(count, alignment);
}

// Memory that is resident, if it is wanted; the own node's hugepages in use, its tails, a free hugepage, other nodes'
// hugepages.
PageHeap::Place PageHeap::find_in_hugepage(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted) {
  Place place = {};
  if (wanted == Memory::kResident && alignment <= kGranuleBytes) place = find_resident(count, node);
  if (place.start == 0) place = find_in_filler(count, alignment, node, wanted);
  if (place.start == 0) place = find_range(count, alignment);
  for (std::uint32_t others = used_nodes_ & ~(1U << node); others != 0 && place.start == 0; others &= others - 1) {
    place = find_in_filler(count, alignment, static_cast<unsigned>(std::countr_zero(others)), wanted);
  }
  return place;
}

// Of the hugepages where memory was freed last, the one with the shortest range of it that fits, then the fullest: as the
// filler chooses.
PageHeap::Place PageHeap::find_resident(GranuleCount count, unsigned node) {
  constexpr int kLooks = 16;
  if (stats_.dirty_bytes < count.bytes()) return {};
  Hugepage* best = nullptr;
  unsigned best_order = UINT32_MAX;
  int looks = 0;
  for (Hugepage* page = dirty_parts_.back(); page != nullptr && looks != kLooks; page = dirty_parts_.before(page)) {
    ++looks;
    if (page->node != node + 1 || page->has(Hugepage::kTail)) continue;
    const std::uint32_t resident = page->free_and_dirty();
    if (run_starts(resident, count.raw()) == 0) continue;
    const unsigned order = longest_run(resident) * 64 + count_ones(page->free);
    if (order >= best_order) continue;
    best = page;
    best_order = order;
    if (order < (count.raw() + 1) * 64) break;  // it fits exactly
  }
  if (best == nullptr) return {};
  const unsigned first = Filler::place(*best, count.raw(), kAllBits, best->dirty());
  return {best->address() + GranuleCount(first).bytes(), nullptr};
}

PageHeap::Place PageHeap::find_in_filler(GranuleCount count, std::size_t alignment, unsigned node, Memory wanted) {
  const std::uint32_t places =
      alignment <= kGranuleBytes ? kAllBits : every_bit(static_cast<unsigned>(alignment >> kGranuleShift));
  Hugepage* hugepage = lists_of(node).used.choose(count.raw(), places);
  if (hugepage == nullptr) hugepage = lists_of(node).tails.choose(count.raw(), places);
  if (hugepage == nullptr) return {};
  const unsigned first =
      Filler::place(*hugepage, count.raw(), places, wanted == Memory::kFresh ? ~hugepage->dirty() : hugepage->dirty());
  return {hugepage->address() + GranuleCount(first).bytes(), nullptr};
}

PageHeap::Place PageHeap::find_range(GranuleCount count, std::size_t alignment) {
  const std::uint32_t hugepages = (count.raw() + kGranulesPerHugepage - 1) / kGranulesPerHugepage;
  const auto step = static_cast<std::uint32_t>(alignment > kHugepageBytes ? alignment / kHugepageBytes : 1);
  const FreeRanges::Place place = ranges_.choose(hugepages, step, dirty_whole_.count() != 0);
  if (place.range == nullptr) return {};
  const auto skipped = static_cast<std::uint64_t>(place.first - place.range);
  return {place.range->address() + skipped * kHugepageBytes, place.range};
}

// The last resort: any `count` free granules side by side, across hugepages. O(hugepages in use).
PageHeap::Place PageHeap::find_anywhere(GranuleCount count, std::size_t alignment) {
  for (std::size_t i = 0; i < window_count_; ++i) {
    const Place place = find_in_window(windows_[i], count, alignment);
    if (place.start != 0) return place;
  }
  return {};
}

PageHeap::Place PageHeap::find_in_window(const Window& window, GranuleCount count, std::size_t alignment) {
  const std::uint64_t window_end = window.start + window.bytes;
  Hugepage* range = nullptr;  // in the stretch of free granules [free_from, at)
  std::uint64_t free_from = window.start;
  const auto fits = [&](std::uint64_t end) { return round_up(free_from, alignment) + count.bytes() <= end; };
  for (std::uint64_t at = window.start; at < window_end;) {
    Hugepage* hugepage = table_->hugepage_of(table_->id_of(at));
    if (!table_->is_covered(hugepage)) break;
    if (hugepage->state == Hugepage::State::kFree) {  // the first of a range, since what is before it is none
      range = hugepage;
      at += std::uint64_t{hugepage->length} * kHugepageBytes;
      if (fits(at)) return {round_up(free_from, alignment), range};
      continue;
    }
    std::uint32_t rest = hugepage->state == Hugepage::State::kUsed ? hugepage->free : 0;
    unsigned end = 0;  // of the last stretch in this hugepage
    while (rest != 0) {
      const auto first = static_cast<unsigned>(std::countr_zero(rest));
      end = first + static_cast<unsigned>(std::countr_one(rest >> first));
      if (first != 0) {
        free_from = at + GranuleCount(first).bytes();
        range = nullptr;
      }
      if (fits(at + GranuleCount(end).bytes())) return {round_up(free_from, alignment), range};
      rest &= ~bits_from(first, end - first);
    }
    at += kHugepageBytes;
    if (end == kGranulesPerHugepage) continue;
    free_from = at;
    range = nullptr;
  }
  return {};
}

// Free granules side by side in one hugepage that are committed, wherever they are. For when no others can be had.
// O(hugepages).
PageHeap::Place PageHeap::find_committed(GranuleCount count) {
  for (std::size_t i = 0; i < window_count_; ++i) {
    const std::uint64_t end = windows_[i].start + windows_[i].bytes;
    Hugepage* range = nullptr;
    std::uint64_t range_end = 0;
    for (std::uint64_t at = windows_[i].start; at < end; at += kHugepageBytes) {
      Hugepage* hugepage = table_->hugepage_of(table_->id_of(at));
      if (!table_->is_covered(hugepage)) break;
      if (at >= range_end) {
        range = hugepage->state == Hugepage::State::kFree ? hugepage : nullptr;
        if (range != nullptr) range_end = at + std::uint64_t{range->length} * kHugepageBytes;
      }
      if (range == nullptr && hugepage->state != Hugepage::State::kUsed) continue;
      const std::uint32_t free = range != nullptr ? kAllBits : hugepage->free;
      const std::uint32_t starts = run_starts(free & hugepage->committed, count.raw());
      if (starts != 0) return {at + GranuleCount(static_cast<std::uint32_t>(std::countr_zero(starts))).bytes(), range};
    }
  }
  return {};
}

// Whether the granules from `start` on are free; the granule before them is not. `*range`: the free range among them.
bool PageHeap::is_free(std::uint64_t start, GranuleCount count, Hugepage** range) {
  std::uint64_t id = table_->id_of(start).raw();
  for (std::uint32_t left = count.raw(); left != 0;) {
    Hugepage* hugepage = table_->hugepage_of(GranuleId(id));
    if (id >= table_->covered()) return false;
    std::uint32_t free_here = 0;
    if (hugepage->state == Hugepage::State::kFree) {
      *range = hugepage;
      free_here = hugepage->length * kGranulesPerHugepage;
    } else if (hugepage->state == Hugepage::State::kUsed) {
      free_here = static_cast<std::uint32_t>(std::countr_one(hugepage->free >> id % kGranulesPerHugepage));
      const bool to_the_end = free_here + id % kGranulesPerHugepage == kGranulesPerHugepage;
      if (!to_the_end && free_here < left) return false;
    }
    if (free_here == 0) return false;
    if (free_here >= left) return true;
    left -= free_here;
    id += free_here;
  }
  return true;
}

}  // namespace brimful::pages
