// SPDX-License-Identifier: MIT
//
// pages/backing.h: when the page heap asks for hugepages and for populated memory, and what that costs in system calls
// and mappings. The kernel's answers about residence are real, its advice is counted.
#include "pages/backing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "config/options.h"
#include "own_page_heap.h"
#include "pages/fault_costs.h"

namespace brimful::pages {
namespace {

using testing::Advised;
using testing::OwnPageHeap;
using testing::Range;

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr ClassId kSmall = class_of(64);
constexpr std::uint32_t kGranulesPerHugepage = kHugepageBytes / kGranuleBytes;

// A heap with room, whose runs the test fills or leaves alone.
struct Backed : OwnPageHeap {
  explicit Backed(const char* options = "", std::size_t reserve = 1024 * kMiB) : OwnPageHeap(reserve) {
    config::options.populate = static_cast<std::int64_t>(config::Populate::kOff);
    config::apply(options, config::options, nullptr);
  }

  std::uint64_t slab(std::uint32_t granules = 1, ClassId size_class = kSmall) {
    return pages.allocate(GranuleCount(granules), kGranuleBytes, 0, size_class);
  }
  std::uint64_t block(std::size_t bytes) { return pages.allocate(GranuleCount::covering(bytes), kGranuleBytes); }
  void slabs(std::size_t bytes) {
    for (std::size_t done = 0; done < bytes; done += kGranuleBytes) ASSERT_NE(slab(), 0U);
  }
  [[nodiscard]] std::vector<Range> advised(os::Advice advice) const {
    std::vector<Range> result;
    for (const Advised& call : os.advices) {
      if (call.advice == advice) result.push_back(call.range);
    }
    return result;
  }
  // What the kernel was told last about the hugepage that holds the address.
  [[nodiscard]] bool is_huge(std::uint64_t address) const {
    bool huge = false;
    for (const Advised& call : os.advices) {
      if (call.advice == os::Advice::kPopulate) continue;
      if (address - call.range.start < call.range.bytes) huge = call.advice == os::Advice::kHugepage;
    }
    return huge;
  }
  // Stretches of different advice, which the kernel keeps as mappings.
  [[nodiscard]] std::size_t stretches() const {
    std::vector<std::uint64_t> edges;
    for (const Advised& call : os.advices) {
      edges.push_back(call.range.start);
      edges.push_back(call.range.start + call.range.bytes);
    }
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    std::size_t count = 0;
    bool before = false;
    for (const std::uint64_t edge : edges) {
      if (is_huge(edge) != before) ++count;
      before = is_huge(edge);
    }
    return count;
  }
};

void touch(std::uint64_t start, std::size_t bytes) { memset(reinterpret_cast<void*>(start), 1, bytes); }

TEST(Backing, ASmallHeapMakesNoCallAtAll) {
  Backed heap;
  heap.slabs(Backing::kLookFrom - kGranuleBytes);
  EXPECT_TRUE(heap.os.advices.empty());
  EXPECT_EQ(heap.os.mode_questions, 0U);
  EXPECT_EQ(heap.os.residence_questions, 0U);
}

TEST(Backing, BelowTheThresholdTheSystemIsAskedOnceAndToldNothing) {
  Backed heap;
  heap.slabs(Backing::kHugeFrom - kGranuleBytes);
  EXPECT_TRUE(heap.os.advices.empty());
  EXPECT_EQ(heap.os.mode_questions, 1U);
}

TEST(Backing, AGrowingHeapGetsHugepagesBeforeItTouchesThem) {
  Backed heap;
  heap.slabs(Backing::kHugeFrom + kHugepageBytes);
  std::size_t huge = 0;
  for (std::size_t i = 0; i < 64 * kMiB / kGranuleBytes; ++i) {
    if (heap.is_huge(heap.slab())) ++huge;
  }
  EXPECT_EQ(huge, 64 * kMiB / kGranuleBytes);
  EXPECT_LE(heap.os.advices.size(), 12U);
  for (const Range& range : heap.advised(os::Advice::kHugepage)) {
    EXPECT_EQ(range.start % kHugepageBytes, 0U);
    EXPECT_EQ(range.bytes % kHugepageBytes, 0U);
  }
}

TEST(Backing, WholeHugepagesAreUsableWhenTheyAreTouchedFirst) {
  Backed heap;
  heap.slabs(100 * kMiB);
  std::uint64_t first = UINT64_MAX;
  for (const Range& range : heap.advised(os::Advice::kHugepage)) first = std::min(first, range.start);
  for (const Range& range : heap.os.log(testing::Call::kCommit)) {
    const std::uint64_t end = range.start + range.bytes;
    const Range window = heap.advised(os::Advice::kNoHugepage).at(0);
    if (range.start - window.start >= window.bytes) continue;
    EXPECT_TRUE(end < first || end % kHugepageBytes == 0) << std::hex << range.start << " + " << range.bytes;
  }
}

TEST(Backing, WhereTheSystemNeverUsesHugepagesNothingIsAdvised) {
  Backed heap;
  heap.os.hugepage_mode = os::HugepageMode::kNever;
  heap.slabs(64 * kMiB);
  EXPECT_TRUE(heap.os.advices.empty());
  EXPECT_EQ(heap.os.mode_questions, 1U);
}

TEST(Backing, WhereTheSystemAlwaysUsesThemASmallHeapDeclines) {
  Backed heap;
  heap.os.hugepage_mode = os::HugepageMode::kAlways;
  heap.slabs(Backing::kLookFrom + kGranuleBytes);
  ASSERT_EQ(heap.os.advices.size(), 1U);
  EXPECT_EQ(heap.os.advices[0].advice, os::Advice::kNoHugepage);
  EXPECT_EQ(heap.os.advices[0].range.bytes, heap.pages.stats().reserved_bytes);
}

TEST(Backing, TheOptionDecidesForTheWholeWindow) {
  Backed never("thp:never");
  never.slabs(64 * kMiB);
  ASSERT_EQ(never.os.advices.size(), 1U);
  EXPECT_EQ(never.os.advices[0].advice, os::Advice::kNoHugepage);
  never.os.unmap_everything();
}

TEST(Backing, AlwaysAdvisesTheWindowAsItIsMapped) {
  Backed heap("thp:always");
  heap.slabs(kGranuleBytes);
  ASSERT_EQ(heap.os.advices.size(), 1U);
  EXPECT_EQ(heap.os.advices[0].advice, os::Advice::kHugepage);
}

TEST(Backing, BlocksThatNobodyFillsStayOnSmallPages) {
  Backed heap;
  heap.slabs(64 * kMiB);
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t block = heap.block(6 * kMiB);
    touch(block, 4096);
    for (std::size_t at = kHugepageBytes; at < 6 * kMiB; at += kHugepageBytes) EXPECT_FALSE(heap.is_huge(block + at));
  }
}

TEST(Backing, BlocksThatProgramsFillGetHugepages) {
  Backed heap;
  heap.slabs(16 * kMiB);
  std::uint64_t block = 0;
  for (int i = 0; i < 30; ++i) {
    block = heap.block(6 * kMiB);
    touch(block, 6 * kMiB);
  }
  EXPECT_TRUE(heap.is_huge(block + 3 * kMiB));
}

TEST(Backing, OneFilledBlockOfWholeHugepagesIsEnoughToKnowItsKind) {
  Backed heap;
  heap.slabs(24 * kMiB);
  const std::uint64_t first = heap.block(6 * kMiB);
  touch(first, 6 * kMiB);
  EXPECT_TRUE(heap.is_huge(heap.block(6 * kMiB)));
}

TEST(Backing, BlocksThatAreFilledLaterAreJudgedThen) {
  Backed heap;
  heap.slabs(24 * kMiB);
  const std::uint64_t first = heap.block(6 * kMiB);
  const std::uint64_t second = heap.block(6 * kMiB);  // none is filled yet: no judgement
  EXPECT_FALSE(heap.is_huge(second));
  touch(first, 6 * kMiB);
  EXPECT_TRUE(heap.is_huge(heap.block(6 * kMiB)));
}

TEST(Backing, TheLastHugepageOfABlockStaysSmallWhereLittleOfItIsTheBlocks) {
  Backed heap;
  heap.slabs(24 * kMiB);
  constexpr std::size_t kBytes = 6 * kMiB + 64 * 1024;
  touch(heap.block(kBytes), kBytes);
  heap.block(8 * kMiB);  // its extent is a step ahead and covers what comes next
  const std::uint64_t block = heap.block(kBytes);
  for (std::size_t at = 0; at < 6 * kMiB; at += kHugepageBytes) EXPECT_TRUE(heap.is_huge(block + at)) << at;
  EXPECT_FALSE(heap.is_huge(block + 6 * kMiB));
}

TEST(Backing, SlabsOfWhichEveryObjectHasAnUntouchedPageAreNotFilled) {
  constexpr ClassId kPages = class_of(16384);
  Backed heap("populate:auto");
  heap.slabs(16 * kMiB);
  for (int i = 0; i < 200; ++i) {
    const std::uint64_t start = heap.slab(kSizeClasses[kPages].granules, kPages);
    EXPECT_EQ(heap.pages.backing().take_populate().bytes, 0U);
    const std::size_t bytes = GranuleCount(kSizeClasses[kPages].granules).bytes();
    for (std::size_t at = 0; at < bytes; at += 16384) touch(start + at, 8192);
  }
  EXPECT_TRUE(heap.advised(os::Advice::kHugepage).empty());
}

TEST(Backing, SmallSparseBlocksEndTheExtentTheyFill) {
  Backed heap;
  heap.slabs(64 * kMiB);
  std::size_t huge = 0;
  for (int i = 0; i < 800; ++i) {
    const std::uint64_t block = heap.block(kMiB);
    touch(block, 4096);
    if (heap.is_huge(block)) ++huge;
  }
  EXPECT_LE(huge, 12U);  // of 800 MiB
}

TEST(Backing, APurgedExtentIsNotForTheKernelToFillUpAgain) {
  Backed heap;
  heap.slabs(32 * kMiB);
  std::vector<std::uint64_t> slabs;
  for (std::size_t i = 0; i < 8 * kMiB / kGranuleBytes; ++i) slabs.push_back(heap.slab());
  ASSERT_TRUE(heap.is_huge(slabs[100]));
  for (std::size_t i = 0; i < slabs.size(); i += 2) heap.pages.free(slabs[i], GranuleCount(1), heap.os.now_ms);
  EXPECT_GT(heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms), 0U);
  for (std::size_t i = 0; i < slabs.size(); i += 2) EXPECT_FALSE(heap.is_huge(slabs[i]));
}

