// SPDX-License-Identifier: MIT
//
// The growable arena of a TLSF pool: one region at its own place, whose end moves. When it grows, its sentinel becomes
// the header of a free block that reaches to the new end, and is joined with a free one in front of it as if it had been
// freed. When its last block is free, all whole pages of that go back; with nothing live in it, all of it.
//
// The steps are exact, without reserve: whoever writes resize() knows what a step costs there and may keep more.
#include "pools/tlsf/pool.h"

namespace brimful::tlsf {
namespace {

constexpr std::size_t kStep = 4096;  // of the arena's size: the public header promises it

constexpr std::size_t in_steps(std::size_t bytes) { return (bytes + kStep - 1) & ~(kStep - 1); }

Region* resize(Pool& pool, std::size_t bytes) {
  if (bytes > BRIMFUL_TLSF_MOST_BYTES) return nullptr;
  void* const start = pool.setup.resize(pool.setup.resize_context, bytes);
  if (start == nullptr) return nullptr;
  // An arena that moved is not ours: taken for a refusal.
  if (pool.setup.arena != nullptr && aligned<Region>(start) != pool.setup.arena) return nullptr;
  pool.setup.arena_skipped = distance(start, aligned<Region>(start));
  pool.setup.arena_bytes = bytes;
  return aligned<Region>(start);
}

std::size_t region_bytes(const Pool& pool) {
  return (pool.setup.arena_bytes - pool.setup.arena_skipped) & ~(kUnit - 1);
}

// The arena has a new end: says so where it is written down.
void note_end(Pool& pool) {
  Region& arena = *pool.setup.arena;
  pool.setup.total -= arena.bytes;
  arena.bytes = region_bytes(pool);
  pool.setup.total += arena.bytes;
  arena.guard = guard_of(arena);
  pool.guard = guard_of(pool);
}

Block* begin_arena(Pool& pool, std::size_t stride) {
  Region* const region = resize(pool, in_steps(stride + kRegionEnds + kUnit));
  if (region == nullptr) return nullptr;
  open_region(pool, region, region_bytes(pool));
  pool.setup.arena = region;
  pool.guard = guard_of(pool);
  return first_of(region);
}

// Nothing in the arena is live.
void end_arena(Pool& pool) {
  Region* const arena = pool.setup.arena;
  unlist(pool, first_of(arena));
  pool.setup.regions = arena->next;
  --pool.setup.region_count;
  pool.setup.total -= arena->bytes;
  pool.setup.arena = nullptr;
  pool.setup.arena_bytes = 0;
  pool.guard = guard_of(pool);
  pool.setup.resize(pool.setup.resize_context, 0);
}

// A free block of at least `stride` bytes at the arena's end, still in its list. NULL: the pool does not grow.
Block* extend_end(Pool& pool, std::size_t stride) {
  if (pool.setup.resize == nullptr) return nullptr;
  if (pool.setup.arena == nullptr) return begin_arena(pool, stride);
  Block* const end = sentinel_of(pool.setup.arena);
  const std::size_t tail = is_after_free(end) ? stride_before(end) : 0;
  // The search rounds up, so the tail may be large enough although it was not found.
  if (tail >= stride) return at_front(end, tail);
  const std::size_t bytes = pool.setup.arena_bytes;
  if (resize(pool, bytes + in_steps(stride - tail)) == nullptr) return nullptr;
  note_end(pool);
  Block* const sentinel = sentinel_of(pool.setup.arena);
  set_header(pool, sentinel, 0, 0);
  return put_back(pool, end, distance(end, sentinel), end->header);
}

}  // namespace

BRIMFUL_COLD Block* grow(Pool& pool, std::size_t stride) {
  Block* const block = extend_end(pool, stride);
  if (block != nullptr) unlist(pool, block);
  return block;
}

BRIMFUL_COLD void* take_from_end(Pool& pool, std::size_t stride) {
  Block* const block = grow(pool, stride);
  if (block == nullptr) return nullptr;
  count_live(pool, cut(pool, block, stride_of(block), stride, 0));
  return payload_of(block);
}

BRIMFUL_COLD bool grow_behind(Pool& pool, Block* block, std::size_t stride) {
  if (pool.setup.arena == nullptr) return false;
  const Block* const end = sentinel_of(pool.setup.arena);
  const Block* const next = at(block, stride_of(block));
  const bool is_last = next == end || (is_free(next) && at(next, stride_of(next)) == end);
  return is_last && extend_end(pool, stride - stride_of(block)) != nullptr;
}

BRIMFUL_COLD void shrink(Pool& pool, Block* block) {
  Region* const arena = pool.setup.arena;
  if (arena == nullptr || at(block, stride_of(block)) != sentinel_of(arena)) return;
  if (block == first_of(arena)) {
    end_arena(pool);
    return;
  }
  const std::size_t stride = stride_of(block);
  const std::size_t bytes = pool.setup.arena_bytes;
  std::size_t kept = in_steps(pool.setup.arena_skipped + distance(arena, block) + kHeaderBytes + kUnit - 1);
  if (kept >= bytes) return;
  // What stays of the block is nothing or a block.
  const std::size_t left = stride - (bytes - kept);
  if (left != 0 && left < kLeastStride) kept += kStep;
  if (kept >= bytes) return;
  unlist(pool, block);
  if (resize(pool, kept) == nullptr) {
    list_free(pool, block, stride);
    return;
  }
  note_end(pool);
  const std::size_t rest = stride - (bytes - kept);
  set_header(pool, sentinel_of(arena), 0, rest != 0 ? kAfterFree : 0);
  if (rest == 0) return;
  list_free(pool, block, rest);
}

}  // namespace brimful::tlsf

using namespace brimful::tlsf;

brimful_tlsf* brimful_tlsf_create_growable(void* control, size_t bytes, brimful_tlsf_resize* resize, void* context) {
  if (resize == nullptr) return nullptr;
  brimful_tlsf* const pool = brimful_tlsf_create(control, bytes);
  if (pool == nullptr) return nullptr;
  pool->setup.resize = resize;
  pool->setup.resize_context = context;
  pool->guard = guard_of(*pool);
  return pool;
}
