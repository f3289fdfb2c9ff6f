// SPDX-License-Identifier: MIT
//
// The calls of brimful/pagepool.h, but for the checker (check.cpp).
#include "pools/page_pool/pool.h"

#include <cstring>
#include <new>

#include "base/compiler.h"
#include "pools/host.h"

using brimful::pools::LockGuard;
using brimful::pools::page_pool::Block;
using brimful::pools::page_pool::kEdgeBytes;
using brimful::pools::page_pool::kFree;
using brimful::pools::page_pool::kHeaderBytes;
using brimful::pools::page_pool::kLeastBytes;
using brimful::pools::page_pool::kLive;
using brimful::pools::page_pool::kMark;
using brimful::pools::page_pool::PageTable;

namespace {

static_assert(sizeof(brimful_page_pool) <= 4096, "one page, whatever the host's pages are");

std::size_t block_bytes(std::size_t request) {
  const std::size_t bytes = (request + kHeaderBytes + 7) & ~std::size_t{7};
  return bytes < kLeastBytes ? kLeastBytes : bytes;
}

void set_header(Block* block, std::size_t size, std::uint16_t state) {
  block->size_and_state = static_cast<std::uint16_t>(size | state);
}

void insert_free(brimful_page_pool& pool, Block* block, std::size_t size) {
  set_header(block, size, kFree);
  block->after(size)->size_before = static_cast<std::uint16_t>(size);
  pool.lists.insert(block, size);
}

// A page from the host as one block that is in no list yet, or null.
BRIMFUL_COLD Block* add_page(brimful_page_pool& pool) {
  const brimful_pool_host& host = pool.host;
  if (!pool.table.reserve(host)) return nullptr;
  void* page = host.get_pages(host.context, host.page_bytes);
  if (page == nullptr) return nullptr;
  if (!Block::is_linkable(page)) {
    host.give_pages(host.context, page, host.page_bytes);
    return nullptr;
  }
  ++pool.gets;
  pool.table.add(page);
  if (pool.table.count() > pool.peak_pages) pool.peak_pages = pool.table.count();

  *static_cast<std::uint32_t*>(page) = kMark;
  const std::size_t size = host.page_bytes - kEdgeBytes;
  Block* const block = Block::of(static_cast<char*>(page) + 2 * kHeaderBytes);
  set_header(block, size, kFree);
  block->size_before = 0;
  Block* const end = block->after(size);
  set_header(end, 0, kLive);
  end->size_before = static_cast<std::uint16_t>(size);
  return block;
}

// Is a live block of `size` bytes here? Reads nothing outside of the page, whatever it holds. `header`: where in the page.
bool is_live_block(const brimful_page_pool& pool, Block* block, std::size_t header, std::size_t size) {
  const std::size_t before = block->size_before;
  if (!block->is_live() || size < kLeastBytes || header + size > pool.host.page_bytes - kHeaderBytes ||
      block->after(size)->size_before != size) {
    return false;
  }
  if (before == 0) return header == kHeaderBytes;
  return before % 8 == 0 && before + kHeaderBytes <= header && block->before()->size() == before;
}

// Joins a block that has just died with its free neighbours. Returns the page when nothing else is in it: it is the
// pool's no longer, and is to be given to the host.
void* join(brimful_page_pool& pool, Block* block, std::size_t size) {
  set_header(block, size, kFree);
  Block* const after = block->after(size);
  if (after->is_free()) {
    pool.lists.remove(after);
    size += after->size();
  }
  if (block->size_before != 0 && block->before()->is_free()) {
    block = block->before();
    pool.lists.remove(block);
    size += block->size();
  }
  if (BRIMFUL_LIKELY(size != pool.host.page_bytes - kEdgeBytes)) {
    insert_free(pool, block, size);
    return nullptr;
  }
  void* const page = reinterpret_cast<char*>(block) - kHeaderBytes;
  pool.table.remove(pool.host, pool.table.find(reinterpret_cast<std::uintptr_t>(page)));
  ++pool.gives;
  return page;
}

}  // namespace