TEST(Backing, WhatWasGivenBackIsBackedByHugepagesAgainWhenTheHeapGrowsBack) {
  Backed heap;
  heap.slabs(24 * kMiB);
  std::vector<std::uint64_t> slabs;
  for (std::size_t i = 0; i < 128 * kMiB / kGranuleBytes; ++i) slabs.push_back(heap.slab());
  for (const std::uint64_t slab : slabs) heap.pages.free(slab, GranuleCount(1), heap.os.now_ms);
  heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms);
  std::size_t huge = 0;
  for (std::size_t i = 0; i < slabs.size(); ++i) {
    if (heap.is_huge(heap.slab())) ++huge;
  }
  EXPECT_GE(huge, slabs.size() * 9 / 10);
}

TEST(Backing, TheKernelKeepsABoundedNumberOfMappings) {
  Backed heap;
  heap.os.hugepage_mode = os::HugepageMode::kAlways;
  std::mt19937_64 random(7);
  std::vector<std::pair<std::uint64_t, std::uint32_t>> live;
  for (int step = 0; step < 20000; ++step) {
    if (random() % 8 != 0 || live.empty()) {
      const auto count = static_cast<std::uint32_t>(random() % 2048 == 0 ? kGranulesPerHugepage * 3 : 1);
      const std::uint64_t start = count == 1 ? heap.slab() : heap.block(GranuleCount(count).bytes());
      if (start != 0) live.emplace_back(start, count);
    } else {
      std::swap(live[random() % live.size()], live.back());
      heap.pages.free(live.back().first, GranuleCount(live.back().second), heap.os.now_ms);
      live.pop_back();
    }
    if (step % 1000 == 999) heap.pages.purge(UINT64_MAX, SIZE_MAX, heap.os.now_ms);
  }
  EXPECT_LE(heap.stretches(), 2 * Backing::kExtents + 2);
  EXPECT_FALSE(heap.advised(os::Advice::kHugepage).empty());
}

