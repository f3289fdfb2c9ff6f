// SPDX-License-Identifier: MIT
//
// TLSF's checker finds each broken word and follows no pointer out of the pool; the checked build finds misuse at the
// call, before anything changes.
#include <map>
#include <string>
#include <utility>

#include "pools/tlsf/pool.h"
#include "tlsf_fixture.h"

namespace {

// A small pool with everything in it: live and free blocks of several lists, one list of several blocks, two regions.
class SmallPool {
 public:
  SmallPool() {
    EXPECT_TRUE(brimful_tlsf_add_region(pool_, second_, sizeof(second_)));
    for (int i = 0; i < 20; ++i) blocks_.push_back(brimful_tlsf_malloc(pool_, 24 + (i % 4) * 16));
    for (int i = 0; i < 20; i += 2) {
      brimful_tlsf_free(pool_, blocks_[i]);
      blocks_[i] = nullptr;
    }
    for (void* const block : blocks_) {
      if (block != nullptr) std::memset(block, 0x5A, brimful_tlsf_usable_size(block));
    }
  }

  operator brimful_tlsf*() const { return pool_; }
  [[nodiscard]] std::uint64_t* begin() const { return reinterpret_cast<std::uint64_t*>(pool_); }

  // All of its words but those that users of blocks may write, and those inside free blocks that mean nothing.
  [[nodiscard]] std::vector<std::uint64_t*> meaningful_words() const {
    std::vector<std::uint64_t*> words;
    for (std::size_t i = 0; i < sizeof(brimful_tlsf) / 8; ++i) words.push_back(begin() + i);
    brimful_tlsf_walk(
        pool_,
        [](void* context, void* block, std::size_t bytes, bool live) {
          auto* const found = static_cast<std::vector<std::uint64_t*>*>(context);
          auto* const word = static_cast<std::uint64_t*>(block);
          found->push_back(word - 1);
          if (live) return true;
          found->push_back(word);
          found->push_back(word + 1);
          found->push_back(word + bytes / 8 - 1);
          return true;
        },
        &words);
    return words;
  }

  // Every word of the pool, users' bytes and all.
  [[nodiscard]] std::vector<std::uint64_t*> all_words() const {
    std::vector<std::uint64_t*> words;
    for (std::uint64_t& word : first_) words.push_back(&word);
    for (std::uint64_t& word : second_) words.push_back(&word);
    return words;
  }

