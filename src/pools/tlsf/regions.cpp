// SPDX-License-Identifier: MIT
//
// Regions of a TLSF pool: creating it, adding and removing regions, reset.
//
//     memory | Region | header | payload … | header | … | sentinel |
//            16-aligned        16-aligned
//
// Regions that touch are not joined: a block would then lie in two of them, and neither could be removed.
#include <cstring>

#include "pools/tlsf/pool.h"

namespace brimful::tlsf {

std::uint64_t guard_of(const Region& region) {
  const auto place = reinterpret_cast<std::uintptr_t>(&region);
  return mix(mix(mix(place) + reinterpret_cast<std::uintptr_t>(region.next)) + region.bytes);
}

std::uint64_t guard_of(const Pool& pool) {
  std::uint64_t words[sizeof(Setup) / sizeof(std::uint64_t)];
  static_assert(sizeof(words) == sizeof(Setup));
  std::memcpy(words, &pool.setup, sizeof(words));
  auto hash = static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&pool));
  for (const std::uint64_t word : words) hash = mix(hash + word);
  return hash;
}

namespace {

// One free block from end to end.
void fill_region(Pool& pool, Region* region) {
  Block* const first = first_of(region);
  Block* const sentinel = sentinel_of(region);
  set_header(pool, sentinel, 0, kAfterFree);
  list_free(pool, first, distance(first, sentinel));
}

bool is_empty(const Region* region) {
  const Block* const first = first_of(region);
  return is_free(first) && at(first, stride_of(first)) == sentinel_of(region);
}

}  // namespace

void open_region(Pool& pool, Region* region, std::size_t bytes) {
  region->bytes = bytes;
  // The arena stays in front: it is the one that comes and goes.
  Region** const link = pool.setup.arena != nullptr ? &pool.setup.arena->next : &pool.setup.regions;
  region->next = *link;
  *link = region;
  region->guard = guard_of(*region);
  if (pool.setup.arena != nullptr) pool.setup.arena->guard = guard_of(*pool.setup.arena);
  ++pool.setup.region_count;
  pool.setup.total += bytes;
  pool.guard = guard_of(pool);
  fill_region(pool, region);
}

}  // namespace brimful::tlsf

using namespace brimful::tlsf;

size_t brimful_tlsf_control_bytes(void) { return kControlBytes + kUnit - 1; }

brimful_tlsf* brimful_tlsf_create(void* memory, size_t bytes) {
  if (memory == nullptr || bytes < brimful_tlsf_control_bytes()) return nullptr;
  auto* const pool = aligned<Pool>(memory);
  std::memset(pool, 0, sizeof(*pool));
  void* const rest = at(pool, kControlBytes);
  if (brimful_tlsf_add_region(pool, rest, bytes - distance(memory, rest))) pool->setup.initial = pool->setup.regions;
  pool->guard = guard_of(*pool);
  return pool;
}

bool brimful_tlsf_add_region(brimful_tlsf* pool, void* memory, size_t bytes) {
  auto* const region = aligned<Region>(memory);
  const std::size_t skipped = distance(memory, region);
  if (memory == nullptr || bytes < skipped + kLeastRegion || bytes > BRIMFUL_TLSF_MOST_BYTES) return false;
  open_region(*pool, region, (bytes - skipped) & ~(kUnit - 1));
  return true;
}

bool brimful_tlsf_remove_region(brimful_tlsf* pool, void* memory) {
  settle(*pool);
  Setup& setup = pool->setup;
  Region* const region = aligned<Pool>(memory) == pool ? setup.initial : aligned<Region>(memory);
  Region* before = nullptr;
  Region* found = setup.regions;
  while (found != nullptr && found != region) {
    before = found;
    found = found->next;
  }
  if (found == nullptr || found == setup.arena || !is_empty(found)) return false;
  unlist(*pool, first_of(found));
  if (before != nullptr) {
    before->next = found->next;
    before->guard = guard_of(*before);
  } else {
    setup.regions = found->next;
  }
  if (found == setup.initial) setup.initial = nullptr;
  --setup.region_count;
  setup.total -= found->bytes;
  pool->guard = guard_of(*pool);
  return true;
}

void brimful_tlsf_reset(brimful_tlsf* pool) {
  const std::size_t peak = pool->counters.peak;
  std::memset(&pool->lists, 0, sizeof(pool->lists));
  pool->counters = Counters{};
  pool->last_freed = nullptr;
  pool->counters.peak = peak;
  ++pool->setup.epoch;
  pool->guard = guard_of(*pool);
  for (Region* region = pool->setup.regions; region != nullptr; region = region->next) fill_region(*pool, region);
  if (pool->setup.arena != nullptr) shrink(*pool, first_of(pool->setup.arena));
}
