// SPDX-License-Identifier: MIT
//
// cache:none: what is freed goes straight back.
#include <gtest/gtest.h>

#include "alone.h"
#include "arch/sequences.h"
#include "brimful/brimful.h"
#include "meta/block.h"
#include "pages/heap.h"
#include "pages/run_cache.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

const testing::Configured no_caches(__FILE__, "front_end:thread,cache:none");

std::size_t used() {
  const sync::MutexLock guard(pages::heap.lock);
  return pages::heap.pages.stats().used_bytes;
}

TEST(CacheNone, GivesAFreedLargeBlockToThePageHeapAtOnce) {
  for (const std::size_t bytes : {std::size_t{100} << 10, std::size_t{4} << 20}) {
    brimful_free(brimful_malloc(bytes));  // what else the heap needs is there
    const std::size_t before = used();
    brimful_free(brimful_malloc(bytes));
    EXPECT_EQ(used(), before);
  }
  EXPECT_EQ(pages::cached_run_bytes(), 0U);
}

TEST(CacheNone, TellsTheOwnerOfAnothersObjectAtOnce) {
  prepare();
  constexpr std::uint32_t kSomeId = 1234;  // no thread has it
  const ClassId id = class_of(64);
  Slab* slab = make_slab(id, kSomeId);
  for (unsigned g = 0; g < slab->groups; ++g) slab->word(g).store(0);
  brimful_free(reinterpret_cast<void*>(slab->object(5)));
  EXPECT_EQ(current_context()->counts[id], 0U);
  EXPECT_EQ(slab->remote(0).load(), std::uint64_t{1} << 5);
  set_magazine_limits(1);
  EXPECT_EQ(arch::brimful_block.limits[id], 0U) << "nor do later threads change that";
}

}  // namespace
}  // namespace brimful::slots