 private:
  alignas(16) mutable std::uint64_t first_[(sizeof(brimful_tlsf) + 1024) / 8] = {};
  alignas(16) mutable std::uint64_t second_[64] = {};
  brimful_tlsf* pool_ = brimful_tlsf_create(first_, sizeof(first_));
  std::vector<void*> blocks_;
};

const char* check(brimful_tlsf* pool) { return brimful_tlsf_check(pool, nullptr); }

constexpr std::uint64_t kSmashes[] = {~std::uint64_t{0},
                                      1,
                                      2,
                                      4,
                                      8,
                                      16,
                                      32,
                                      0x100,
                                      0x10000,
                                      std::uint64_t{1} << 39,
                                      std::uint64_t{1} << 40,
                                      std::uint64_t{1} << 63,
                                      0x5555555555555555U};

TEST(TlsfCheck, FindsEachSmashedWordThatMeansSomething) {
  const SmallPool pool;
  ASSERT_EQ(check(pool), nullptr);
  for (std::uint64_t* const word : pool.meaningful_words()) {
    for (const std::uint64_t smash : kSmashes) {
      const std::uint64_t before = *word;
      *word ^= smash;
      const void* where = nullptr;
      const char* const what = brimful_tlsf_check(pool, &where);
      // The peak is a number of its own: only one below what is used contradicts the rest.
      const bool is_peak = word == pool.begin() + 1;
      EXPECT_TRUE(what != nullptr || (is_peak && *word >= pool.begin()[0])) << word - pool.begin() << " ^ " << smash;
      EXPECT_EQ(what == nullptr, where == nullptr);
      *word = before;
    }
  }
  EXPECT_EQ(check(pool), nullptr);
}

TEST(TlsfCheck, SurvivesEachSmashAndEachPairOfEqualWords) {
  const SmallPool pool;
  const std::vector<std::uint64_t*> words = pool.all_words();
  for (std::uint64_t* const word : words) {
    const std::uint64_t before = *word;
    for (const std::uint64_t smash : kSmashes) {
      *word = before ^ smash;
      check(pool);
      *word = smash;
      check(pool);
    }
    *word = before;
  }
  // What overwrote one word often overwrote its neighbours.
  for (std::size_t i = 0; i + 4 < words.size(); ++i) {
    std::uint64_t before[4];
    for (std::size_t j = 0; j < 4; ++j) before[j] = std::exchange(*words[i + j], 0x4141414141414141U);
    check(pool);
    for (std::size_t j = 0; j < 4; ++j) *words[i + j] = before[j];
  }
  EXPECT_EQ(check(pool), nullptr);
}

TEST(TlsfCheck, FindsAFakeBlockThatReplacedARealOne) {
  // Inside a live block, its owner builds a free block that is right in all its words, and puts it into a list instead of
  // one of equal stride. Only counting and summing what both passes met can tell.
  alignas(16) static std::uint64_t memory[4096];
  brimful_tlsf* const pool = brimful_tlsf_create(memory, sizeof(memory));
  auto* const a = words_of(brimful_tlsf_malloc(pool, 24));
  void* const fence = brimful_tlsf_malloc(pool, 24);
  auto* const owned = words_of(brimful_tlsf_malloc(pool, 120));
  brimful_tlsf_free(pool, a);
  ASSERT_EQ(check(pool), nullptr);
  std::uint64_t* const fake = owned + 1;  // a header at 8 modulo 16
  const std::uint64_t header = a[-1];     // free, 32 bytes (its tag is wrong in the checked build)
  auto** const slot = reinterpret_cast<std::uint64_t**>(a[1]);
  fake[0] = header;
  fake[1] = 0;
  fake[2] = a[1];
  fake[3] = 32;
  *slot = fake;
  EXPECT_NE(check(pool), nullptr);
  *slot = a - 1;
  EXPECT_EQ(check(pool), nullptr);
  brimful_tlsf_free(pool, fence);
}

TEST(TlsfCheck, SaysWhatIsBrokenAndWhere) {
  const TlsfPool pool(4096);
  auto* const a = words_of(brimful_tlsf_malloc(pool, 24));
  auto* const b = words_of(brimful_tlsf_malloc(pool, 24));
  brimful_tlsf_malloc(pool, 24);
  brimful_tlsf_free(pool, b);
  const void* where = nullptr;
  const auto broken = [&](std::uint64_t& word, std::uint64_t smash) {
    word ^= smash;
    where = nullptr;
    const char* const what = brimful_tlsf_check(pool, &where);
    word ^= smash;
    return std::string(what == nullptr ? "" : what);
  };
  EXPECT_EQ(broken(b[2], 64), "a free block's footer is its stride");
  EXPECT_EQ(where, b - 1);
  EXPECT_EQ(broken(b[1], 64), "a free block's links lead to its neighbours in the list, and back");
  EXPECT_EQ(broken(a[-1], 2), "a header tells whether the block before it is free");
  EXPECT_EQ(where, a - 1);
  EXPECT_EQ(broken(a[-1], 4), "the bits of a header that mean nothing are 0");
  EXPECT_EQ(broken(a[-1], 32), "a block ends within its region and is no shorter than 32 bytes");
  auto* const pool_words = reinterpret_cast<std::uint64_t*>(static_cast<brimful_tlsf*>(pool));
  EXPECT_EQ(broken(pool_words[0], 1), "the counters are sums over the blocks");
  EXPECT_EQ(broken(pool_words[5], 1), "the bitmaps say which lists are empty");
}

// The hook: notes what it is told.
std::map<std::string, int> g_misuses;
const void* g_pointer;

void note_misuse(brimful_tlsf* /*pool*/, const char* what, const void* pointer) {
  ++g_misuses[what];
  g_pointer = pointer;
}

class TlsfMisuse : public testing::Test {
 protected:
  void SetUp() override {
    g_misuses.clear();
    brimful_tlsf_set_misuse(pool, note_misuse);
  }