TEST(Backing, TailsOfSlabsAreNotFilled) {
  // What is behind the last object would become resident with the rest.
  constexpr ClassId kTails = class_of(704);
  static_assert(kSizeClasses[kTails].granules * kGranuleBytes > 8 * kSizeClasses[kTails].bytes);
  Backed heap;
  const SizeClass& shape = kSizeClasses[kTails];
  const std::size_t filled = std::size_t{shape.groups} * kGroupObjects * shape.bytes;
  if (filled * 13 >= GranuleCount(shape.granules).bytes() * 12) GTEST_SKIP() << "the class has no tail";
  for (int i = 0; i < 1000; ++i) heap.slab(shape.granules, kTails);
  EXPECT_TRUE(heap.advised(os::Advice::kHugepage).empty());
}

TEST(Backing, RunsThatLeaveMuchOfAHugepageOverGetNone) {
  const auto advice_for = [](std::uint32_t granules) {
    Backed heap;
    for (int i = 0; i < 200; ++i) touch(heap.slab(granules, class_of(18432)), GranuleCount(granules).bytes());
    return heap.advised(os::Advice::kHugepage).size();
  };
  EXPECT_EQ(advice_for(18), 0U) << "14 of 32 granules are left over";
  EXPECT_GT(advice_for(16), 0U);
}

