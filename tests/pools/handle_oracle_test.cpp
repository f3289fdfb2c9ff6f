// SPDX-License-Identifier: MIT
//
// The handle pool against a simple model, each byte and each invariant checked, for several page sizes and maxima.
#include <algorithm>
#include <random>

#include "handle_support.h"

namespace brimful::tests {
namespace {

struct Model {
  struct Object {
    brimful_handle handle = 0;
    std::size_t bytes = 0;
    std::uint64_t seed = 0;
  };
  std::vector<Object> objects;
  std::vector<brimful_handle> dead;
  std::size_t live_bytes = 0;
};

class HandleOracle {
 public:
  HandleOracle(HandlePool& pool, std::size_t most_object_bytes, std::uint64_t seed)
      : pool_(pool), most_(most_object_bytes), random_(seed) {}

  void run(int operations, int check_each) {
    for (int i = 0; i < operations; ++i) {
      // Phases of growing and shrinking, so that runs are filled and emptied.
      const bool growing = i / (operations / 6 + 1) % 2 == 0;
      step(growing ? 60 : 30);
      if (i % check_each == 0) expect_whole();
      if (HasFailure()) return;
    }
  }

  void expect_whole() {
    const char* name = pool_.broken();
    EXPECT_EQ(name, nullptr) << name;
    const brimful_handle_stats stats = pool_.stats();
    EXPECT_EQ(stats.objects, model_.objects.size());
    EXPECT_EQ(stats.live_bytes, model_.live_bytes);
    EXPECT_EQ(brimful_handle_count_mapped(*pool_), 0);
  }

  void free_all() {
    while (!model_.objects.empty()) free_one();
    expect_whole();
    EXPECT_EQ(pool_.stats().held_bytes, 0);
  }

 private:
  static bool HasFailure() { return ::testing::Test::HasFailure(); }
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void step(std::size_t alloc_share) {
    const std::size_t dice = below(100);
    if (dice < alloc_share) {
      alloc_one();
    } else if (dice < 90) {
      free_one();
    } else if (dice < 96) {
      look_at_one();
    } else if (dice < 99) {
      brimful_handle_compact(*pool_, 1 + below(40), nullptr);
    } else {
      try_dead_one();
    }
  }

  void alloc_one() {
    Model::Object object;
    object.bytes = 1 + below(std::size_t{1} << (1 + below(17)));
    object.bytes = std::min(object.bytes, most_);
    object.seed = random_();
    ASSERT_EQ(brimful_handle_alloc(*pool_, object.bytes, &object.handle), BRIMFUL_HANDLE_OK);
    ASSERT_TRUE(fill(*pool_, object.handle, object.bytes, object.seed));
    model_.live_bytes += object.bytes;
    model_.objects.push_back(object);
  }

  void free_one() {
    if (model_.objects.empty()) return;
    std::swap(model_.objects[below(model_.objects.size())], model_.objects.back());
    const Model::Object object = model_.objects.back();
    model_.objects.pop_back();
    ASSERT_TRUE(holds(*pool_, object.handle, object.bytes, object.seed));
    ASSERT_EQ(brimful_handle_free(*pool_, object.handle), BRIMFUL_HANDLE_OK);
    model_.live_bytes -= object.bytes;
    model_.dead.push_back(object.handle);
  }

  void look_at_one() {
    if (model_.objects.empty()) return;
    const Model::Object& object = model_.objects[below(model_.objects.size())];
    std::size_t bytes = 0;
    ASSERT_EQ(brimful_handle_size(*pool_, object.handle, &bytes), BRIMFUL_HANDLE_OK);
    ASSERT_EQ(bytes, object.bytes);
    ASSERT_TRUE(holds(*pool_, object.handle, object.bytes, object.seed));
  }

  void try_dead_one() {
    if (model_.dead.empty()) return;
    const brimful_handle handle = model_.dead[below(model_.dead.size())];
    void* pointer = nullptr;
    ASSERT_EQ(brimful_handle_free(*pool_, handle), BRIMFUL_HANDLE_STALE);
    ASSERT_EQ(brimful_handle_map(*pool_, handle, BRIMFUL_HANDLE_READ, &pointer), BRIMFUL_HANDLE_STALE);
    ASSERT_EQ(brimful_handle_unmap(*pool_, handle), BRIMFUL_HANDLE_STALE);
  }

  HandlePool& pool_;
  std::size_t most_;
  std::mt19937_64 random_;
  Model model_;
};

class HandleOracleTest : public testing::TestWithParam<std::pair<std::size_t, std::size_t>> {};

TEST_P(HandleOracleTest, AgreesWithTheModelThroughRandomCalls) {
  const auto [page_bytes, most_object_bytes] = GetParam();
  HandleHost host(page_bytes);
  {
    HandlePool pool(host.table(), most_object_bytes);
    HandleOracle oracle(pool, most_object_bytes, page_bytes + most_object_bytes);
    oracle.run(20000, 97);
    pool.compact(7);
    oracle.expect_whole();
    oracle.free_all();
  }
}

TEST(HandleOracle, HoldsEachInvariantAfterEachOfManyCalls) {
  HandleHost host;
  HandlePool pool(host.table(), 2048);
  HandleOracle oracle(pool, 2048, 1);
  oracle.run(1500, 1);
  oracle.free_all();
}

INSTANTIATE_TEST_SUITE_P(PagesAndMaxima, HandleOracleTest,
                         testing::Values(std::pair{4096, 4096}, std::pair{4096, 65536}, std::pair{4096, 16},
                                         std::pair{16384, 65536}, std::pair{65536, 65536}));

}  // namespace
}  // namespace brimful::tests
