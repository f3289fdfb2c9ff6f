// SPDX-License-Identifier: MIT
//
// Size classes, run shapes and the table of blocks: what is proved at compile time is not repeated here.
#include <gtest/gtest.h>

#include "handle_support.h"
#include "pools/handle_pool.h"

namespace brimful::tests {
namespace {

using namespace brimful::pools::handle;

TEST(HandleClasses, ASlotIsAtMost15BytesOrAThirtySecondTooLarge) {
  for (std::size_t bytes = 1; bytes <= kMostObjectBytes; ++bytes) {
    const std::size_t slot = slot_bytes_of(class_of(bytes));
    ASSERT_GE(slot, bytes);
    ASSERT_TRUE(slot - bytes <= 15 || (slot - bytes) * 32 < bytes) << bytes;
  }
}

TEST(HandleClasses, GroupsAreTenthsRoundedUpInEachClass) {
  for (const std::size_t page_bytes : {4096, 8192, 16384, 32768, 65536}) {
    HandleHost host(page_bytes);
    HandlePool pool(host.table(), kMostObjectBytes);
    for (unsigned i = 0; i < kMostClasses; ++i) {
      const Class& size_class = (*pool)->class_at(i);
      for (std::uint32_t live = 1; live < size_class.slots; ++live) {
        ASSERT_EQ(size_class.group_of(live), (live * 10 + size_class.slots - 1) / size_class.slots);
      }
      ASSERT_EQ(size_class.group_of(size_class.slots), kFullGroup);
    }
  }
}

TEST(HandleClasses, ReferencesAndSlotsDoNotOverlap) {
  for (const std::size_t page_bytes : {4096, 8192, 16384, 32768, 65536}) {
    HandleHost host(page_bytes);
    HandlePool pool(host.table(), kMostObjectBytes);
    for (unsigned i = 0; i < kMostClasses; ++i) {
      const Class& size_class = (*pool)->class_at(i);
      const std::size_t end = size_class.slots * size_class.slot_bytes();
      if (size_class.references == 0) {
        ASSERT_LE(size_class.slots, kEmbeddedReferences);
        ASSERT_LE(end, size_class.run_bytes);
      } else {
        ASSERT_LE(end, size_class.references);
        ASSERT_EQ(size_class.references + size_class.slots * kReferenceBytes, size_class.run_bytes);
      }
    }
  }
}

TEST(HandleTable, HasEachElementOnceAndGrowsByAnEighthAtMost) {
  constexpr std::size_t kElements = 2;  // of a page
  Table<Entry> table;
  table.set_page_bytes(kElements * sizeof(Entry));
  unsigned block = 0;
  std::size_t offset = 0;
  for (std::size_t i = 0; i < Table<Entry>::kMostPages * kElements; ++i) {
    const Table<Entry>::Place place = table.place_of(i);
    if (place.block != block) {
      ASSERT_EQ(place.block, block + 1);
      ASSERT_EQ(offset, table_block_pages(block) * kElements);
      ASSERT_LE(table_block_pages(place.block), i / kElements / 8 + 1);
      block = place.block;
      offset = 0;
    }
    ASSERT_EQ(place.offset, offset++);
  }
  EXPECT_LT(block, Table<Entry>::kBlocks);
}

}  // namespace
}  // namespace brimful::tests
