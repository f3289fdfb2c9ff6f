// SPDX-License-Identifier: MIT
//
// brimful_page_pool_check(): proves what pool.h says, and names what does not hold. Trusts the pool's own page and the
// pages' addresses in the table, and nothing that is in the pages: a link is followed only after its target was found to be a
// place for a block in a page of the pool, and lists are followed no further than blocks were counted.
#include "pools/page_pool/pool.h"

using brimful::pools::LockGuard;
using brimful::pools::page_pool::Block;
using brimful::pools::page_pool::kEdgeBytes;
using brimful::pools::page_pool::kHeaderBytes;
using brimful::pools::page_pool::kLeastBytes;
using brimful::pools::page_pool::kMark;

namespace {

struct Check {
  const brimful_page_pool& pool;
  const void* where = nullptr;
  std::size_t live_blocks = 0;
  std::size_t used = 0;
  std::size_t free_blocks = 0;

  const char* broken(const char* what, const void* at) {
    where = at;
    return what;
  }

  // Can a free block be here?
  [[nodiscard]] bool is_place(const Block* block) const {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::size_t offset = address & (pool.host.page_bytes - 1);
    return offset % 8 == kHeaderBytes && offset + kLeastBytes + kHeaderBytes <= pool.host.page_bytes &&
           pool.table.has(address - offset);
  }

  const char* links(Block* block, std::size_t list) {
    const Block* next = block->next();
    const Block* previous = block->previous();
    if (!block->has_clear_bits()) return broken("a free block's link has a bit that no link has", block);
    if ((next != nullptr && !is_place(next)) || (previous != nullptr && !is_place(previous))) {
      return broken("a free block's link leads out of the pool's pages", block);
    }
    if ((next != nullptr && next->previous() != block) ||
        (previous != nullptr ? previous->next() : pool.lists.heads()[list]) != block) {
      return broken("a free block's neighbours in its list do not link back", block);
    }
    return nullptr;
  }

  const char* block(Block* block, const Block* before, std::size_t room) {
    const std::size_t size = block->size();
    if (!block->is_live() && !block->is_free()) return broken("a header's state is neither live nor free", block);
    if (size < kLeastBytes || size > room) return broken("a header's size does not fit into its page", block);
    if (block->size_before != (before == nullptr ? 0 : before->size())) {
      return broken("a header does not have the size of the block before it", block);
    }
    if (block->is_live()) {
      ++live_blocks;
      used += size;
      return nullptr;
    }
    ++free_blocks;
    if (before != nullptr && before->is_free()) return broken("two neighbours are free and not joined", block);
    if (size == pool.host.page_bytes - kEdgeBytes) return broken("a page without a live block was kept", block);
    return links(block, size / 8);
  }

  const char* page(void* page) {
    if (*static_cast<const std::uint32_t*>(page) != kMark) return broken("a page's mark is overwritten", page);
    std::size_t room = pool.host.page_bytes - kEdgeBytes;
    Block* before = nullptr;
    Block* at = Block::of(static_cast<char*>(page) + 2 * kHeaderBytes);
    while (room != 0) {
      if (const char* what = block(at, before, room)) return what;
      room -= at->size();
      before = at;
      at = at->after(at->size());
    }
    if (at->size() != 0 || !at->is_live() || at->size_before != before->size()) {
      return broken("a page's end is overwritten", at);
    }
    return nullptr;
  }

  // After all pages: each free block is linked from both sides; what remains is a list that is a ring without a head.
  const char* lists() {
    std::size_t listed = 0;
    for (std::size_t list = 0; list < pool.host.page_bytes / 8; ++list) {
      const Block* first = pool.lists.heads()[list];
      const void* head = &pool.lists.heads()[list];
      if (pool.lists.has_bit(list) != (first != nullptr)) return broken("a list's bit is wrong", head);
      for (const Block* block = first; block != nullptr; block = block->next()) {
        if (!is_place(block) || !block->is_free() || block->size() != list * 8 || ++listed > free_blocks) {
          return broken("a list holds what is no free block of its size", head);
        }
      }
    }
    if (listed != free_blocks) return broken("a free block is in no list", &pool.lists);
    if (!pool.lists.has_exact_words()) return broken("the bit of a word of lists is wrong", &pool.lists);
    return nullptr;
  }

  const char* all() {
    if (!pool.table.is_sound(pool.host.page_bytes, &where)) return "the table of pages is damaged";
    where = nullptr;
    for (std::size_t i = 0; i < pool.table.count(); ++i) {
      if (const char* what = page(pool.table.page(i))) return what;
    }
    if (const char* what = lists()) return what;
    if (live_blocks != pool.live_blocks || used != pool.used || free_blocks != pool.lists.blocks() ||
        pool.gets - pool.gives != pool.table.count() || pool.peak_pages < pool.table.count()) {
      return broken("a counter is wrong", &pool);
    }
    return nullptr;
  }
};

}  // namespace

extern "C" const char* brimful_page_pool_check(brimful_page_pool* pool, const void** where) {
  const LockGuard guard(pool->lock, pool->host);
  Check check{*pool};
  const char* what = check.all();
  if (what != nullptr && where != nullptr) *where = check.where;
  return what;
}
