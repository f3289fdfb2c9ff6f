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
  const std::uint64_t expected = alignment <= kGranuleBytes ? best_fit(count) : 0;
  const std::uint64_t start = pages.allocate(GranuleCount(count), alignment);
  learn_window();
  if (start == 0) return 0;
  const std::uint64_t end = start + GranuleCount(count).bytes();
  EXPECT_EQ(start % (alignment > kGranuleBytes ? alignment : kGranuleBytes), 0U);
  EXPECT_GE(start, window);
  EXPECT_LE(end, window_end);
  if (expected != 0 && !may_lose_addresses) {
    EXPECT_EQ(start, expected) << "not the best fit at the lowest address";
  }
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

std::uint64_t OwnPageHeap::best_fit(std::uint32_t count) const {
  if (window == 0) return 0;
  std::uint64_t best = 0;
  std::uint64_t best_bytes = UINT64_MAX;
  std::uint64_t at = window;
  const auto consider = [&](std::uint64_t end) {
    if (end - at >= GranuleCount(count).bytes() && end - at < best_bytes) {
      best = at;
      best_bytes = end - at;
    }
  };
  for (const auto& [start, granules] : live) {
    consider(start);
    at = start + GranuleCount(granules).bytes();
  }
  consider(window_end);
  return best;
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
  const Header* header = table.look_up(window);
  ASSERT_EQ(header->kind, Kind::kFree);
  EXPECT_EQ(header->start, window);
  EXPECT_EQ(static_cast<const Run*>(header)->granules.bytes(), window_end - window);
  const std::uint32_t all = GranuleCount::covering(window_end - window).raw();
  const std::uint64_t start = allocate(all);
  EXPECT_EQ(start, window);
  if (start != 0) free(start);
}

void OwnPageHeap::drain_arena(std::size_t pieces) {
  may_lose_addresses = true;
  os.fail(Call::kMap, 1, FakeOs::kAlways);
  std::vector<void*> drained;
  while (void* piece = arena.allocate(sizeof(Run))) drained.push_back(piece);
  for (std::size_t i = 0; i < pieces && !drained.empty(); ++i) {
    arena.free(drained.back(), sizeof(Run));
    drained.pop_back();
  }
}

}  // namespace brimful::testing
