// SPDX-License-Identifier: MIT
//
// pages/huge.h.
#include "pages/huge.h"

#include "os/calls.h"

namespace brimful::pages {

Run* HugeBlocks::allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t page = os::page_bytes();
  const std::size_t usable = round_up(bytes, page);
  const std::size_t padding = alignment > page ? alignment : 0;
  if (usable < bytes || usable + padding < usable) return nullptr;
  if (Run* kept = take_kept(usable, alignment)) return kept;
  auto* block = static_cast<Run*>(arena_->allocate(sizeof(Run)));
  if (block == nullptr) return nullptr;
  // Where alignment needs room to choose from, reserve first and commit the chosen part only.
  void* mapping = map(usable + padding, padding != 0 ? os::Access::kNone : os::Access::kReadWrite);
  if (mapping == nullptr) {
    arena_->free(block, sizeof(Run));
    return nullptr;
  }
  auto start = reinterpret_cast<std::uint64_t>(mapping);
  if (padding != 0) {
    const std::uint64_t end = start + usable + padding;
    const std::uint64_t aligned = round_up(start, alignment);
    if (!os::calls.commit(aligned, usable)) {
      os::calls.unmap(start, usable + padding);
      arena_->free(block, sizeof(Run));
      return nullptr;
    }
    if (aligned != start) os::calls.unmap(start, aligned - start);
    if (end != aligned + usable) os::calls.unmap(aligned + usable, end - aligned - usable);
    start = aligned;
  }
  block->start = start;
  block->multiplier = kRunMultiplier;
  block->owner.store(kOwnerLive, std::memory_order_relaxed);  // relaxed: guarded by the heap lock
  block->kind = Kind::kHuge;
  block->size_class = kNoClass;
  enter(block, usable);
  return block;
}

// Where address space or the commit limit is short, what is kept goes first.
void* HugeBlocks::map(std::size_t bytes, os::Access access) {
  void* mapping = os::calls.map(0, bytes, access);
  if (mapping != nullptr || kept_.empty()) return mapping;
  give_back(UINT64_MAX, SIZE_MAX);
  return os::calls.map(0, bytes, access);
}

void HugeBlocks::enter(Run* block, std::size_t usable) {
  block->bytes = usable;
  blocks_.insert(block);
  used_bytes_ += usable;
  ++count_;
}

void HugeBlocks::leave(Run* block) {
  blocks_.remove(block);
  used_bytes_ -= block->bytes;
  --count_;
}

// The shortest kept block that fits and is at most a quarter longer; what is too much of it is unmapped.
Run* HugeBlocks::take_kept(std::size_t usable, std::size_t alignment) {
  Run* best = nullptr;
  for (Run* block = kept_.front(); block != nullptr; block = block->next) {
    const bool fits = block->bytes >= usable && block->bytes - usable <= usable / 4 && block->start % alignment == 0;
    if (fits && (best == nullptr || block->bytes < best->bytes)) best = block;
  }
  if (best == nullptr) return nullptr;
  const std::size_t bytes = best->bytes;
  if (bytes != usable && !os::calls.unmap(best->start + usable, bytes - usable)) return nullptr;
  kept_.remove(best);
  kept_bytes_ -= bytes;
  best->owner.store(kOwnerLive, std::memory_order_relaxed);  // relaxed: guarded by the heap lock
  best->kind = Kind::kHuge;
  best->dirty = true;
  enter(best, usable);
  return best;
}

void HugeBlocks::keep(Run* block, std::uint64_t now_ms) {
  if (block->bytes > kMostKept) return free(block);
  leave(block);
  block->kind = Kind::kNone;
  block->stamp_ms = now_ms;
  kept_.push_back(block);
  kept_bytes_ += block->bytes;
  while (kept_bytes_ > kMostKept) release(kept_.front());
}

std::size_t HugeBlocks::give_back(std::uint64_t cutoff_ms, std::size_t budget) {
  std::size_t given_back = 0;
  while (given_back < budget) {
    Run* block = kept_.front();
    if (block == nullptr || block->stamp_ms > cutoff_ms) break;
    const std::size_t slice =
        round_up(budget - given_back < block->bytes ? budget - given_back : block->bytes, os::page_bytes());
    if (slice >= block->bytes) {
      given_back += block->bytes;
      release(block);
      continue;
    }
    if (!os::calls.unmap(block->start + block->bytes - slice, slice)) break;
    block->bytes -= slice;
    kept_bytes_ -= slice;
    given_back += slice;
  }
  return given_back;
}

// A kept block, back to the system.
void HugeBlocks::release(Run* block) {
  kept_.remove(block);
  kept_bytes_ -= block->bytes;
  if (!os::calls.unmap(block->start, block->bytes)) os::calls.purge(block->start, block->bytes);
  arena_->free(block, sizeof(Run));
}

void HugeBlocks::free(Run* block) {
  leave(block);
  // A failing munmap (map count) keeps the addresses; the memory itself can still go.
  if (!os::calls.unmap(block->start, block->bytes)) os::calls.purge(block->start, block->bytes);
  block->kind = Kind::kNone;
  arena_->free(block, sizeof(Run));
}

bool HugeBlocks::resize(Run* block, std::size_t bytes) {
  const std::size_t usable = round_up(bytes, os::page_bytes());
  if (usable < bytes) return false;
  if (usable == block->bytes) return true;
  void* moved = os::calls.resize(block->start, block->bytes, usable);
  if (moved == nullptr) return false;
  blocks_.remove(block);
  used_bytes_ = used_bytes_ - block->bytes + usable;
  block->start = reinterpret_cast<std::uint64_t>(moved);
  block->bytes = usable;
  blocks_.insert(block);
  return true;
}

Run* HugeBlocks::find(std::uint64_t address) const {
  // Blocks do not overlap, so "ends above the address" is monotone in the order of their starts.
  Run* block = blocks_.lower_bound([address](const Run& b) { return b.start + b.bytes > address; });
  return block != nullptr && block->start <= address ? block : nullptr;
}

}  // namespace brimful::pages
