// SPDX-License-Identifier: MIT
//
// The metadata arena: headers, contexts and tables. The first chunk is the library's own, so that a small program makes no
// call for it; more memory comes from the system in chunks that double from 256 KiB to 2 MiB. It is cut in units of 64 bytes and never goes back; freed pieces wait in a list per size, so a piece is only ever
// reused for a piece of its own size (headers stay readable as headers).
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful {
struct Anatomy;  // debug/anatomy.h
}

namespace brimful::meta {

class Arena {
 public:
  static constexpr std::size_t kUnit = 64;
  static constexpr std::size_t kMaxBytes = std::size_t{32} << 10;

  // Zeroed memory, 64-byte aligned; nullptr when the system has none. bytes <= kMaxBytes. O(bytes). Caller holds the
  // heap lock.
  void* allocate(std::size_t bytes);

  // Takes back what allocate(bytes) gave. Caller holds the heap lock.
  void free(void* piece, std::size_t bytes);

  // Where to get 64 KiB when the system gives no more address space (RLIMIT_AS, map count): from the heap's own windows.
  // Returns 0 when there is none either. Called under the heap lock, must not allocate metadata.
  using Fallback = std::uintptr_t (*)();
  constexpr Arena() = default;
  constexpr explicit Arena(Fallback fallback) : fallback_(fallback), chunk_bytes_(std::size_t{256} << 10) {}

  // For one that was made of zeros: what the constructor says, and a first chunk of zeros that is never given back.
  void begin(Fallback fallback, std::byte* first, std::size_t bytes);

  // Calls visit(start, bytes, in_window) for each chunk; those of the fallback lie in a window. Caller holds the heap lock.
  template <class Visit>
  void visit_chunks(Visit visit) const {
    for (const Chunk* chunk = chunks_; chunk != nullptr; chunk = chunk->next) {
      visit(reinterpret_cast<std::uint64_t>(chunk), std::uint64_t{chunk->bytes}, chunk->in_window);
    }
  }

  // Bytes taken from the system.
  [[nodiscard]] std::size_t mapped_bytes() const { return mapped_bytes_; }

 private:
  friend struct ::brimful::Anatomy;

  struct FreePiece {
    std::byte kept[40];  // sizeof(Header), which is not known here
    FreePiece* next;
  };

  // At the start of each chunk, in a unit of its own.
  struct Chunk {
    const Chunk* next;
    std::size_t bytes;
    bool in_window;
  };
  static_assert(sizeof(Chunk) <= kUnit);

  void add(std::uintptr_t chunk, std::size_t bytes, bool in_window);
  bool grow();

  // Small pieces come from the front of a chunk, long ones (contexts, of which a program uses the first few KiB) from its end,
  // so that headers lie side by side.
  static constexpr std::size_t kLong = std::size_t{4} << 10;

  FreePiece*& list_of(std::size_t bytes) { return free_[(kMaxBytes - bytes) / kUnit]; }

  FreePiece* free_[kMaxBytes / kUnit + 1] = {};  // the longest first: the others lie beside what follows
  Fallback fallback_ = nullptr;
  const Chunk* chunks_ = nullptr;
  std::uintptr_t next_ = 0;
  std::uintptr_t end_ = 0;
  std::size_t chunk_bytes_ = 0;
  std::size_t mapped_bytes_ = 0;
  bool has_freed_long_ = false;
};

}  // namespace brimful::meta
