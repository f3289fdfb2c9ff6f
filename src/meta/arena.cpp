// SPDX-License-Identifier: MIT
//
// meta/arena.h. Freed pieces are linked behind what would be a header, which keeps its last values: who comes late with a
// note of a free finds the owner "released" and can say which object was freed twice.
#include "meta/arena.h"

#include <atomic>

#include "base/check.h"
#include "base/compiler.h"
#include "base/units.h"
#include "config/options.h"
#include "meta/table_memory.h"
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

// 0: no memory.
std::uintptr_t map_chunk(std::size_t bytes) {
  if (BRIMFUL_LIKELY(config::options.guard == 0)) {
    return reinterpret_cast<std::uintptr_t>(os::calls.map(0, bytes, os::Access::kReadWrite));
  }
  void* chunk = reserve_table(bytes);
  if (chunk == nullptr || os::calls.commit(reinterpret_cast<std::uintptr_t>(chunk), bytes)) {
    return reinterpret_cast<std::uintptr_t>(chunk);
  }
  release_table(chunk, bytes);
  return 0;
}

}  // namespace

void Arena::begin(Fallback fallback, std::byte* first, std::size_t bytes) {
  fallback_ = fallback;
  chunk_bytes_ = std::size_t{256} << 10;
  add(reinterpret_cast<std::uintptr_t>(first), bytes, false);
}

void Arena::add(std::uintptr_t chunk, std::size_t bytes, bool in_window) {
  auto* head = reinterpret_cast<Chunk*>(chunk);
  *head = {chunks_, bytes, in_window};
  chunks_ = head;
  next_ = chunk + kUnit;
  end_ = chunk + bytes;
  mapped_bytes_ += bytes;
}

bool Arena::grow() {
  std::size_t bytes = chunk_bytes_;
  bool in_window = false;
  std::uintptr_t chunk = map_chunk(bytes);
  if (chunk == 0) {
    bytes = kGranuleBytes;
    chunk = fallback_ != nullptr ? fallback_() : 0;
    if (chunk == 0) return false;
    in_window = true;
  } else if (chunk_bytes_ < kHugepageBytes) {
    chunk_bytes_ *= 2;
  }
  os::calls.name(chunk, bytes, "brimful metadata");
  add(chunk, bytes, in_window);
  return true;
}

void* Arena::allocate(std::size_t bytes) {
  BRIMFUL_CHECK(bytes <= kMaxBytes);
  bytes = round_up(bytes, kUnit);
  const bool is_long = bytes > kLong;
  if (!is_long || has_freed_long_) {
    FreePiece*& list = list_of(bytes);
    if (FreePiece* piece = list) {
      list = piece->next;
      clear(piece, bytes);
      return piece;
    }
  }
  if (end_ - next_ < bytes && !grow()) return nullptr;
  std::uintptr_t piece = next_;
  if (is_long) {
    piece = end_ -= bytes;
  } else {
    next_ += bytes;
  }
  // The caller will write here: one fault, where reading first makes two.
  *reinterpret_cast<volatile std::uint64_t*>(piece) = 0;
  return reinterpret_cast<void*>(piece);
}

void Arena::free(void* piece, std::size_t bytes) {
  bytes = round_up(bytes, kUnit);
  has_freed_long_ = has_freed_long_ || bytes > kLong;
  FreePiece*& list = list_of(bytes);
  auto* freed = static_cast<FreePiece*>(piece);
  freed->next = list;
  list = freed;
}

}  // namespace brimful::meta
