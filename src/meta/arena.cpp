// SPDX-License-Identifier: MIT
//
// meta/arena.h. Freed pieces are linked behind what would be a header, which keeps its last values: who comes late with a
// note of a free finds the owner "released" and can say which object was freed twice.
#include "meta/arena.h"

#include <atomic>

#include "base/check.h"
#include "base/units.h"
#include "os/calls.h"

namespace brimful::meta {

namespace {

// Word by word, because whoever told a slab's owner last may still look at the owner in a header that is given back by
// then (tell_owner(), on_countdown() in slots/free.cpp).
void clear(void* piece, std::size_t bytes) {
  auto* words = static_cast<std::uint64_t*>(piece);
  for (std::size_t i = 0; i < bytes / sizeof(std::uint64_t); ++i) {
    std::atomic_ref(words[i]).store(0, std::memory_order_relaxed);  // relaxed: late readers take any value
  }
}

}  // namespace

bool Arena::grow() {
  std::size_t bytes = chunk_bytes_;
  bool in_window = false;
  auto chunk = reinterpret_cast<std::uintptr_t>(os::calls.map(0, bytes, os::Access::kReadWrite));
  if (chunk == 0) {
    bytes = kGranuleBytes;
    chunk = fallback_ != nullptr ? fallback_() : 0;
    if (chunk == 0) return false;
    in_window = true;
  } else if (chunk_bytes_ < kHugepageBytes) {
    chunk_bytes_ *= 2;
  }
  os::calls.name(chunk, bytes, "brimful metadata");
  auto* head = reinterpret_cast<Chunk*>(chunk);
  *head = {chunks_, bytes, in_window};
  chunks_ = head;
  next_ = chunk + kUnit;
  end_ = chunk + bytes;
  mapped_bytes_ += bytes;
  return true;
}

void* Arena::allocate(std::size_t bytes) {
  BRIMFUL_CHECK(bytes <= kMaxBytes);
  bytes = round_up(bytes, kUnit);
  FreePiece*& list = free_[bytes / kUnit];
  if (list != nullptr) {
    FreePiece* piece = list;
    list = piece->next;
    clear(piece, bytes);
    return piece;
  }
  if (end_ - next_ < bytes && !grow()) return nullptr;
  void* piece = reinterpret_cast<void*>(next_);
  next_ += bytes;
  return piece;
}

void Arena::free(void* piece, std::size_t bytes) {
  FreePiece*& list = free_[round_up(bytes, kUnit) / kUnit];
  auto* freed = static_cast<FreePiece*>(piece);
  freed->next = list;
  list = freed;
}

}  // namespace brimful::meta
