// SPDX-License-Identifier: MIT
//
// pages/page_heap.h on an instance of its own, against an oracle that knows every live run (own_page_heap.h).
#include "pages/page_heap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

#include "config/options.h"
#include "own_page_heap.h"

namespace brimful::pages {
namespace {

using testing::Call;
using testing::OwnPageHeap;
using testing::Range;

std::uint64_t bytes_of(const std::vector<Range>& ranges) {
  std::uint64_t sum = 0;
  for (const Range& range : ranges) sum += range.bytes;
  return sum;
}

bool is_zero(std::uint64_t start, std::size_t bytes) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(start);
  return std::all_of(words, words + bytes / sizeof *words, [](std::uint64_t word) { return word == 0; });
}

TEST(PageHeap, AgreesWithTheOracleThroughAnyHistoryAndIsWholeAtTheEnd) {
  for (unsigned seed = 0; seed < 4; ++seed) {
    OwnPageHeap heap;
    std::mt19937_64 random(seed);
    for (int step = 0; step < 4000 && !::testing::Test::HasFailure(); ++step) {
      heap.os.now_ms += random() % 3;
      const auto pick = [&] { return std::next(heap.live.begin(), static_cast<long>(random() % heap.live.size())); };
      const std::uint64_t choice = random() % 100;
      if (choice < 45 || heap.live.empty()) {
        const auto count = static_cast<std::uint32_t>(1 + random() % (random() % 8 == 0 ? 200 : 12));
        const std::size_t alignment = kGranuleBytes << (random() % 4 == 0 ? random() % 6 : 0);
        const bool possible = heap.window == 0 || heap.has_room(count);
        const bool roomy = heap.has_room(count + static_cast<std::uint32_t>(alignment >> 16));
        const std::uint64_t start = heap.allocate(count, alignment);
        if (alignment == kGranuleBytes) {
          ASSERT_EQ(start != 0, possible) << count;
        } else if (roomy) {
          ASSERT_NE(start, 0U) << count << " on " << alignment;
        }
      } else if (choice < 88) {
        heap.free(pick()->first);
      } else if (choice < 96) {
        const auto run = *pick();
        const auto extra = static_cast<std::uint32_t>(1 + random() % 8);
        const bool possible = heap.free_behind(run.first + GranuleCount(run.second).bytes()) >= extra;
        ASSERT_EQ(heap.extend(run.first, extra), possible);
      } else {
        heap.pages.purge(heap.os.now_ms - std::min<std::uint64_t>(heap.os.now_ms, random() % 500), random() % (8 << 20),
                         heap.os.now_ms);
      }
    }
    heap.free_all();
    heap.expect_whole();
    EXPECT_EQ(heap.pages.stats().used_bytes, 0U);
  }
}

TEST(PageHeap, JoinsNeighboursInEveryOrderOfFreeing) {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    OwnPageHeap heap;
    std::uint64_t runs[4];
    for (std::uint64_t& run : runs) run = heap.allocate(3);
    for (const int i : order) heap.free(runs[i]);
    heap.expect_whole();
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(PageHeap, ReturnsZeroWhenTheReserveIsUsedUpAndRecovers) {
  OwnPageHeap heap;
  std::vector<std::uint64_t> runs;
  while (const std::uint64_t run = heap.allocate(100)) runs.push_back(run);
  EXPECT_GE(runs.size(), (OwnPageHeap::kReserve / kHugepageBytes - 1) / 4) << "each takes four hugepages at most";
  heap.free(runs[3]);
  EXPECT_EQ(heap.allocate(100), runs[3]);
  heap.free_all();
  heap.expect_whole();
}

TEST(PageHeap, AddsWindowsThatServeTheSameTable) {
  OwnPageHeap heap(std::size_t{4} << 20);
  config::options.on_exhaustion = static_cast<std::int64_t>(config::Exhaustion::kGrow);
  std::vector<std::uint64_t> runs;
  for (int i = 0; i < 40; ++i) {
    const std::uint64_t run = heap.pages.allocate(GranuleCount(20), kGranuleBytes);
    ASSERT_NE(run, 0U);
    testing::fill_granules(run, 20);
    runs.push_back(run);
  }
  EXPECT_GE(heap.pages.stats().reserved_bytes, 40 * GranuleCount(20).bytes());
  std::vector<std::uint64_t> ids;
  for (const std::uint64_t run : runs) {
    EXPECT_TRUE(testing::holds_pattern(run, 20));
    ids.push_back(heap.table.id_of(run).raw());
  }
  std::sort(ids.begin(), ids.end());
  for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_GE(ids[i], ids[i - 1] + 20) << "two runs share table entries";
  EXPECT_LT(ids.back(), heap.pages.stats().reserved_bytes >> kGranuleShift);
  for (const std::uint64_t run : runs) heap.pages.free(run, GranuleCount(20), 0);
  // Runs of two windows are never joined: the longest is what one window holds.
  EXPECT_EQ(heap.pages.stats().used_bytes, 0U);
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 1), 40 * GranuleCount(20).bytes());
}

