// SPDX-License-Identifier: MIT
//
// control/names.h: names that are found and names that are not, numbers in place of names, and settings that some threads
// change while others go by them.
#include "control/names.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "alloc/allocate.h"
#include "arch/sequences.h"
#include "classes/size_classes.h"
#include "config/options.h"
#include "control/numbers.h"

namespace brimful::control {
namespace {

Name name_of(const std::string& text) {
  Name found = {};
  EXPECT_TRUE(find(text.c_str(), found)) << text;
  return found;
}

std::int64_t value_of(const std::string& text) {
  std::int64_t value = 0;
  std::size_t size = 0;
  const Name name = name_of(text);
  EXPECT_EQ(get(name, nullptr, &size), 0) << text;
  EXPECT_LE(size, sizeof value) << text;
  EXPECT_EQ(get(name, &value, &size), 0) << text;
  return value;
}

int change(const std::string& text, std::int64_t value) { return set(name_of(text), &value, sizeof value); }

TEST(Names, EveryOptionHasOne) {
  for (const config::OptionInfo& option : config::kOptions) {
    EXPECT_EQ(value_of(std::string("brimful.") + option.name), config::options.*option.field) << option.name;
  }
}

TEST(Names, KeepWhatWasWrittenBeforeTheFirstRequest) {
  EXPECT_EQ(change("brimful.purge_delay_ms", 77), 0);
  EXPECT_EQ(change("brimful.prof", 7777), 0);
  arch::brimful_free(alloc::allocate(100));
  EXPECT_EQ(value_of("brimful.purge_delay_ms"), 77);
  EXPECT_EQ(value_of("brimful.prof"), 7777);
}

TEST(Names, EverySizeClassHasOne) {
  for (std::size_t c = 0; c < kClassCount; ++c) {
    EXPECT_EQ(value_of("arenas.bin." + std::to_string(c) + ".size"), kSizeClasses[c].bytes);
    EXPECT_GE(value_of("stats.arenas.0.bins." + std::to_string(c) + ".curregs"), 0);
  }
  Name found = {};
  EXPECT_FALSE(find(("arenas.bin." + std::to_string(kClassCount) + ".size").c_str(), found));
}

TEST(Names, AreNotFoundByTheirParts) {
  Name found = {};
  for (const char* wrong :
       {"", ".", "stats", "stats.", "stats.allocated.", "Stats.allocated", "arena.purge", "arena.#.purge",
        "arena.-1.purge", "arena.0x0.purge", "arena.00000000.purge.", "brimful.%", "brimful", "epochs"}) {
    EXPECT_FALSE(find(wrong, found)) << wrong;
  }
}

TEST(Names, OfAllArenasAreThoseOfTheOne) {
  for (const char* arena : {"0", "1", "4096"}) {
    EXPECT_EQ(value_of(std::string("arena.") + arena + ".initialized"), 1) << arena;
  }
  Name found = {};
  EXPECT_FALSE(find("arena.2.initialized", found));
}

TEST(Names, ComeBackFromTheirNumbers) {
  for (const char* text :
       {"epoch", "stats.allocated", "arenas.bin.7.size", "stats.arenas.4096.bins.71.curslabs", "arena.1.purge"}) {
    std::size_t mib[8] = {};
    std::size_t length = 8;
    ASSERT_EQ(to_mib(text, mib, &length), 0) << text;
    Name found = {};
    ASSERT_TRUE(from_mib(mib, length, found)) << text;
    EXPECT_EQ(found.entry, name_of(text).entry) << text;
    EXPECT_EQ(found.which, name_of(text).which) << text;
    EXPECT_FALSE(from_mib(mib, length - 1, found)) << text;
    EXPECT_FALSE(from_mib(mib, length + 1, found)) << text;
    std::size_t room = length - 1;
    EXPECT_EQ(to_mib(text, mib, &room), EINVAL) << text;
    EXPECT_EQ(room, length - 1) << text;
  }
}

TEST(Names, TakeNoValueOutOfTheOptionsRange) {
  for (const char* option : {"purge_delay_ms", "muzzy_delay_ms", "release_rate", "limit", "soft_limit", "prof"}) {
    for (const config::OptionInfo& info : config::kOptions) {
      if (std::string(info.name) != option) continue;
      const std::int64_t before = value_of(std::string("brimful.") + option);
      EXPECT_EQ(change(std::string("brimful.") + option, info.least - 1), EINVAL) << option;
      EXPECT_EQ(change(std::string("brimful.") + option, info.most + 1), EINVAL) << option;
      EXPECT_EQ(value_of(std::string("brimful.") + option), before) << option;
    }
  }
  EXPECT_EQ(change("brimful.reserve", 1 << 30), EPERM) << "read when the program starts, and never again";
}

TEST(Numbers, AreOfOneMoment) {
  ASSERT_EQ(renew(), 0);
  Numbers before = {};
  ASSERT_EQ(read(before), 0);
  void* block = alloc::allocate(100000);
  Numbers same = {};
  ASSERT_EQ(read(same), 0);
  EXPECT_EQ(same.allocated, before.allocated);
  ASSERT_EQ(renew(), 0);
  ASSERT_EQ(read(same), 0);
  EXPECT_GE(same.allocated, before.allocated + 100000);
  EXPECT_EQ(same.epoch, before.epoch + 1);
  EXPECT_EQ(same.small + same.large, same.allocated);
  arch::brimful_free(block);
}

TEST(Numbers, AndSettingsMayBeUsedByAnyThread) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int n = 0; n < 2; ++n) {
    threads.emplace_back([&stop] {
      while (!stop) {
        std::vector<void*> blocks;
        for (std::size_t bytes = 8; bytes < 200000; bytes *= 2) blocks.push_back(alloc::allocate(bytes));
        for (void* block : blocks) arch::brimful_free(block);
      }
    });
  }
  for (int n = 0; n < 2; ++n) {
    threads.emplace_back([] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_EQ(renew(), 0);
        EXPECT_GE(value_of("stats.allocated"), 0);
        EXPECT_EQ(change("brimful.purge_delay_ms", i % 3 - 1), 0);
        EXPECT_EQ(change("brimful.release_rate", i), 0);
        EXPECT_EQ(change("brimful.soft_limit", i % 2 * (64 << 20)), 0);
        EXPECT_EQ(change("brimful.prof", i % 4 * 1000), 0);
        if (i % 50 != 0) continue;
        EXPECT_EQ(set(name_of("arena.0.purge"), nullptr, 0), 0);
      }
    });
  }
  for (std::size_t n = 2; n < threads.size(); ++n) threads[n].join();
  stop = true;
  for (std::size_t n = 0; n < 2; ++n) threads[n].join();
}

}  // namespace
}  // namespace brimful::control