extern "C" {

brimful_page_pool* brimful_page_pool_create(const brimful_pool_host* host) {
  if (!brimful::pools::is_usable(host)) return nullptr;
  void* memory = host->get_pages(host->context, host->page_bytes);
  if (memory == nullptr) return nullptr;
  void* heads = host->get_pages(host->context, host->page_bytes);
  if (heads == nullptr) {
    host->give_pages(host->context, memory, host->page_bytes);
    return nullptr;
  }
  std::memset(heads, 0, host->page_bytes);
  auto* pool = ::new (memory) brimful_page_pool{};
  pool->host = *host;
  pool->lists.set_heads(static_cast<Block**>(heads));
  return pool;
}

void brimful_page_pool_destroy(brimful_page_pool* pool) {
  if (pool == nullptr) return;
  const brimful_pool_host host = pool->host;
  for (std::size_t i = 0; i < pool->table.count(); ++i) {
    host.give_pages(host.context, pool->table.page(i), host.page_bytes);
  }
  pool->table.give_all(host);
  host.give_pages(host.context, pool->lists.heads(), host.page_bytes);
  host.give_pages(host.context, pool, host.page_bytes);
}

void* brimful_page_pool_malloc(brimful_page_pool* pool, std::size_t bytes) {
  if (BRIMFUL_UNLIKELY(bytes > brimful_page_pool_most_bytes(pool))) return nullptr;
  const std::size_t size = block_bytes(bytes);
  const LockGuard guard(pool->lock, pool->host);
  Block* block = pool->lists.take(size);
  if (BRIMFUL_UNLIKELY(block == nullptr)) {
    block = add_page(*pool);
    if (block == nullptr) return nullptr;
  }
  std::size_t taken = block->size();
  if (taken - size >= kLeastBytes) {
    Block* const rest = block->after(size);
    rest->size_before = static_cast<std::uint16_t>(size);
    insert_free(*pool, rest, taken - size);
    taken = size;
  }
  set_header(block, taken, kLive);
  ++pool->live_blocks;
  pool->used += taken;
  return block->payload();
}

bool brimful_page_pool_free(brimful_page_pool* pool, void* pointer) {
  if (pointer == nullptr) return true;
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const std::size_t offset = address & (pool->host.page_bytes - 1);
  if (BRIMFUL_UNLIKELY(offset % BRIMFUL_PAGE_POOL_ALIGNMENT != 0 || offset == 0)) return false;
  void* page = nullptr;
  {
    const LockGuard guard(pool->lock, pool->host);
    if (pool->table.find(address - offset) == PageTable::kNone) return false;
    Block* const block = Block::of(pointer);
    const std::size_t size = block->size();
    if (!is_live_block(*pool, block, offset - kHeaderBytes, size)) return false;
    --pool->live_blocks;
    pool->used -= size;
    page = join(*pool, block, size);
  }
  // Without the lock: giving a page back is the longest part of all.
  if (page != nullptr) pool->host.give_pages(pool->host.context, page, pool->host.page_bytes);
  return true;
}

std::size_t brimful_page_pool_usable_size(const brimful_page_pool* /*pool*/, const void* pointer) {
  return pointer == nullptr ? 0 : Block::of(pointer)->size() - kHeaderBytes;
}

std::size_t brimful_page_pool_most_bytes(const brimful_page_pool* pool) {
  return pool->host.page_bytes - kEdgeBytes - kHeaderBytes;
}

void brimful_page_pool_get_stats(brimful_page_pool* pool, brimful_page_pool_stats* into) {
  if (into->size < sizeof *into) return;
  const LockGuard guard(pool->lock, pool->host);
  into->pages = pool->table.count();
  into->peak_pages = pool->peak_pages;
  into->metadata_bytes = 2 * pool->host.page_bytes + pool->table.bytes();
  into->live_blocks = pool->live_blocks;
  into->used = pool->used;
  into->free_blocks = pool->lists.blocks();
  into->gets = pool->gets;
  into->gives = pool->gives;
  into->lock = pool->lock.stats();
}

}  // extern "C"