TEST(PageHeap, LeavesOutOfCoreFilesWhatOfAWindowWasNeverUsed) {
  OwnPageHeap heap;
  heap.allocate(1, kGranuleBytes);
  EXPECT_TRUE(heap.os.dumps.empty()) << "a small heap costs no call";
  while (heap.has_room(70)) heap.allocate(static_cast<std::uint32_t>(1 + heap.live.size() % 70), kGranuleBytes);
  ASSERT_FALSE(heap.os.dumps.empty());
  const auto [rest, advice] = heap.os.dumps[0];
  EXPECT_EQ(advice, os::Advice::kNoDump);
  EXPECT_EQ(rest.start + rest.bytes, heap.window_end);
  const auto is_dumped = [&](std::uint64_t address) {
    return address < rest.start || std::any_of(heap.os.dumps.begin() + 1, heap.os.dumps.end(), [&](const auto& dump) {
             EXPECT_EQ(dump.advice, os::Advice::kDump);
             return address - dump.range.start < dump.range.bytes;
           });
  };
  for (const auto& [start, granules] : heap.live) {
    for (std::uint32_t n = 0; n < granules; ++n) ASSERT_TRUE(is_dumped(start + n * kGranuleBytes));
  }
}

// A block with a mapping of its own may lie right behind a window, and the table has an answer for it.
TEST(PageHeap, HasNoTableThatLeadsFromBehindASmallWindowToAnObject) {
  for (const std::size_t mib : {2, 32, 64, 130, 255, 300}) {
    OwnPageHeap heap(mib << 20);
    while (heap.allocate(static_cast<std::uint32_t>(mib)) != 0) {
    }
    while (heap.allocate(1) != 0) {
    }
    ASSERT_NE(heap.window, 0U);
    for (const SizeClass& shape : kSizeClasses) {
      Slab slab = {};
      slab.multiplier = shape.multiplier;
      for (std::uint64_t back = shape.granules; back * kGranuleBytes < heap.window_end - heap.window;
           back = back * 3 + 1) {
        slab.start = heap.window_end - back * kGranuleBytes;
        heap.table.set_all(heap.table.id_of(slab.start), GranuleCount(shape.granules), &slab);
        for (std::uint64_t at = heap.window_end; at < heap.window_end + (std::uint64_t{300} << 20);
             at += kGranuleBytes) {
          // As the fast paths do, with a mask for the part of the table that is there.
          if (heap.table.get(GranuleId((at >> kGranuleShift) & (heap.table.covered() - 1))) != &slab) continue;
          ASSERT_GE(slab.index_of(at), std::uint64_t{BRIMFUL_MAX_OBJECTS})
              << shape.bytes << " at " << back << " of " << mib;
        }
        heap.table.set_all(heap.table.id_of(slab.start), GranuleCount(shape.granules), &meta::none);
      }
    }
    heap.free_all();
  }
}

TEST(PageHeap, ClearsOnlyWhatWasWritten) {
  OwnPageHeap heap;
  const std::uint64_t fresh = heap.pages.allocate(GranuleCount(4), kGranuleBytes);
  auto* words = reinterpret_cast<std::uint64_t*>(fresh);
  // A clean granule is left as it is: a mark in it survives, which no caller would leave there.
  words[0] = 7;
  heap.pages.clear(fresh, 4 * kGranuleBytes);
  EXPECT_EQ(words[0], 7U) << "memory that was never written before is not touched";
  heap.pages.free(fresh, GranuleCount(4), 0);
  const std::uint64_t again = heap.pages.allocate(GranuleCount(8), kGranuleBytes);
  ASSERT_EQ(again, fresh);
  for (std::uint64_t i = 0; i < 8 * kGranuleBytes / 8; i += 512) words[i] = i + 1;
  heap.pages.clear(again, 3 * kGranuleBytes + 4096);
  EXPECT_TRUE(is_zero(again, 3 * kGranuleBytes + 4096));
  EXPECT_EQ(words[(3 * kGranuleBytes + 4096) / 8], (3 * kGranuleBytes + 4096) / 8 + 1) << "cleared too far";
  EXPECT_EQ(words[4 * kGranuleBytes / 8], 4 * kGranuleBytes / 8 + 1) << "cleared a clean granule";
}

TEST(PageHeap, GivesFreshAndPurgedMemoryAsZerosWithoutClearing) {
  OwnPageHeap heap;
  const std::uint64_t first = heap.allocate(6);
  heap.free(first);
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 1), 6 * kGranuleBytes);
  const std::uint64_t again = heap.pages.allocate(GranuleCount(6), kGranuleBytes);
  ASSERT_EQ(again, first);
  EXPECT_TRUE(is_zero(again, 6 * kGranuleBytes));
}