TEST(Backing, AFailingAdviceChangesNothing) {
  Backed heap;
  heap.os.fail(testing::Call::kAdvise, 1, testing::FakeOs::kAlways);
  heap.slabs(64 * kMiB);
  EXPECT_EQ(heap.pages.backing().stats().advised_bytes, 0U);
}

// --- populate ---------------------------------------------------------------------------------------------------------

// Allocates `count` slabs and says how many of them were to be populated.
std::size_t populated(Backed& heap, std::uint32_t granules, ClassId size_class, int count) {
  std::size_t result = 0;
  for (int i = 0; i < count; ++i) {
    heap.slab(granules, size_class);
    if (heap.pages.backing().take_populate().bytes != 0) ++result;
  }
  return result;
}

TEST(Populate, OffPopulatesNothing) {
  Backed heap("populate:off,thp:never");
  EXPECT_EQ(populated(heap, 1, kSmall, 1000), 0U);
}

TEST(Populate, PartialIsForSlabsOnly) {
  Backed heap("populate:partial,thp:never");
  EXPECT_EQ(populated(heap, 1, kSmall, 10), 10U);
  heap.block(kMiB);
  EXPECT_EQ(heap.pages.backing().take_populate().bytes, 0U);
}

TEST(Populate, AllIsForBlocksToo) {
  Backed heap("populate:all,thp:never");
  const std::uint64_t start = heap.block(kMiB);
  const MemoryRange range = heap.pages.backing().take_populate();
  EXPECT_EQ(range.start, start);
  EXPECT_EQ(range.bytes, kMiB);
  EXPECT_EQ(heap.pages.backing().take_populate().bytes, 0U);
}

