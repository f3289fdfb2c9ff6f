// SPDX-License-Identifier: MIT
//
// pages/free_ranges.h.
#include "pages/free_ranges.h"

#include "base/check.h"
#include "base/units.h"

namespace brimful::pages {
namespace {

constexpr int kMostLooks = 4;

}  // namespace

void FreeRanges::attach(Hugepage* first, std::uint32_t start, std::uint32_t length) {
  first->state = Hugepage::State::kFree;
  first->start = start;
  first->length = length;
  // The last one's record may lie beyond the table: an untouched rest, behind which nothing will be freed.
  Hugepage* last = first + (length - 1);
  if (table_->is_covered(last)) {
    last->state = Hugepage::State::kFree;
    last->start = start + length - 1;
    last->length = length;
  }
  tree_.insert(first);
}

void FreeRanges::insert(Hugepage* first, std::uint32_t length) {
  std::uint32_t start = first->start;
  Hugepage* after = first + length;
  if (table_->is_covered(after) && after->state == Hugepage::State::kFree) {
    tree_.remove(after);
    length += after->length;
  }
  if (table_->index_of(first) != 0 && (first - 1)->state == Hugepage::State::kFree) {
    const std::uint32_t before = (first - 1)->length;
    first -= before;
    start -= before;
    length += before;
    tree_.remove(first);
  }
  attach(first, start, length);
}

void FreeRanges::take(Hugepage* range, Hugepage* first, std::uint32_t length) {
  tree_.remove(range);
  const std::uint32_t start = range->start;
  const std::uint32_t all = range->length;
  const auto front = static_cast<std::uint32_t>(first - range);
  BRIMFUL_ASSERT(front + length <= all);
  for (std::uint32_t i = 0; i < length; ++i) {
    first[i].state = Hugepage::State::kUsed;
    first[i].free = kAllBits;
    first[i].start = start + front + i;
    first[i].length = 0;
  }
  if (front != 0) attach(range, start, front);
  if (front + length != all) attach(first + length, start + front + length, all - front - length);
}

// A range of at most `most` hugepages that is longer than `best` and begins with dirty memory, or `best`.
meta::Hugepage* FreeRanges::more_resident(Hugepage* best, std::uint32_t most) const {
  Hugepage* range = best;
  for (int i = 0; i < kMostLooks; ++i) {
    const Hugepage& last = *range;
    range = tree_.lower_bound([&last](const Hugepage& r) { return ByLength::less(last, r); });
    if (range == nullptr || range->length > most) break;
    if (range->dirty() != 0) return range;
  }
  return best;
}

FreeRanges::Place FreeRanges::choose(std::uint32_t length, std::uint32_t alignment, bool prefer_resident) const {
  const auto fitting = [this](std::uint32_t least) {
    return tree_.lower_bound([least](const Hugepage& r) { return r.length >= least; });
  };
  Hugepage* range = fitting(length);
  if (range == nullptr) return {};
  if (alignment > 1) {
    const auto skipped = [alignment](const Hugepage* r) { return round_up(r->start, alignment) - r->start; };
    if (skipped(range) + length > range->length) range = fitting(length + alignment - 1);
    return range != nullptr ? Place{range, range + skipped(range)} : Place{};
  }
  if (!prefer_resident || range->dirty() != 0) return {range, range};
  Hugepage* at_end = range + (range->length - 1);
  if (table_->is_covered(at_end) && at_end->dirty() != 0) return {range, range + (range->length - length)};
  range = more_resident(range, length + length / 8);
  return {range, range};
}

}  // namespace brimful::pages
