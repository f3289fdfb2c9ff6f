// SPDX-License-Identifier: MIT
//
// The page pool itself: xvmalloc's design (Nitin Gupta, compcache 2009; Linux' drivers/staging/zram/xvmalloc.c until 3.0) in
// user space. TLSF within pages that come and go one at a time.
//
// What holds whenever the lock is free, and brimful_page_pool_check() proves:
//   each page of the table is filled by blocks end to end, with a mark before and an end behind them (block.h);
//   no two free blocks are neighbours, and no page is one free block: it has gone back to the host;
//   each free block is in the list of its size, once, and the bitmaps say which lists are not empty;
//   the counters count.
//
// Memory of its own: the page of this structure, one of list heads, and the table's (page_table.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "brimful/pagepool.h"
#include "pools/lock.h"
#include "pools/page_pool/block.h"
#include "pools/page_pool/free_lists.h"
#include "pools/page_pool/page_table.h"

// The public name is C's, hence outside of the namespace. But for `host`, which nobody changes, everything is the lock's.
struct brimful_page_pool {
  brimful_pool_host host;
  brimful::pools::Lock lock;
  std::size_t live_blocks;
  std::size_t peak_pages;
  std::size_t used;     // bytes, headers too; not beside live_blocks, or the compiler adds both as one vector, slowly
  std::uint64_t gets;   // pages for blocks only
  std::uint64_t gives;  // the same
  brimful::pools::page_pool::FreeLists lists;
  brimful::pools::page_pool::PageTable table;
};