TEST(Populate, AutoBeginsWhenAKindWasAskedForOften) {
  Backed heap("populate:auto,thp:never");
  EXPECT_EQ(populated(heap, 1, kSmall, 16), 0U);  // 1 MiB: too small to have a policy
  EXPECT_EQ(populated(heap, 1, kSmall, 16), 0U);
  EXPECT_EQ(populated(heap, 1, kSmall, 100), 100U);
  EXPECT_EQ(populated(heap, 1, class_of(128), 16), 0U);
}

TEST(Populate, AutoLeavesBlocksAloneThatNobodyFills) {
  Backed heap("populate:auto,thp:never");
  heap.slabs(2 * kMiB);
  std::size_t populated = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t start = heap.block(256 << 10);
    touch(start, 4096);
    if (heap.pages.backing().take_populate().bytes != 0) ++populated;
  }
  EXPECT_EQ(populated, 0U);
}

TEST(Populate, AutoLearnsWhichBlocksAreFilled) {
  Backed heap("populate:auto,thp:never");
  heap.slabs(2 * kMiB);
  std::size_t populated = 0;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t start = heap.block(256 << 10);
    touch(start, 256 << 10);
    if (heap.pages.backing().take_populate().bytes != 0) ++populated;
  }
  EXPECT_GE(populated, 60U);
}

TEST(Populate, LeavesDirtyMemoryAlone) {
  Backed heap("populate:all,thp:never");
  const std::uint64_t start = heap.slab();
  touch(start, kGranuleBytes);
  heap.pages.free(start, GranuleCount(1), heap.os.now_ms);
  ASSERT_EQ(heap.slab(), start);
  EXPECT_EQ(heap.pages.backing().take_populate().bytes, 0U);
}

TEST(Populate, MemoryIsResidentAndZero) {
  Backed heap("populate:all,thp:never");
  heap.block(kMiB);
  const MemoryRange range = heap.pages.backing().take_populate();
  populate(range);
  for (std::size_t at = 0; at < range.bytes; at += 4096) {
    EXPECT_TRUE(os::linux_calls().is_resident(range.start + at));
    EXPECT_EQ(*reinterpret_cast<const char*>(range.start + at), 0);
  }
}

TEST(Populate, KernelsWithoutTheCallTouchWhatWasAskedForByName) {
  Backed heap("populate:all,thp:never");
  heap.os.fail(testing::Call::kAdvise, 1, testing::FakeOs::kAlways);
  heap.block(kMiB);
  const MemoryRange range = heap.pages.backing().take_populate();
  populate(range);
  EXPECT_TRUE(os::linux_calls().is_resident(range.start + range.bytes - 4096));
}

// --- what hugepages and populated memory cost on this machine

// A heap on a machine whose faults cost what the test says. Grows by slabs as a program does that fills them.
struct Costly : Backed {
  Costly() : Backed("", 8192 * kMiB) {
    config::apply("populate:auto", config::options, nullptr);
    os.only_pretends = true;
  }
  // How many of the slabs lie on hugepages.
  std::size_t grow(std::size_t bytes) {
    std::size_t huge = 0;
    for (std::size_t done = 0; done < bytes; done += kGranuleBytes) {
      const std::uint64_t start = slab();
      populate(pages.backing().take_populate());
      if (pages.backing().is_advised(round_down(start, kHugepageBytes))) ++huge;
    }
    return huge;
  }
  [[nodiscard]] bool is_refused() { return pages.backing().stats().is_refused; }
};

TEST(BackingCosts, HugepagesThatAreCheaperThanFaultsAreAskedForWithoutEnd) {
  Costly heap;
  heap.grow(Backing::kHugeFrom + kHugepageBytes);
  EXPECT_EQ(heap.grow(200 * kMiB), 200 * kMiB / kGranuleBytes);
  EXPECT_FALSE(heap.is_refused());
  EXPECT_EQ(fault_costs.ns_per_page(FaultCosts::kTouched), heap.os.touched_ns);
  EXPECT_EQ(fault_costs.ns_per_page(FaultCosts::kPopulated), heap.os.populated_ns);
  EXPECT_EQ(fault_costs.ns_per_page(FaultCosts::kHuge), heap.os.hugepage_ns / 512);
}

