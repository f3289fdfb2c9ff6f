// SPDX-License-Identifier: MIT
//
// own_page_heap.h.
#include "own_page_heap.h"

#include <gtest/gtest.h>

#include <iterator>
#include <vector>

#include "config/options.h"
#include "meta/header.h"

namespace brimful::testing {
namespace {

// First and last word of each granule: enough to see foreign writes and lost memory, cheap enough for long histories.
std::uint64_t& first_word(std::uint64_t start, std::uint32_t i) {
  return *reinterpret_cast<std::uint64_t*>(start + i * kGranuleBytes);
}
std::uint64_t& last_word(std::uint64_t start, std::uint32_t i) {
  return *reinterpret_cast<std::uint64_t*>(start + (i + 1) * kGranuleBytes - sizeof(std::uint64_t));
}

}  // namespace

void fill_granules(std::uint64_t start, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    first_word(start, i) = start + i;
    last_word(start, i) = ~(start + i);
  }
}

bool holds_pattern(std::uint64_t start, std::uint32_t count) {
  for (std::uint32_t i = 0; i < count; ++i) {
    if (first_word(start, i) != start + i || last_word(start, i) != ~(start + i)) return false;
  }
  return true;
}

OwnPageHeap::OwnPageHeap(std::size_t reserve) {
  pages.attach(table);
  config::options = config::initial_options();
  config::options.reserve = static_cast<std::int64_t>(reserve);
  config::options.on_exhaustion = static_cast<std::int64_t>(config::Exhaustion::kNull);
}

OwnPageHeap::~OwnPageHeap() { os.unmap_everything(); }

void OwnPageHeap::learn_window() {
  const std::size_t bytes = pages.stats().reserved_bytes;
  if (window != 0 || bytes == 0) return;
  for (const Range& range : os.log(Call::kReserve)) {
    if (range.bytes != bytes) continue;
    window = range.start + kGranuleBytes;
    window_end = range.start + bytes;
  }
  ASSERT_NE(window, 0U);
}

std::uint64_t OwnPageHeap::allocate(std::uint32_t count, std::size_t alignment) {
  const std::uint64_t start = pages.allocate(GranuleCount(count), alignment);
  learn_window();
  if (start == 0) return 0;
  const std::uint64_t end = start + GranuleCount(count).bytes();
  EXPECT_EQ(start % (alignment > kGranuleBytes ? alignment : kGranuleBytes), 0U);
  EXPECT_GE(start, window);
  EXPECT_LE(end, window_end);
  const auto next = live.lower_bound(start);
  EXPECT_TRUE(next == live.end() || next->first >= end) << "overlaps the run behind";
  if (next != live.begin()) {
    const auto before = std::prev(next);
    EXPECT_LE(before->first + GranuleCount(before->second).bytes(), start) << "overlaps the run before";
  }
  live[start] = count;
  fill_granules(start, count);
  EXPECT_EQ(pages.stats().used_bytes, live_bytes());
  EXPECT_TRUE(pages.was_used(start));
  EXPECT_TRUE(pages.was_used(end - 1));
  return start;
}

void OwnPageHeap::free(std::uint64_t start) {
  const std::uint32_t count = live.at(start);
  EXPECT_TRUE(holds_pattern(start, count)) << "damaged contents";
  live.erase(start);
  pages.free(start, GranuleCount(count), os.now_ms);
  EXPECT_EQ(pages.stats().used_bytes, live_bytes());
}

bool OwnPageHeap::extend(std::uint64_t start, std::uint32_t extra) {
  std::uint32_t& count = live.at(start);
  const std::uint64_t end = start + GranuleCount(count).bytes();
  const bool possible = free_behind(end) >= extra;
  const bool extended = pages.extend(end, GranuleCount(extra));
  EXPECT_TRUE(possible || !extended) << "grew over a live run";
  if (!extended) return false;
  count += extra;
  fill_granules(start, count);
  EXPECT_EQ(pages.stats().used_bytes, live_bytes());
  return true;
}

void OwnPageHeap::free_all() {
  while (!live.empty()) free(live.begin()->first);
}

bool OwnPageHeap::has_room(std::uint32_t count) const {
  std::uint64_t at = window;
  for (const auto& [start, granules] : live) {
    if (start - at >= GranuleCount(count).bytes()) return true;
    at = start + GranuleCount(granules).bytes();
  }
  return window != 0 && window_end - at >= GranuleCount(count).bytes();
}

std::uint32_t OwnPageHeap::free_behind(std::uint64_t end) const {
  const auto next = live.lower_bound(end);
  const std::uint64_t stop = next != live.end() ? next->first : window_end;
  return GranuleCount::covering(stop - end).raw();
}

std::size_t OwnPageHeap::live_bytes() const {
  std::size_t sum = 0;
  for (const auto& [start, count] : live) sum += GranuleCount(count).bytes();
  return sum;
}

void OwnPageHeap::expect_whole() {
  ASSERT_TRUE(live.empty());
  EXPECT_EQ(pages.stats().used_bytes, 0U);
  EXPECT_EQ(pages.stats().hugepages_in_use, 1U) << "the one of the guard";
  const std::uint32_t all = GranuleCount::covering(window_end - window).raw();
  const std::uint64_t start = allocate(all);
  EXPECT_EQ(start, window);
  if (start != 0) free(start);
}

}  // namespace brimful::testing
