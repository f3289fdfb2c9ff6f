// SPDX-License-Identifier: MIT
//
// os/ on the kernel the tests run on: what each call promises, and that none of them touches errno.
#include <gtest/gtest.h>

#include <errno.h>
#include <linux/rseq.h>
#include <sched.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "os/calls.h"
#include "os/cpus.h"
#include "os/environment.h"
#include "os/hugetlb.h"
#include "os/numa.h"
#include "os/small_file.h"

namespace brimful::os {
namespace {

// errno before and after each test: none of these calls may change it.
class OsTest : public ::testing::Test {
 protected:
  OsTest() { errno = 4711; }
  ~OsTest() override { EXPECT_EQ(errno, 4711); }
};
using Environment = OsTest;
using Cpus = OsTest;
using LinuxCalls = OsTest;

// Asks the kernel to read a path there: it reports an unreadable byte instead of dying of it.
bool is_readable(std::uintptr_t address) {
  const int saved = errno;
  const bool fault = access(reinterpret_cast<const char*>(address), F_OK) != 0 && errno == EFAULT;
  errno = saved;
  return !fault;
}

TEST_F(Environment, FindsVariablesByTheirWholeName) {
  setenv("BRIMFUL_TEST_NAME", "value=with=signs", 1);
  setenv("BRIMFUL_TEST_EMPTY", "", 1);
  errno = 4711;
  EXPECT_STREQ(environment("BRIMFUL_TEST_NAME"), "value=with=signs");
  EXPECT_STREQ(environment("BRIMFUL_TEST_EMPTY"), "");
  EXPECT_EQ(environment("BRIMFUL_TEST_NAM"), nullptr);
  EXPECT_EQ(environment("BRIMFUL_TEST_NAMES"), nullptr);
  unsetenv("BRIMFUL_TEST_NAME");
  EXPECT_EQ(environment("BRIMFUL_TEST_NAME"), nullptr);
}

TEST_F(Environment, SeesWhatTheProcessWasStartedWith) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const char* sign = std::strchr(*entry, '=');
    if (sign == nullptr) continue;
    const std::string name(*entry, static_cast<std::size_t>(sign - *entry));
    EXPECT_STREQ(environment(name.c_str()), getenv(name.c_str())) << name;
  }
  EXPECT_EQ(is_secure_mode(), getauxval(AT_SECURE) != 0);
}

TEST_F(Environment, GivesTheSameRandomNumberEachTime) {
  EXPECT_EQ(process_random(), process_random());
  EXPECT_NE(process_random(), 0U);
}

TEST_F(Environment, ReadsSmallFilesWholeOrCut) {
  char text[64];
  EXPECT_EQ(read_small_file("/proc/self/does-not-exist", text, sizeof text), -1);
  EXPECT_EQ(read_small_file("/proc/self/cmdline", text, 4), 3);
  EXPECT_EQ(text[3], '\0');
}