TEST(BackingCosts, HugepagesThatCostMoreThanTheySaveAreRefusedAfterAFew) {
  Costly heap;
  heap.os.hugepage_ns = 512 * 5000;
  heap.grow(128 * kMiB);
  EXPECT_FALSE(heap.is_refused()) << "a small heap does not pay for knowing";
  heap.grow(72 * kMiB);
  EXPECT_TRUE(heap.is_refused());
  EXPECT_EQ(heap.pages.backing().stats().advised_bytes, 0U) << "what is not touched yet loses the advice";
  EXPECT_EQ(heap.grow(100 * kMiB), 0U);
}

TEST(BackingCosts, HugepagesAreJudgedAlsoWhereNothingIsPopulated) {
  Costly heap;
  config::apply("populate:off", config::options, nullptr);
  heap.os.hugepage_ns = 512 * 5000;
  heap.grow(200 * kMiB);
  EXPECT_TRUE(heap.is_refused());
  EXPECT_EQ(fault_costs.ns_per_page(FaultCosts::kTouched), heap.os.touched_ns);
}

TEST(BackingCosts, OneIsTriedNowAndThenAndHugepagesComeBackWhenTheyAreCheap) {
  Costly heap;
  heap.os.hugepage_ns = 512 * 5000;
  heap.grow(200 * kMiB);
  ASSERT_TRUE(heap.is_refused());
  EXPECT_LE(heap.grow(600 * kMiB), 3 * kHugepageBytes / kGranuleBytes);
  ASSERT_TRUE(heap.is_refused());
  heap.os.hugepage_ns = 512 * 400;
  heap.grow(3000 * kMiB);
  EXPECT_FALSE(heap.is_refused());
  EXPECT_EQ(heap.grow(50 * kMiB), 50 * kMiB / kGranuleBytes);
}

TEST(BackingCosts, WhereACallCostsMoreThanFaultsLittleIsPopulated) {
  Costly heap;
  config::apply("thp:never", config::options, nullptr);
  heap.os.populated_ns = 3 * heap.os.touched_ns;
  heap.grow(5 * kMiB);
  const std::size_t before = heap.pages.backing().stats().populated_bytes;
  heap.grow(64 * kMiB);
  EXPECT_LE(heap.pages.backing().stats().populated_bytes - before, 64 * kMiB / 8 + kGranuleBytes);
  heap.os.populated_ns = 1;
  heap.grow(1024 * kMiB);
  const std::size_t later = heap.pages.backing().stats().populated_bytes;
  heap.grow(16 * kMiB);
  EXPECT_GE(heap.pages.backing().stats().populated_bytes - later, 16 * kMiB - kGranuleBytes) << "measured again";
}

TEST(FaultCosts, NothingIsDecidedByAFewValues) {
  FaultCosts costs;
  for (std::uint32_t i = 0; i < FaultCosts::kLeastValues; ++i) {
    EXPECT_TRUE(costs.do_hugepages_pay() && costs.does_populate_pay());
    costs.note(FaultCosts::kTouched, 8 * 1000, 8);
    costs.note(FaultCosts::kHuge, 512 * 1100, 512);
    costs.note(FaultCosts::kPopulated, 10 * 900, 10);
  }
  EXPECT_FALSE(costs.do_hugepages_pay());
  EXPECT_TRUE(costs.does_populate_pay());
}

TEST(FaultCosts, OldValuesAreForgotten) {
  FaultCosts costs;
  for (int i = 0; i < 100; ++i) costs.note(FaultCosts::kHuge, 5000, 1);
  for (int i = 0; i < 20; ++i) costs.note(FaultCosts::kHuge, 400, 1);
  EXPECT_LE(costs.ns_per_page(FaultCosts::kHuge), 430U);
  EXPECT_GE(costs.ns_per_page(FaultCosts::kHuge), 400U);
}

}  // namespace
}  // namespace brimful::pages
