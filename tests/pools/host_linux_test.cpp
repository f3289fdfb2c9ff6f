// SPDX-License-Identifier: MIT
//
// The host on Linux: pages are zero, gone from memory once given back, and holes cost no mappings.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "brimful/pool_host.h"

namespace {

constexpr std::size_t kPage = 4096;

const brimful_pool_host& host() { return *brimful_pool_host_linux(); }
char* get(std::size_t pages) { return static_cast<char*>(host().get_pages(host().context, pages * kPage)); }
void give(void* run, std::size_t pages) { host().give_pages(host().context, run, pages * kPage); }

bool is_resident(void* page) {
  unsigned char state = 0;
  EXPECT_EQ(mincore(page, kPage, &state), 0);
  return (state & 1) != 0;
}

std::ptrdiff_t mappings() {
  std::ifstream maps("/proc/self/maps");
  return std::count(std::istreambuf_iterator<char>(maps), {}, '\n');
}

TEST(LinuxHost, GivesPagesThatAreAlignedAndApart) {
  std::set<char*> starts;
  for (std::size_t pages = 1; pages <= 100; ++pages) {
    char* run = get(pages);
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(run) % kPage, 0U);
    std::memset(run, 1, pages * kPage);
    for (std::size_t i = 0; i < pages; ++i) EXPECT_TRUE(starts.insert(run + i * kPage).second) << "in two runs";
  }
}

TEST(LinuxHost, GivesMemoryBackAndTheAddressesAgain) {
  for (const std::size_t pages : {1, 3, 64}) {
    char* run = get(pages);
    std::memset(run, 1, pages * kPage);
    EXPECT_TRUE(is_resident(run));
    give(run, pages);
    EXPECT_FALSE(is_resident(run)) << pages;
    EXPECT_EQ(get(pages), run) << pages;
    EXPECT_EQ(run[pages * kPage - 1], 0);
  }
}

TEST(LinuxHost, UnmapsRunsThatAreTooLongToWait) {
  char* run = get(65);
  run[0] = 1;
  give(run, 65);
  unsigned char state = 0;
  EXPECT_EQ(mincore(run, kPage, &state), -1);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(LinuxHost, MakesNoMappingOfAHole) {
  std::vector<char*> runs;
  for (int i = 0; i < 20000; ++i) runs.push_back(get(1 + i % 8));
  const std::ptrdiff_t before = mappings();
  for (std::size_t i = 0; i < runs.size(); i += 2) give(runs[i], 1 + i % 8);
  EXPECT_LE(mappings(), before + 2);
}

TEST(LinuxHost, KeepsErrno) {
  errno = 4711;
  EXPECT_EQ(get(SIZE_MAX / kPage / 2), nullptr);
  char* run = get(1);
  give(run, 1);
  EXPECT_EQ(errno, 4711);
}

TEST(LinuxHost, ServesThreadsAtOnce) {
  const auto work = [](char mark) {
    std::vector<char*> mine;
    for (int i = 0; i < 3000; ++i) {
      char* run = get(2);
      ASSERT_EQ(run[kPage], 0) << "not given back, or another's";
      std::memset(run, mark, 2 * kPage);
      mine.push_back(run);
      if (i % 3 == 2) {
        char* first = mine[mine.size() - 2];
        EXPECT_EQ(first[0], mark);
        EXPECT_EQ(first[2 * kPage - 1], mark);
        mine.erase(mine.end() - 2);
        give(first, 2);
      }
    }
    for (char* run : mine) give(run, 2);
  };
  std::vector<std::thread> threads;
  for (char mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