  // What the hook heard of `act`, which must have changed nothing.
  template <class Act>
  std::string told(Act act) {
    g_misuses.clear();
    const std::vector<std::byte> before = pool.bytes();
    act();
    EXPECT_TRUE(pool.bytes() == before);
    return g_misuses.empty() ? "" : g_misuses.begin()->first;
  }

  std::string told_of_free(void* pointer) {
    std::string by_free = told([&] { brimful_tlsf_free(pool, pointer); });
    EXPECT_EQ(g_pointer, by_free.empty() ? g_pointer : pointer);
    const std::string by_realloc = told([&] { EXPECT_EQ(brimful_tlsf_realloc(pool, pointer, 100), nullptr); });
    EXPECT_EQ(by_realloc, by_free);
    return by_free;
  }

  TlsfPool pool{8192};
};

TEST_F(TlsfMisuse, DoubleFreeIsFoundAlone) {
  void* const a = brimful_tlsf_malloc(pool, 100);
  void* const fence = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, a);
  EXPECT_EQ(told_of_free(a), "the block is live");
  brimful_tlsf_free(pool, fence);
}

TEST_F(TlsfMisuse, DoubleFreeIsFoundAfterJoiningInEachDirection) {
  void* const a = brimful_tlsf_malloc(pool, 100);
  void* const b = brimful_tlsf_malloc(pool, 100);
  void* const c = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, a);
  brimful_tlsf_free(pool, c);
  brimful_tlsf_free(pool, b);  // joined with both
  EXPECT_EQ(told_of_free(a), "the block is live");
  EXPECT_EQ(told_of_free(b), "the block is live");
  EXPECT_EQ(told_of_free(c), "the block is live");
}

TEST_F(TlsfMisuse, ForeignPointersAreFound) {
  alignas(16) std::byte other[64];
  EXPECT_EQ(told_of_free(other + 16), "the pointer lies in a region of the pool");
  EXPECT_EQ(told_of_free(reinterpret_cast<void*>(std::uintptr_t{16})), "the pointer lies in a region of the pool");
  EXPECT_EQ(told_of_free(pool.region()), "the pointer lies in a region of the pool");
  EXPECT_EQ(told_of_free(pool.region() + 8192), "the pointer lies in a region of the pool");
}

TEST_F(TlsfMisuse, InteriorPointersAreFound) {
  auto* const block = static_cast<std::byte*>(brimful_tlsf_malloc(pool, 200));
  std::memset(block, 0, 200);
  for (int offset = 1; offset < 200; ++offset) EXPECT_NE(told_of_free(block + offset), "") << offset;
  EXPECT_EQ(told_of_free(block + 8), "the pointer is aligned to 16");
  EXPECT_EQ(told_of_free(block + 16), "a block begins here, with a header that the pool wrote");
  brimful_tlsf_free(pool, block);
}

TEST_F(TlsfMisuse, AnotherPoolsBlockIsFoundThoughItLiesInThisPool) {
  const TlsfPool outer(20000);
  auto* const memory = static_cast<std::byte*>(brimful_tlsf_malloc(outer, 16000));
  brimful_tlsf* const nested = brimful_tlsf_create(memory, 16000);
  void* const mine = brimful_tlsf_malloc(nested, 100);
  brimful_tlsf_set_misuse(outer, note_misuse);
  brimful_tlsf_free(outer, mine);
  EXPECT_EQ(g_misuses["a block begins here, with a header that the pool wrote"], 1);
}

