// SPDX-License-Identifier: MIT
//
// stats/output.h, stats/locks.h and stats/print.h: columns, JSON, sums, and what is said when nothing can be said.
#include "stats/print.h"

#include <gtest/gtest.h>

#include <errno.h>

#include <string>

#include "brimful/brimful.h"
#include "fake_os.h"
#include "pages/heap.h"
#include "slots/central.h"
#include "slots/thread.h"
#include "slots_test_support.h"
#include "stats/locks.h"
#include "stats/output.h"

namespace brimful::stats {
namespace {

using testing::FakeOs;

std::string text_of(const Output& output) { return {output.data(), output.size()}; }

TEST(Output, PutsTextAndNumbersIntoColumns) {
  Output output;
  output.left("ab", 4).right("cd", 4).right(7, 3) << "|";
  output.left("longer", 2).right(12345, 2) << "|" << std::uint64_t{18446744073709551615U};
  EXPECT_EQ(text_of(output), "ab    cd  7|longer12345|18446744073709551615");
}

TEST(Output, WritesThousandthsWithThreeDigits) {
  Output output;
  output.thousandths(0) << " ";
  output.thousandths(7) << " ";
  output.thousandths(12345) << " ";
  output.thousandths(60);
  EXPECT_EQ(text_of(output), "0.000 0.007 12.345 0.060");
}

TEST(Output, CutsWhatDoesNotFit) {
  Output output;
  for (std::size_t i = 0; i < Output::kCapacity; ++i)
    output << "ab"
           << "c";
  EXPECT_EQ(output.size(), Output::kCapacity - 1);
  EXPECT_EQ(output.data()[output.size()], '\0');
  EXPECT_EQ(text_of(output).substr(0, 6), "abcabc");
}

TEST(Output, DoesNothingWithoutMemory) {
  FakeOs os;
  os.fail(testing::Call::kMap, 1);
  Output output;
  EXPECT_FALSE(output.is_usable());
  output << "text";
  output.right(5, 10);
  EXPECT_EQ(output.size(), 0U);
  EXPECT_EQ(print(output, Format::kJson), ENOMEM);
}

TEST(Output, GivesItsMemoryBack) {
  FakeOs os;
  { Output output; }
  EXPECT_EQ(os.mapped_bytes(), 0U);
}

TEST(Json, SeparatesMembersOfNestedObjects) {
  Output output;
  Json json(output);
  json.begin();
  json.number("a", 1);
  json.begin("b");
  json.begin(64);
  json.end();
  json.string("c", "d");
  json.end();
  json.thousandths("e", 1500);
  json.end();
  EXPECT_EQ(text_of(output), R"({"a":1,"b":{"64":{},"c":"d"},"e":1.500})");
}

TEST(LockReport, SumsClassesAndContexts) {
  brimful_free(brimful_malloc(100));
  LockReport before = {};
  read_locks(before);
  EXPECT_GE(before.contexts, 1U);
  {
    const sync::MutexLock first(slots::central[3].lock);
    ASSERT_TRUE(slots::all_contexts()->lock.try_lock());
    EXPECT_FALSE(slots::all_contexts()->lock.try_lock());
    slots::all_contexts()->lock.unlock();
    const sync::MutexLock second(pages::heap.lock);
  }
  LockReport now = {};
  read_locks(now);
  EXPECT_EQ(now.contexts, before.contexts);
  EXPECT_EQ(now.classes[3].acquisitions - before.classes[3].acquisitions, 1U);
  EXPECT_EQ(now.central.acquisitions - before.central.acquisitions, 1U);
  EXPECT_EQ(now.heap.acquisitions - before.heap.acquisitions, 1U);
  EXPECT_EQ(now.context.acquisitions - before.context.acquisitions, 1U);
  EXPECT_EQ(now.context.busy - before.context.busy, 1U);
}

TEST(PrintStatistics, RefusesInsideASlowPathInsteadOfWaitingForItsOwnThread) {
  brimful_free(brimful_malloc(100));
  const slots::SlowScope interrupted;
  Output output;
  EXPECT_EQ(print(output, Format::kText), EDEADLK);
  EXPECT_EQ(output.size(), 0U);
}

TEST(PrintStatistics, ShowsLocksOfClassesOnlyWhereSomebodyWaited) {
  void* held = brimful_malloc(48);
  ASSERT_TRUE(slots::central[class_of(48)].lock.try_lock());
  EXPECT_FALSE(slots::central[class_of(48)].lock.try_lock());
  slots::central[class_of(48)].lock.unlock();
  Output output;
  ASSERT_EQ(print(output, Format::kText), 0);
  const std::string text = text_of(output);
  const std::string locks = text.substr(text.find("  lock "), text.find("  events") - text.find("  lock "));
  EXPECT_NE(locks.find("\n         48 "), std::string::npos) << text;
  EXPECT_EQ(locks.find("\n         64 "), std::string::npos) << text;
  brimful_free(held);
}

}  // namespace
}  // namespace brimful::stats
