// SPDX-License-Identifier: MIT
//
// brimful_page_pool_check(): names what is broken, and survives whatever is written over the pages of blocks and the table's
// entries. Each fault is repaired before the next.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "pools/page_pool/pool.h"
#include "test_host.h"

namespace brimful::pools::page_pool {
namespace {

class PagePoolCheck : public testing::Test {
 protected:
  // Three pages of blocks and holes.
  PagePoolCheck() {
    std::mt19937 random(3);
    std::vector<void*> blocks;
    while (pool_->table.count() < 3 || blocks.size() < 100) {
      blocks.push_back(brimful_page_pool_malloc(pool_, random() % 300));
    }
    for (std::size_t i = 0; i < blocks.size(); i += 3) brimful_page_pool_free(pool_, blocks[i]);
    first_ = static_cast<char*>(pool_->table.page(0));
    for (std::size_t offset = 4; offset < 4092; offset += at(offset)->size()) {
      if (free_ == nullptr && at(offset)->is_free()) free_ = at(offset);
      if (live_ == nullptr && at(offset)->is_live() && offset > 4) live_ = at(offset);
    }
  }
  ~PagePoolCheck() override { brimful_page_pool_destroy(pool_); }

  Block* at(std::size_t offset) { return Block::at(reinterpret_cast<std::uintptr_t>(first_) + offset); }
  std::string found() {
    const char* what = brimful_page_pool_check(pool_, &where_);
    return what == nullptr ? "" : what;
  }

  TestHost host_;
  brimful_page_pool* pool_ = brimful_page_pool_create(host_.table());
  char* first_ = nullptr;
  Block* free_ = nullptr;
  Block* live_ = nullptr;
  const void* where_ = nullptr;
};

TEST_F(PagePoolCheck, NamesEachBrokenHeader) {
  EXPECT_EQ(found(), "");
  const Block live = *live_;
  live_->size_and_state ^= 1;
  EXPECT_EQ(found(), "a header's state is neither live nor free");
  EXPECT_EQ(where_, live_);
  *live_ = live;
  live_->size_and_state = kLive;
  EXPECT_EQ(found(), "a header's size does not fit into its page");
  live_->size_and_state = 0xFFF8 | kLive;
  EXPECT_EQ(found(), "a header's size does not fit into its page");
  *live_ = live;
  live_->size_before += 8;
  EXPECT_EQ(found(), "a header does not have the size of the block before it");
  *live_ = live;
  std::uint32_t mark = 0;
  std::memcpy(&mark, first_, 4);
  std::memset(first_, 0, 4);
  EXPECT_EQ(found(), "a page's mark is overwritten");
  std::memcpy(first_, &mark, 4);
  first_[4092] ^= 8;
  EXPECT_EQ(found(), "a page's end is overwritten");
  first_[4092] ^= 8;
  EXPECT_EQ(found(), "");
}

TEST_F(PagePoolCheck, NamesEachBrokenLink) {
  const Block free = *free_;
  free_->next_low ^= 0x40000000;
  EXPECT_EQ(found(), "a free block's link leads out of the pool's pages");
  EXPECT_EQ(where_, free_);
  *free_ = free;
  free_->set_next(live_);
  EXPECT_EQ(found(), "a free block's neighbours in its list do not link back");
  *free_ = free;
  free_->size_and_state ^= kFree ^ kLive;
  EXPECT_NE(found(), "");
  *free_ = free;
  EXPECT_EQ(found(), "");
}

TEST_F(PagePoolCheck, NamesWhatTheListsAndCountersHaveWrong) {
  // A block taken out of its list without becoming live.
  pool_->lists.remove(free_);
  EXPECT_NE(found(), "");
  pool_->lists.insert(free_, free_->size());
  EXPECT_EQ(found(), "");
  // A list that is a ring, which its head does not lead to.
  Block* const head = pool_->lists.heads()[free_->size() / 8];
  if (head->next() == nullptr) {
    pool_->lists.remove(head);
    head->set_next(head);
    head->set_previous(head);
    EXPECT_EQ(found(), "a free block is in no list");
    pool_->lists.insert(head, head->size());
  }
  pool_->lists.heads()[3] = live_;
  EXPECT_NE(found(), "");
  pool_->lists.heads()[3] = nullptr;
  ++pool_->used;
  EXPECT_EQ(found(), "a counter is wrong");
  --pool_->used;
  ++pool_->gets;
  EXPECT_EQ(found(), "a counter is wrong");
  --pool_->gets;
}

TEST_F(PagePoolCheck, FindsEveryFlippedBitOfHeadersAndLinksAndSurvivesEveryFlippedWord) {
  // Which bytes the pool owns: headers, and links of free blocks.
  std::vector<bool> owned(4096);
  for (std::size_t offset : {0, 4092}) std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(offset), 4, true);
  for (std::size_t offset = 4; offset < 4092; offset += at(offset)->size()) {
    std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(offset), at(offset)->is_free() ? 16 : 4, true);
  }
  for (std::size_t byte = 0; byte < 4096; ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      first_[byte] = static_cast<char>(first_[byte] ^ 1 << bit);
      ASSERT_EQ(found().empty(), !owned[byte]) << byte << "." << bit;
      first_[byte] = static_cast<char>(first_[byte] ^ 1 << bit);
    }
  }
  std::mt19937 random(4);
  for (int turn = 0; turn < 20000; ++turn) {
    const std::size_t offset = random() % 1024 * 4;
    std::uint32_t word = 0;
    std::memcpy(&word, first_ + offset, 4);
    const auto rubbish = static_cast<std::uint32_t>(random());
    std::memcpy(first_ + offset, &rubbish, 4);
    found();
    std::memcpy(first_ + offset, &word, 4);
  }
  std::vector<char> whole(first_, first_ + 4096);
  for (int turn = 0; turn < 200; ++turn) {
    for (int i = 0; i < 4096; ++i) first_[i] = static_cast<char>(random());
    EXPECT_NE(found(), "");
  }
  std::memcpy(first_, whole.data(), 4096);
  EXPECT_EQ(found(), "");
}

TEST_F(PagePoolCheck, FindsEveryFlippedBitOfTheTablesEntries) {
  const std::size_t count = pool_->table.count();
  auto* entries = static_cast<char*>(const_cast<void*>(pool_->table.memory()));
  for (std::size_t byte = 0; byte < count * sizeof(PageTable::Entry); ++byte) {
    for (int bit = 0; bit < 8; ++bit) {
      entries[byte] = static_cast<char>(entries[byte] ^ 1 << bit);
      ASSERT_EQ(found(), "the table of pages is damaged") << byte << "." << bit;
      entries[byte] = static_cast<char>(entries[byte] ^ 1 << bit);
    }
  }
  EXPECT_EQ(found(), "");
}

TEST_F(PagePoolCheck, RefusesToFreeASmashedBlock) {
  void* pointer = live_->payload();
  const Block live = *live_;
  for (int bit = 0; bit < 32; ++bit) {
    std::uint32_t word = 0;
    std::memcpy(&word, live_, 4);
    word ^= std::uint32_t{1} << bit;
    std::memcpy(live_, &word, 4);
    EXPECT_FALSE(brimful_page_pool_free(pool_, pointer)) << bit;
    *live_ = live;
  }
  EXPECT_TRUE(brimful_page_pool_free(pool_, pointer));
  EXPECT_EQ(found(), "");
}

}  // namespace
}  // namespace brimful::pools::page_pool
