// SPDX-License-Identifier: MIT
//
// The handle pool's promises, one by one: arguments, results, maps, statistics, limits, a host without pages.
#include <cstring>
#include <thread>

#include "handle_support.h"

namespace brimful::tests {
namespace {

brimful_handle_result map(const HandlePool& pool, brimful_handle handle, brimful_handle_mode mode) {
  void* pointer = nullptr;
  return brimful_handle_map(*pool, handle, mode, &pointer);
}

TEST(HandlePoolOptions, RefusesWhatMakesNoSense) {
  HandleHost host;
  const auto create = [](const brimful_handle_options& options) { return brimful_handle_pool_create(&options); };
  const brimful_handle_options good{sizeof(good), host.table(), 0, 0};
  EXPECT_EQ(brimful_handle_pool_create(nullptr), nullptr);
  brimful_handle_options bad = good;
  bad.size = 8;
  EXPECT_EQ(create(bad), nullptr);
  bad = good;
  bad.host = nullptr;
  EXPECT_EQ(create(bad), nullptr);
  for (const std::size_t most : {std::size_t{15}, std::size_t{65537}}) {
    bad = good;
    bad.most_object_bytes = most;
    EXPECT_EQ(create(bad), nullptr);
  }
  bad = good;
  bad.most_bytes = 4096;
  EXPECT_EQ(create(bad), nullptr);
  for (const std::size_t page : {std::size_t{2048}, std::size_t{6000}, std::size_t{131072}}) {
    brimful_pool_host table = *host.table();
    table.page_bytes = page;
    bad = good;
    bad.host = &table;
    EXPECT_EQ(create(bad), nullptr) << page;
  }
  brimful_pool_host table = *host.table();
  table.wait = nullptr;  // and wake is there
  bad = good;
  bad.host = &table;
  EXPECT_EQ(create(bad), nullptr);
}

TEST(HandlePool, RefusesArgumentsThatMakeNoSense) {
  HandleHost host;
  HandlePool pool(host.table(), 1000);
  brimful_handle handle = 77;
  void* pointer = &handle;
  std::size_t bytes = 0;
  EXPECT_EQ(brimful_handle_alloc(*pool, 0, &handle), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_alloc(*pool, 1, nullptr), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_alloc(nullptr, 1, &handle), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_alloc(*pool, 1001, &handle), BRIMFUL_HANDLE_TOO_LARGE);
  EXPECT_EQ(handle, 77);
  ASSERT_EQ(brimful_handle_alloc(*pool, 1000, &handle), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(brimful_handle_map(*pool, handle, static_cast<brimful_handle_mode>(0), &pointer), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_map(*pool, handle, static_cast<brimful_handle_mode>(4), &pointer), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_map(*pool, handle, BRIMFUL_HANDLE_READ, nullptr), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(pointer, &handle);
  EXPECT_EQ(brimful_handle_size(*pool, handle, nullptr), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_size(*pool, handle, &bytes), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(bytes, 1000);
  brimful_handle_stats stats{};
  EXPECT_EQ(brimful_handle_get_stats(*pool, &stats, nullptr, 0), BRIMFUL_HANDLE_INVALID);
  EXPECT_EQ(brimful_handle_compact(nullptr, 1, nullptr), 0);
  EXPECT_EQ(brimful_handle_check(nullptr, nullptr), nullptr);
}

TEST(HandlePool, NamesEachResult) {
  for (int i = BRIMFUL_HANDLE_OK; i <= BRIMFUL_HANDLE_INVALID; ++i) {
    for (int k = i + 1; k <= BRIMFUL_HANDLE_INVALID + 1; ++k) {
      EXPECT_STRNE(brimful_handle_result_text(static_cast<brimful_handle_result>(i)),
                   brimful_handle_result_text(static_cast<brimful_handle_result>(k)));
    }
  }
}

TEST(HandlePool, KeepsTheSizeThatWasAskedForOfEachSize) {
  HandleHost host;
  HandlePool pool(host.table(), 65536);
  for (std::size_t bytes = 1; bytes <= 65536; bytes += bytes < 4200 ? 1 : 331) {
    const brimful_handle handle = pool.alloc(bytes);
    ASSERT_NE(handle, 0);
    ASSERT_TRUE(fill(*pool, handle, bytes, bytes));
    std::size_t size = 0;
    ASSERT_EQ(brimful_handle_size(*pool, handle, &size), BRIMFUL_HANDLE_OK);
    ASSERT_EQ(size, bytes);
    ASSERT_EQ(pool.stats().live_bytes, bytes);
    ASSERT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_OK);
  }
  EXPECT_EQ(pool.broken(), nullptr);
}

TEST(HandlePool, ReadersShareAndAWriterExcludes) {
  HandleHost host;
  HandlePool pool(host.table());
  const brimful_handle handle = pool.alloc(100);
  EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_UNMAPPED);
  EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_READ), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_READ), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_WRITE), BRIMFUL_HANDLE_MAPPED);
  EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_BOTH), BRIMFUL_HANDLE_MAPPED);
  EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_MAPPED);
  EXPECT_EQ(brimful_handle_count_mapped(*pool), 1);
  EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_MAPPED);
  EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
  for (const brimful_handle_mode mode : {BRIMFUL_HANDLE_WRITE, BRIMFUL_HANDLE_BOTH}) {
    EXPECT_EQ(map(pool, handle, mode), BRIMFUL_HANDLE_OK);
    EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_READ), BRIMFUL_HANDLE_MAPPED);
    EXPECT_EQ(map(pool, handle, mode), BRIMFUL_HANDLE_MAPPED);
    EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_MAPPED);
    EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
  }
  EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_UNMAPPED);
  EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_OK);
}

