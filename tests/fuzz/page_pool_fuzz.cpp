// SPDX-License-Identifier: MIT
//
// A page pool whose host refuses now and then, against the oracle; wrong pointers are given to free as well, which has to refuse
// them. At the end bytes of its pages are overwritten: the check has to say so or not, but may not leave the pool.
#include <cstring>
#include <vector>

#include "brimful/pagepool.h"
#include "input.h"
#include "oracle.h"
#include "test_host.h"

namespace brimful::fuzz {
namespace {

class Pool {
 public:
  explicit Pool(Input& input)
      : host_(std::size_t{4096} << input.below(3)), pool_(brimful_page_pool_create(host_.table())) {
    expect(pool_ != nullptr, "a pool is created");
  }

  void step(Input& input) {
    const std::uint8_t what = input.byte();
    if (what < 110) return allocate(input);
    if (what < 200) return free_one(input);
    if (what < 220) return free_wrong(input);
    if (what < 226) return host_.fail_after(input.below(8));
    if (what < 232) return host_.fail_never();
    expect_whole();
  }

  void finish(Input& input) {
    expect_whole();
    if (input.flag()) {
      damage(input);
    } else {
      while (oracle_.count() != 0) free_at(oracle_.count() - 1);
      expect_whole();
      brimful_page_pool_destroy(pool_);
      expect(host_.bytes() == 0, "all pages come back");
    }
    expect(!host_.has_fault(), "the host is asked for whole pages, and given what it gave");
  }

 private:
  void allocate(Input& input) {
    const std::size_t bytes = input.request_bytes();
    void* const start = brimful_page_pool_malloc(pool_, bytes);
    if (start == nullptr) return;
    expect(bytes <= brimful_page_pool_most_bytes(pool_), "what is too large is refused");
    Block block;
    block.start = static_cast<char*>(start);
    block.asked = bytes;
    block.usable = brimful_page_pool_usable_size(pool_, start);
    oracle_.add(block);
  }

  void free_at(std::size_t number) {
    const Block block = oracle_.take(number);
    expect(brimful_page_pool_free(pool_, block.start), "a live block is freed", block.start);
    last_freed_ = block.start;
  }

  void free_one(Input& input) {
    if (oracle_.count() != 0) free_at(input.below(oracle_.count()));
  }

  void free_wrong(Input& input) {
    char stranger[64];
    const std::uint8_t way = input.byte() % 3;
    if (way == 0) expect(!brimful_page_pool_free(pool_, stranger + 16), "memory of others is refused");
    if (oracle_.count() == 0) return;
    const Block& block = oracle_.at(input.below(oracle_.count()));
    if (way == 1)
      expect(!brimful_page_pool_free(pool_, block.start + 1 + input.below(3)), "a misaligned pointer is refused");
    if (way != 2 || last_freed_ == nullptr) return;
    for (std::size_t n = 0; n < oracle_.count(); ++n) {
      const Block& live = oracle_.at(n);
      if (last_freed_ >= live.start - 16 && last_freed_ < live.start + live.usable) return;  // handed out again
    }
    expect(!brimful_page_pool_free(pool_, last_freed_), "a block is freed once");
  }

  void expect_whole() const {
    const void* where = nullptr;
    const char* const broken = brimful_page_pool_check(pool_, &where);
    if (broken != nullptr) fail(broken, where);
    oracle_.expect_all();
    brimful_page_pool_stats stats = {};
    stats.size = sizeof stats;
    brimful_page_pool_get_stats(pool_, &stats);
    expect(stats.live_blocks == oracle_.count(), "the pool counts its blocks");
  }

  // Also the word in front of blocks, where headers lie. The pages go back when the host ends.
  void damage(Input& input) {
    for (int n = 0; n < 4 && oracle_.count() != 0; ++n) {
      const Block& block = oracle_.at(input.below(oracle_.count()));
      const std::uint64_t word = input.number(8);
      std::memcpy(block.start - input.below(5), &word, std::min<std::size_t>(sizeof word, block.usable));
      const void* where = nullptr;
      brimful_page_pool_check(pool_, &where);
    }
  }

  pools::TestHost host_;
  brimful_page_pool* pool_;
  Oracle oracle_{1, BRIMFUL_PAGE_POOL_ALIGNMENT};
  char* last_freed_ = nullptr;
};

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  brimful::fuzz::Pool pool(input);
  brimful::fuzz::Input calls = input.part(input.left() < 48 ? input.left() : input.left() - 48);
  while (!calls.is_empty()) pool.step(calls);
  pool.finish(input);
  return 0;
}