TEST_F(TlsfMisuse, SmashedHeadersOfTheBlockAndItsNeighboursAreFound) {
  auto* const front = words_of(brimful_tlsf_malloc(pool, 104));
  auto* const block = words_of(brimful_tlsf_malloc(pool, 104));
  auto* const behind = words_of(brimful_tlsf_malloc(pool, 104));
  brimful_tlsf_malloc(pool, 104);
  const auto smash = [&](std::uint64_t* word, std::uint64_t bits) {
    *word ^= bits;
    const std::string what = told_of_free(block);
    *word ^= bits;
    EXPECT_NE(what, "") << word - block << " ^ " << bits;
  };
  const auto smash_all = [&](std::uint64_t* word) {
    for (const std::uint64_t bits : {~std::uint64_t{0}, std::uint64_t{4}, std::uint64_t{16}, std::uint64_t{1} << 50}) {
      smash(word, bits);
    }
  };
  smash_all(block - 1);
  smash_all(behind - 1);
  brimful_tlsf_free(pool, behind);
  brimful_tlsf_free(pool, front);
  // Header, both links and footer of each free neighbour.
  for (std::uint64_t* const neighbour : {front, behind}) {
    smash_all(neighbour - 1);
    smash_all(neighbour);
    smash_all(neighbour + 1);
    smash_all(neighbour + 12);
  }
  EXPECT_EQ(brimful_tlsf_check(pool, nullptr), nullptr);
  brimful_tlsf_free(pool, block);
}

TEST_F(TlsfMisuse, WritingToAFreedBlockIsFoundWhenItIsToBeUsedAgain) {
  auto* const block = words_of(brimful_tlsf_malloc(pool, 100));
  brimful_tlsf_malloc(pool, 24);
  brimful_tlsf_free(pool, block);
  for (std::uint64_t* const word : {block - 1, block, block + 1}) {
    const std::uint64_t before = std::exchange(*word, 0x6161616161616161U);
    EXPECT_NE(told([&] { EXPECT_EQ(brimful_tlsf_malloc(pool, 100), nullptr); }), "");
    EXPECT_NE(told([&] { EXPECT_EQ(brimful_tlsf_aligned_alloc(pool, 32, 56), nullptr); }), "");
    *word = before;
  }
  EXPECT_EQ(brimful_tlsf_malloc(pool, 100), block);
}

TEST_F(TlsfMisuse, BlocksFromBeforeAResetAreFound) {
  void* const first = brimful_tlsf_malloc(pool, 100);
  void* const second = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_reset(pool);
  EXPECT_NE(told_of_free(first), "");
  EXPECT_NE(told_of_free(second), "");
}

TEST_F(TlsfMisuse, RightUseIsNeverReported) {
  std::vector<void*> blocks;
  std::uint64_t random = 3;
  for (int i = 0; i < 5000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    if ((random >> 61) < 5) {
      void* const block = brimful_tlsf_malloc(pool, (random >> 40) % 300);
      if (block != nullptr) blocks.push_back(block);
    } else if (!blocks.empty()) {
      std::swap(blocks[(random >> 30) % blocks.size()], blocks.back());
      if ((random >> 60 & 1) != 0) {
        void* const block = brimful_tlsf_realloc(pool, blocks.back(), 1 + (random >> 40) % 300);
        if (block != nullptr) blocks.back() = block;
      } else {
        brimful_tlsf_free(pool, blocks.back());
        blocks.pop_back();
      }
    }
  }
  EXPECT_TRUE(g_misuses.empty());
}

TEST(TlsfMisuseDeath, TrapsWithoutAHook) {
  const TlsfPool pool(4096);
  void* const block = brimful_tlsf_malloc(pool, 100);
  brimful_tlsf_free(pool, block);
  EXPECT_DEATH(brimful_tlsf_free(pool, block), "");
}

}  // namespace