TEST_F(Cpus, ArePossibleAtLeastAsManyAsAreOnlineAndAsTheNumberOfTheRunningOne) {
  EXPECT_GE(possible_cpus(), static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
  EXPECT_GT(possible_cpus(), static_cast<std::uint32_t>(sched_getcpu()));
}

TEST_F(Cpus, AreCountedUpToTheGreatestNumberOfAList) {
  EXPECT_EQ(count_cpu_ids("0\n"), 1U);
  EXPECT_EQ(count_cpu_ids("0-3"), 4U);
  EXPECT_EQ(count_cpu_ids("0,4-7\n"), 8U);
  EXPECT_EQ(count_cpu_ids("0-3,8-11,127\n"), 128U);
  EXPECT_EQ(count_cpu_ids("4-7,0\n"), 8U) << "the order does not matter";
  EXPECT_EQ(count_cpu_ids("0-8191\n"), 8192U);
}

TEST_F(Cpus, AreUnknownWhenTheTextIsNoList) {
  for (const char* text : {"", "\n", "-3", "0-", "0,", "0-3,\n", "none\n", "0-3 4", "0x4", "99999999999999999999"}) {
    EXPECT_EQ(count_cpu_ids(text), 0U) << text;
  }
}

TEST_F(Cpus, HaveIdsBelowWhatTheKernelsMasksHold) {
  const std::uint32_t bits = cpu_mask_bits();
  if (bits == 0) GTEST_SKIP() << "sched_getaffinity is refused here";
  EXPECT_EQ(bits % 64, 0U);
  EXPECT_GT(bits, static_cast<std::uint32_t>(sched_getcpu()));
  EXPECT_GE(bits, static_cast<std::uint32_t>(sysconf(_SC_NPROCESSORS_ONLN)));
}

TEST_F(Cpus, AreExpectedUpToTheGreaterOfListAndMask) {
  EXPECT_EQ(cpu_ids(2, 64, 2048), 64U) << "a list that hides CPUs";
  EXPECT_EQ(cpu_ids(128, 64, 2048), 128U) << "a mask that hides CPUs";
  EXPECT_EQ(cpu_ids(0, 64, 2048), 64U) << "no list";
  EXPECT_EQ(cpu_ids(8, 0, 2048), 8U) << "no mask";
  EXPECT_EQ(cpu_ids(8192, 256, 2048), 256U) << "a list of CPUs that can't come";
  EXPECT_EQ(cpu_ids(8, 8192, 2048), 8U) << "a mask of one size for every machine";
  EXPECT_EQ(cpu_ids(4096, 8192, 2048), 4096U) << "really more than there is room for";
  EXPECT_EQ(cpu_ids(0, 8192, 2048), 0U) << "unknown";
  EXPECT_EQ(cpu_ids(0, 0, 2048), 0U) << "unknown";
}

TEST_F(Cpus, NameTheRunningThreadsRseqArea) {
  const RseqArea area = rseq_area();
  if (rseq_owner() == RseqOwner::kNone) {
    EXPECT_EQ(area.cpu_id, nullptr);
    EXPECT_EQ(area.rseq_cs, nullptr);
    GTEST_SKIP() << "this kernel, or its filter, offers no rseq";
  }
  ASSERT_NE(area.cpu_id, nullptr);
  ASSERT_NE(area.rseq_cs, nullptr);
  EXPECT_LT(*area.cpu_id, possible_cpus());
  if (area.mm_cid != nullptr) {
    EXPECT_LT(*area.mm_cid, possible_cpus());
  }
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(area.cpu_id) + 4, reinterpret_cast<std::uintptr_t>(area.rseq_cs));
  EXPECT_EQ(rseq_area().cpu_id, area.cpu_id) << "the same at each call";
  std::thread([&area] {
    const RseqArea other = rseq_area();
    EXPECT_NE(other.cpu_id, area.cpu_id) << "each thread has its own";
    EXPECT_LT(*other.cpu_id, possible_cpus());
  }).join();
}

TEST_F(Cpus, HaveABarrierOnceItIsRegistered) {
  if (!register_rseq_barrier()) GTEST_SKIP() << "this kernel has no rseq barrier (before 5.10, or no rseq)";
  EXPECT_TRUE(rseq_barrier());
}