TEST(PageHeap, PurgesExactlyTheMemoryThatWasFreed) {
  OwnPageHeap heap;
  const std::uint64_t a = heap.allocate(3);
  const std::uint64_t b = heap.allocate(2);
  const std::uint64_t c = heap.allocate(5);
  heap.allocate(1);
  heap.free(a);
  heap.free(c);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 8 * kGranuleBytes);
  heap.os.reset();
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 1), 8 * kGranuleBytes);
  EXPECT_EQ(heap.os.log(Call::kPurge), (std::vector<Range>{{a, 3 * kGranuleBytes}, {c, 5 * kGranuleBytes}}));
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 0U);
  EXPECT_FALSE(heap.pages.has_dirty());
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 1), 0U) << "nothing is given back twice";
  // Joined with clean neighbours, only the dirty middle goes back.
  heap.os.reset();
  heap.free(b);
  EXPECT_EQ(heap.pages.purge(UINT64_MAX, SIZE_MAX, 1), 2 * kGranuleBytes);
  EXPECT_EQ(heap.os.log(Call::kPurge), (std::vector<Range>{{b, 2 * kGranuleBytes}}));
}

TEST(PageHeap, PurgesWhatIsOldEnoughWithinTheBudget) {
  OwnPageHeap heap;
  std::uint64_t runs[6];
  for (std::uint64_t& run : runs) {
    run = heap.allocate(32);
    heap.allocate(32);  // keeps them apart
  }
  for (int i = 0; i < 6; ++i) {
    heap.os.now_ms = 1000 + 100 * static_cast<std::uint64_t>(i);
    heap.free(runs[i]);
  }
  heap.os.reset();
  EXPECT_EQ(heap.pages.purge(999, SIZE_MAX, 2000), 0U);
  EXPECT_EQ(heap.pages.purge(1250, SIZE_MAX, 2000), 3 * kHugepageBytes) << "the three oldest";
  EXPECT_EQ(heap.pages.purge(2000, 1, 2000), kGranuleBytes) << "a budget ends inside a hugepage, at a granule";
  const auto purged = heap.os.log(Call::kPurge);
  for (std::size_t i = 0; i < purged.size(); ++i) EXPECT_EQ(purged[i].start, runs[i]) << "oldest first";
  EXPECT_EQ(bytes_of(purged), 3 * kHugepageBytes + kGranuleBytes);
  EXPECT_EQ(heap.pages.stats().dirty_bytes, 3 * kHugepageBytes - kGranuleBytes);
  EXPECT_EQ(heap.pages.purge(2000, SIZE_MAX, 2000), 3 * kHugepageBytes - kGranuleBytes)
      << "the rest of that hugepage is not forgotten";
}

// A hole of 2 MiB lies free and dirty; 3 MiB do not fit there and would make a new peak.
TEST(PageHeap, MakesNoNewPeakOfMemoryThatHasBeenFreeForAWhile) {
  for (const std::uint64_t age_ms : {std::uint64_t{0}, std::uint64_t{19}, std::uint64_t{20}, std::uint64_t{500}}) {
    OwnPageHeap heap;
    const std::uint64_t hole = heap.allocate(32);
    heap.allocate(32);
    heap.free(hole);
    heap.os.now_ms += age_ms;
    heap.os.reset();
    heap.allocate(48);
    const bool is_old = age_ms >= 20;
    EXPECT_EQ(heap.os.count(Call::kPurge), is_old ? 1U : 0U) << "free for " << age_ms << " ms";
    EXPECT_EQ(bytes_of(heap.os.log(Call::kPurge)), is_old ? 32 * kGranuleBytes : 0U) << "no more than the hole holds";
    heap.free_all();
  }
}

TEST(PageHeap, KnowsWhichAddressesWereEverHandedOut) {
  OwnPageHeap heap;
  const std::uint64_t run = heap.allocate(2);
  EXPECT_FALSE(heap.pages.was_used(run - 1));
  EXPECT_FALSE(heap.pages.was_used(run + 2 * kGranuleBytes));
  EXPECT_FALSE(heap.pages.was_used(0));
  EXPECT_FALSE(heap.pages.was_used(run + (heap.table.span() << kGranuleShift))) << "same entry, other address";
  heap.free(run);
  EXPECT_TRUE(heap.pages.was_used(run + 5));
}

TEST(PageHeap, GrowsInPlaceOnlyOverFreeGranules) {
  OwnPageHeap heap;
  const std::uint64_t a = heap.allocate(2);
  const std::uint64_t b = heap.allocate(2);
  const std::uint64_t c = heap.allocate(2);
  EXPECT_FALSE(heap.extend(a, 1));
  heap.free(b);
  EXPECT_FALSE(heap.extend(a, 3));
  EXPECT_TRUE(heap.extend(a, 1));
  EXPECT_TRUE(heap.extend(a, 1));
  EXPECT_FALSE(heap.extend(a, 1));
  EXPECT_TRUE(heap.extend(c, 500)) << "into the window's untouched tail";
  heap.free_all();
  heap.expect_whole();
}

}  // namespace
}  // namespace brimful::pages
