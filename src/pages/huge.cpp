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
  auto* block = static_cast<Run*>(arena_.allocate(sizeof(Run)));
  if (block == nullptr) return nullptr;
  // Where alignment needs room to choose from, reserve first and commit the chosen part only.
  void* mapping = os::calls.map(0, usable + padding, padding != 0 ? os::Access::kNone : os::Access::kReadWrite);
  if (mapping == nullptr) {
    arena_.free(block, sizeof(Run));
    return nullptr;
  }
  auto start = reinterpret_cast<std::uint64_t>(mapping);
  if (padding != 0) {
    const std::uint64_t end = start + usable + padding;
    const std::uint64_t aligned = round_up(start, alignment);
    if (!os::calls.commit(aligned, usable)) {
      os::calls.unmap(start, usable + padding);
      arena_.free(block, sizeof(Run));
      return nullptr;
    }
    if (aligned != start) os::calls.unmap(start, aligned - start);
    if (end != aligned + usable) os::calls.unmap(aligned + usable, end - aligned - usable);
    start = aligned;
  }
  block->start = start;
  block->multiplier = 1;
  block->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: guarded by the heap lock
  block->kind = Kind::kHuge;
  block->size_class = kNoClass;
  block->bytes = usable;
  blocks_.insert(block);
  used_bytes_ += usable;
  ++count_;
  return block;
}

void HugeBlocks::free(Run* block) {
  blocks_.remove(block);
  used_bytes_ -= block->bytes;
  --count_;
  // A failing munmap (map count) keeps the addresses; the memory itself can still go.
  if (!os::calls.unmap(block->start, block->bytes)) os::calls.purge(block->start, block->bytes);
  block->kind = Kind::kNone;
  arena_.free(block, sizeof(Run));
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