TEST_F(LinuxCalls, UseThePageSizeOfTheSystem) {
  EXPECT_EQ(page_bytes(), static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

TEST_F(LinuxCalls, MapAtAHintOrNotAtAll) {
  const Calls& calls = linux_calls();
  void* place = calls.map(0, 1 << 16, Access::kNone);
  ASSERT_NE(place, nullptr);
  const auto at = reinterpret_cast<std::uintptr_t>(place);
  EXPECT_EQ(calls.map(at, 4096, Access::kReadWrite), nullptr) << "replaced an existing mapping";
  ASSERT_TRUE(calls.unmap(at, 1 << 16));
  EXPECT_EQ(calls.map(at, 1 << 16, Access::kReadWrite), place);
  EXPECT_TRUE(calls.unmap(at, 1 << 16));
  EXPECT_EQ(calls.map(0, std::size_t{1} << 62, Access::kNone), nullptr);
}

TEST_F(LinuxCalls, CommitPurgeAndDecommitKeepTheAddresses) {
  const Calls& calls = linux_calls();
  const auto at = reinterpret_cast<std::uintptr_t>(calls.map(0, 1 << 16, Access::kNone));
  auto* word = reinterpret_cast<volatile std::uint64_t*>(at);
  EXPECT_FALSE(is_readable(at));
  ASSERT_TRUE(calls.commit(at, 1 << 16));
  *word = 1;
  ASSERT_TRUE(calls.purge(at, 1 << 16));
  EXPECT_EQ(*word, 0U);
  *word = 2;
  ASSERT_TRUE(calls.decommit(at, 1 << 16));
  EXPECT_FALSE(is_readable(at));
  ASSERT_TRUE(calls.commit(at, 1 << 16));
  EXPECT_EQ(*word, 0U);
  EXPECT_TRUE(calls.unmap(at, 1 << 16));
  EXPECT_FALSE(calls.commit(at, 1 << 16)) << "not ours any more";
}

TEST_F(LinuxCalls, MovePagesAndResizeKeepContents) {
  const Calls& calls = linux_calls();
  const std::size_t page = page_bytes();
  const auto from = reinterpret_cast<std::uintptr_t>(calls.map(0, 8 * page, Access::kReadWrite));
  auto* words = reinterpret_cast<volatile std::uint64_t*>(from);
  words[0] = 7;
  ASSERT_TRUE(calls.move_pages(from, 2 * page, from + 4 * page));
  EXPECT_EQ(words[0], 0U) << "the old place stays mapped, empty";
  EXPECT_EQ(words[4 * page / sizeof(std::uint64_t)], 7U);
  EXPECT_TRUE(calls.unmap(from, 8 * page));
  const auto old = reinterpret_cast<std::uintptr_t>(calls.map(0, page, Access::kReadWrite));
  *reinterpret_cast<volatile std::uint64_t*>(old) = 9;
  void* resized = calls.resize(old, page, 64 * page);
  ASSERT_NE(resized, nullptr);
  EXPECT_EQ(*static_cast<volatile std::uint64_t*>(resized), 9U);
  EXPECT_EQ(calls.resize(reinterpret_cast<std::uintptr_t>(resized), 64 * page, std::size_t{1} << 62), nullptr);
  EXPECT_TRUE(calls.unmap(reinterpret_cast<std::uintptr_t>(resized), 64 * page));
}

// A program that reallocates a block of which a part was advised crashed: the target was not there any more.
TEST_F(LinuxCalls, MovePagesLeavesTheTargetUsableWhenTheKernelRefuses) {
  const Calls& calls = linux_calls();
  const std::size_t page = page_bytes();
  const auto from = reinterpret_cast<std::uintptr_t>(calls.map(0, 8 * page, Access::kReadWrite));
  auto* words = reinterpret_cast<volatile std::uint64_t*>(from);
  words[0] = 7;
  ASSERT_TRUE(calls.decommit(from + page, page)) << "now it is several mappings";
  if (calls.move_pages(from, 3 * page, from + 4 * page)) GTEST_SKIP() << "this kernel (6.17 on) moves several mappings";
  EXPECT_EQ(words[0], 7U);
  volatile std::uint64_t* target = words + 4 * page / sizeof(std::uint64_t);
  *target = 8;
  EXPECT_EQ(*target, 8U);
  target[2 * page / sizeof(std::uint64_t)] = 9;
  EXPECT_TRUE(calls.unmap(from, 8 * page));
}

TEST_F(LinuxCalls, KnowTheNodeOfTheRunningCpu) {
  EXPECT_GE(numa_nodes(), 1U);
  const std::uint32_t node = linux_calls().node();
  EXPECT_LT(node, kMaxNodes);
  EXPECT_TRUE(numa_nodes() > 1 || node == 0);
}

TEST_F(LinuxCalls, PreferANodeWithoutHarmToContents) {
  const Calls& calls = linux_calls();
  const auto at = reinterpret_cast<std::uintptr_t>(calls.map(0, 1 << 16, Access::kReadWrite));
  *reinterpret_cast<volatile std::uint64_t*>(at) = 5;
  calls.prefer_node(at, 1 << 16, calls.node());  // a kernel without NUMA refuses
  EXPECT_EQ(*reinterpret_cast<volatile std::uint64_t*>(at), 5U);
  EXPECT_FALSE(calls.prefer_node(at + 1, 1 << 16, 0)) << "not a page's start";
  EXPECT_TRUE(calls.unmap(at, 1 << 16));
}

TEST_F(LinuxCalls, MapPagesOfThePoolOrChangeNothing) {
  constexpr std::size_t kHugepage = std::size_t{1} << kHugetlb2M;
  const Calls& calls = linux_calls();
  const auto reserved = reinterpret_cast<std::uintptr_t>(calls.map(0, 3 * kHugepage, Access::kNone));
  const std::uintptr_t at = (reserved + kHugepage - 1) & ~(kHugepage - 1);
  const bool has_pool = calls.map_hugetlb(at, kHugepage, kHugetlb2M);
  EXPECT_EQ(is_readable(at), has_pool);
  EXPECT_FALSE(is_readable(at + kHugepage));
  EXPECT_FALSE(calls.map_hugetlb(at, std::size_t{1} << 45, kHugetlb2M)) << "no pool is so large";
  EXPECT_EQ(is_readable(at), has_pool);
  if (has_pool) {
    EXPECT_EQ(*reinterpret_cast<volatile std::uint64_t*>(at + kHugepage - 8), 0U);
    EXPECT_TRUE(calls.decommit(at, kHugepage));
  }
  EXPECT_EQ(calls.map(at, kHugepage, Access::kReadWrite), nullptr) << "there is no hole";
  EXPECT_TRUE(calls.commit(at, kHugepage));
  EXPECT_TRUE(calls.unmap(reserved, 3 * kHugepage));
}

TEST_F(LinuxCalls, HaveAClockThatGoesForward) {
  const std::uint64_t before = linux_calls().now_ms();
  usleep(30000);
  const std::uint64_t after = linux_calls().now_ms();
  EXPECT_GE(after - before, 20U);
  EXPECT_LT(after - before, 10000U);
}

}  // namespace
}  // namespace brimful::os
