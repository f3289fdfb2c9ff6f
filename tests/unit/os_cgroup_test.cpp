// SPDX-License-Identifier: MIT
//
// os/cgroup.h on trees of files that a test writes: both versions, containers, hybrids and nonsense.
#include "os/cgroup.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace brimful::os {
namespace {

class Cgroup : public ::testing::Test {
 protected:
  Cgroup() {
    char name[] = "/tmp/brimful-cgroup-XXXXXX";
    root_ = mkdtemp(name);
    std::filesystem::create_directories(root_ + "/memory");
    membership_ = root_ + "/membership";
    unified_ = root_ + "/unified";
    memory_ = root_ + "/memory";
    std::filesystem::create_directories(unified_);
  }
  ~Cgroup() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::string whole = root_ + "/" + path;
    std::filesystem::create_directories(std::filesystem::path(whole).parent_path());
    std::ofstream(whole) << text;
  }
  MemoryGroup find(const std::string& membership) const {
    write("membership", membership);
    MemoryGroup group = {};
    find_memory_group(group, {membership_.c_str(), unified_.c_str(), memory_.c_str()});
    return group;
  }

  std::string root_, membership_, unified_, memory_;
};

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST_F(Cgroup, IsFoundInVersionTwo) {
  const MemoryGroup group = find("0::/user.slice/job\n");
  EXPECT_TRUE(group.is_unified);
  EXPECT_EQ(group.folder, unified_ + "/user.slice/job");
}

TEST_F(Cgroup, IsFoundInVersionOneAmongOtherControllers) {
  const MemoryGroup group = find("9:name=systemd:/\n5:cpu,memory,pids:/a/b\n4:hugetlb:/x\n0::/other\n");
  EXPECT_FALSE(group.is_unified);
  EXPECT_EQ(group.folder, memory_ + "/a/b");
}

TEST_F(Cgroup, OfAnotherControllerIsNone) {
  EXPECT_EQ(find("3:cpu,cpuacct:/a\n2:name=memory:/b\n").mount_length, 0U);
  EXPECT_EQ(find("").mount_length, 0U);
  EXPECT_EQ(find("no colons here\n").mount_length, 0U);
  EXPECT_EQ(find("1:memory").mount_length, 0U);
}

TEST_F(Cgroup, HasTheLeastLimitOfItAndThoseAbove) {
  write("unified/a/memory.max", "1073741824\n");
  write("unified/a/memory.high", "max\n");
  write("unified/a/b/memory.max", "max\n");
  write("unified/a/b/memory.high", "536870912\n");
  write("unified/a/b/c/memory.max", "2147483648\n");
  const GroupLimits limits = group_limits(find("0::/a/b/c\n"));
  EXPECT_EQ(limits.most, 1024 * kMiB);
  EXPECT_EQ(limits.high, 512 * kMiB);
}

TEST_F(Cgroup, IsTheMountWhenAContainerShowsThePathOfItsHost) {
  write("unified/memory.max", "104857600\n");
  EXPECT_EQ(group_limits(find("0::/docker/0123456789abcdef\n")).most, 100 * kMiB);
  EXPECT_EQ(group_limits(find("0::/\n")).most, 100 * kMiB);
}

TEST_F(Cgroup, OfVersionOneHasNoLimitWhereTheKernelShowsTheGreatestNumber) {
  write("memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  write("memory/job/memory.soft_limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(group_limits(find("4:memory:/job\n")).most, kNoLimit);
  EXPECT_EQ(group_limits(find("4:memory:/job\n")).high, kNoLimit);
  write("memory/memory.limit_in_bytes", "73400320\n");
  EXPECT_EQ(group_limits(find("4:memory:/job\n")).most, 70 * kMiB);
}

TEST_F(Cgroup, WithoutFilesHasNoLimit) {
  EXPECT_EQ(group_limits(find("0::/a\n")).most, kNoLimit);
  EXPECT_EQ(group_limits(MemoryGroup{}).most, kNoLimit);
  write("unified/a/memory.max", "99999999999999999999999\n");
  EXPECT_EQ(group_limits(find("0::/a\n")).most, kNoLimit);
}

TEST_F(Cgroup, WithAPathThatDoesNotFitIsTheMount) {
  write("unified/memory.max", "104857600\n");
  EXPECT_EQ(group_limits(find("0::/" + std::string(2000, 'x') + "\n")).most, 100 * kMiB);
}

TEST_F(Cgroup, CountsHowOftenItsLimitsWereReached) {
  write("unified/a/memory.events", "low 1\nhigh 20\nmax 3\noom 5\noom_kill 0\n");
  EXPECT_EQ(group_refusals(find("0::/a\n")), 23U);
  write("memory/a/memory.failcnt", "17\n");
  EXPECT_EQ(group_refusals(find("4:memory:/a\n")), 17U);
  EXPECT_EQ(group_refusals(find("0::/b\n")), 0U);
}

TEST_F(Cgroup, SaysHowMuchItsTasksStallInHundredthsOfAPercent) {
  const std::string system = root_ + "/pressure";
  const auto stall = [&](const std::string& text) {
    write("pressure", text);
    return memory_stall(MemoryGroup{}, system.c_str());
  };
  EXPECT_EQ(stall("some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"), 0U);
  EXPECT_EQ(stall("some avg10=12.34 avg60=50.00 avg300=0.00 total=0\nfull avg10=99.00\n"), 1234U);
  EXPECT_EQ(stall("some avg10=7.5 avg60"), 750U);
  EXPECT_EQ(stall("some avg10=7"), 700U);
  EXPECT_EQ(stall("full avg10=9.00"), 0U);
  EXPECT_EQ(stall("some avg10=100.00"), 10000U);
  EXPECT_EQ(stall("some avg10=100.01"), 0U) << "no share of the time";
  EXPECT_EQ(stall("some avg10=42949672.96"), 0U) << "which would wrap around";
  EXPECT_EQ(memory_stall(MemoryGroup{}, (root_ + "/missing").c_str()), 0U);
  write("pressure", "some avg10=1.00 ");
  write("unified/a/memory.pressure", "some avg10=33.00 avg60=0.00\n");
  EXPECT_EQ(memory_stall(find("0::/a\n"), system.c_str()), 3300U) << "the group's own stalls count";
  EXPECT_EQ(memory_stall(find("0::/b\n"), system.c_str()), 100U) << "the system's, where the group says nothing";
}

}  // namespace
}  // namespace brimful::os