TEST(HandlePool, RefusesOneReaderMoreThanItCanCount) {
  HandleHost host;
  HandlePool pool(host.table());
  const brimful_handle handle = pool.alloc(100);
  std::size_t readers = 0;
  while (map(pool, handle, BRIMFUL_HANDLE_READ) == BRIMFUL_HANDLE_OK) ++readers;
  EXPECT_EQ(readers, BRIMFUL_HANDLE_MOST_READERS);
  EXPECT_EQ(pool.broken(), nullptr);
  while (readers-- != 0) EXPECT_EQ(brimful_handle_unmap(*pool, handle), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_OK);
}

TEST(HandlePool, TellsStaleFromForeignHandles) {
  HandleHost host;
  HandlePool pool(host.table());
  HandlePool other(host.table());
  const brimful_handle freed = pool.alloc(100);
  const brimful_handle live = pool.alloc(100);
  const brimful_handle elsewhere = other.alloc(100);
  ASSERT_EQ(brimful_handle_free(*pool, freed), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(brimful_handle_free(*pool, freed), BRIMFUL_HANDLE_STALE);
  const brimful_handle next = pool.alloc(100);  // in the same place, probably
  EXPECT_NE(next, freed);
  std::size_t bytes = 0;
  const std::uint64_t next_generation = live + (std::uint64_t{1} << 27);
  for (const auto& [handle, expected] :
       {std::pair{freed, BRIMFUL_HANDLE_STALE}, std::pair{elsewhere, BRIMFUL_HANDLE_FOREIGN},
        std::pair{brimful_handle{0}, BRIMFUL_HANDLE_FOREIGN}, std::pair{live + 1000, BRIMFUL_HANDLE_FOREIGN},
        std::pair{live + 5, BRIMFUL_HANDLE_FOREIGN}, std::pair{next_generation, BRIMFUL_HANDLE_FOREIGN},
        std::pair{~brimful_handle{0}, BRIMFUL_HANDLE_FOREIGN}}) {
    EXPECT_EQ(map(pool, handle, BRIMFUL_HANDLE_READ), expected);
    EXPECT_EQ(brimful_handle_unmap(*pool, handle), expected);
    EXPECT_EQ(brimful_handle_free(*pool, handle), expected);
    EXPECT_EQ(brimful_handle_size(*pool, handle, &bytes), expected);
  }
  EXPECT_EQ(pool.broken(), nullptr);
}

TEST(HandlePool, KnowsAStaleHandleEvenWhenItsGenerationsHaveRunOut) {
  HandleHost host;
  HandlePool pool(host.table());
  const brimful_handle keeper = pool.alloc(64);  // keeps the run
  const brimful_handle first = pool.alloc(64);
  ASSERT_EQ(brimful_handle_free(*pool, first), BRIMFUL_HANDLE_OK);
  bool came_again = false;
  for (int i = 0; i < (1 << 20) + 100; ++i) {
    const brimful_handle handle = pool.alloc(64);
    came_again |= handle == first;
    brimful_handle_free(*pool, handle);
  }
  EXPECT_FALSE(came_again);
  EXPECT_EQ(brimful_handle_free(*pool, first), BRIMFUL_HANDLE_STALE);
  EXPECT_EQ(brimful_handle_free(*pool, keeper), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(pool.broken(), nullptr);
}

TEST(HandlePool, GivesAnEmptyRunBackAtOnce) {
  HandleHost host;
  HandlePool pool(host.table());
  const std::size_t before = pool.stats().held_bytes;
  EXPECT_EQ(before, 0);
  std::vector<brimful_handle> handles;
  for (int i = 0; i < 100; ++i) handles.push_back(pool.alloc(1000));
  EXPECT_GT(pool.stats().held_bytes, 100000);
  for (const brimful_handle handle : handles) ASSERT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(pool.stats().held_bytes, 0);
  EXPECT_EQ(host.held(), pool.stats().metadata_bytes);
}

TEST(HandlePool, CountsRunsByFullness) {
  HandleHost host;
  HandlePool pool(host.table(), 4096);
  std::vector<brimful_handle> handles;
  const brimful_handle_class_stats empty = pool.class_for(4096);
  EXPECT_EQ(empty.object_bytes, 4096);
  const std::size_t slots = empty.run_objects;
  for (std::size_t i = 0; i < 2 * slots + 1; ++i) handles.push_back(pool.alloc(4096));
  const brimful_handle_class_stats stats = pool.class_for(4096);
  EXPECT_EQ(stats.runs, 3);
  EXPECT_EQ(stats.objects, 2 * slots + 1);
  EXPECT_EQ(stats.group[11], 2);
  EXPECT_EQ(stats.group[(10 + slots - 1) / slots], 1);
  EXPECT_EQ(stats.compactable, 0);
  EXPECT_GT(stats.lock.acquisitions, 2 * slots);
  brimful_handle_free(*pool, handles[0]);
  EXPECT_EQ(pool.class_for(4096).compactable, 1);
}

TEST(HandlePool, StaysWithinItsLimitAndGoesOnWhenThereIsRoomAgain) {
  HandleHost host;
  constexpr std::size_t kLimit = 1 << 20;
  HandlePool pool(host.table(), 0, kLimit);
  std::vector<brimful_handle> handles;
  brimful_handle handle = 0;
  while (brimful_handle_alloc(*pool, 2000, &handle) == BRIMFUL_HANDLE_OK) handles.push_back(handle);
  EXPECT_EQ(brimful_handle_alloc(*pool, 2000, &handle), BRIMFUL_HANDLE_NO_MEMORY);
  EXPECT_LE(host.held(), kLimit);
  EXPECT_GT(handles.size() * 2000, kLimit * 85 / 100);
  EXPECT_EQ(pool.broken(), nullptr);
  ASSERT_EQ(brimful_handle_free(*pool, handles.back()), BRIMFUL_HANDLE_OK);
  EXPECT_EQ(brimful_handle_alloc(*pool, 2000, &handle), BRIMFUL_HANDLE_OK);
}

TEST(HandlePool, SurvivesAHostWithoutPagesAtEachRequest) {
  HandleHost host;
  for (std::size_t after = 0; after < 40; ++after) {
    host.fail_after(after);
    HandlePool pool(host.table(), 65536);
    if (*pool == nullptr) {
      EXPECT_EQ(after, 0);
      continue;
    }
    std::vector<brimful_handle> handles;
    std::size_t failed = 0;
    for (std::size_t i = 0; i < 60; ++i) {
      brimful_handle handle = 0;
      const auto result = brimful_handle_alloc(*pool, i * 997 % 65536 + 1, &handle);
      if (result == BRIMFUL_HANDLE_OK) {
        handles.push_back(handle);
      } else {
        EXPECT_EQ(result, BRIMFUL_HANDLE_NO_MEMORY);
        EXPECT_EQ(handle, 0);
        ++failed;
      }
      ASSERT_EQ(pool.broken(), nullptr) << pool.broken();
    }
    EXPECT_GT(failed, 0);
    EXPECT_EQ(host.held(), pool.stats().held_bytes + pool.stats().metadata_bytes);
    host.work_again();
    EXPECT_NE(pool.alloc(5000), 0);
    for (const brimful_handle handle : handles) EXPECT_EQ(brimful_handle_free(*pool, handle), BRIMFUL_HANDLE_OK);
    EXPECT_EQ(pool.broken(), nullptr);
  }
}

TEST(HandlePool, WorksWhereTheHostCannotWait) {
  HandleHost host;
  brimful_pool_host table = *host.table();
  table.wait = nullptr;
  table.wake = nullptr;
  table.now_ns = nullptr;
  HandlePool pool(&table);
  const brimful_handle handle = pool.alloc(10);
  EXPECT_TRUE(fill(*pool, handle, 10, 1));
  EXPECT_TRUE(holds(*pool, handle, 10, 1));
}

TEST(HandlePool, UsesEntriesAgainWhicheverClassFreedThem) {
  HandleHost host;
  HandlePool pool(host.table());
  const auto round = [&](std::size_t bytes) {
    std::vector<brimful_handle> handles;
    for (int i = 0; i < 3000; ++i) handles.push_back(pool.alloc(bytes));
    for (const brimful_handle handle : handles) brimful_handle_free(*pool, handle);
  };
  round(4000);
  const std::size_t metadata = pool.stats().metadata_bytes;
  for (std::size_t bytes = 3000; bytes > 1000; bytes -= 400) round(bytes);
  EXPECT_LE(pool.stats().metadata_bytes, metadata + 4 * 4096);
  EXPECT_EQ(pool.broken(), nullptr);
}

TEST(HandlePool, HasNoCliffAtHalfAPage) {
  HandleHost host;
  for (std::size_t bytes = 1500; bytes <= 4096; bytes += 37) {
    HandlePool pool(host.table());
    constexpr std::size_t kObjects = 500;
    for (std::size_t i = 0; i < kObjects; ++i) ASSERT_NE(pool.alloc(bytes), 0);
    const brimful_handle_stats stats = pool.stats();
    EXPECT_LT(static_cast<double>(stats.held_bytes), static_cast<double>(stats.live_bytes) * 1.12) << bytes;
  }
}

}  // namespace
}  // namespace brimful::tests
