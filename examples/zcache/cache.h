// SPDX-License-Identifier: MIT
//
// A cache of compressed values by 64-bit key (a block's number, a digest of a name). Of one thread at a time.
//
//   buckets_   hash of the key -> entry         entries_   key, place, sizes, neighbours by last use, next in the bucket
//   scratch_   what is being compressed         memory     the values, in the handle pool or in malloc
//
// The index is two tables of fixed size from mmap, the same whatever holds the values. A value is stored compressed if that
// saves a sixteenth, else as it came. When the limit of bytes or of keys is reached, the values that were used
// longest ago go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "codec.h"
#include "table.h"
#include "value_memory.h"

namespace zcache {

enum class Got : std::uint8_t { kFound, kAbsent, kDamaged };

class Cache {
 public:
  struct Settings {
    std::size_t most_keys = 0;                        // the index's size
    std::size_t most_value_bytes = 0;                 // of one value before compression
    std::size_t most_stored_bytes = ~std::size_t{0};  // of all values as they are stored
  };

  struct Use {
    std::size_t keys = 0;
    std::size_t source_bytes = 0;  // the values' sizes before compression
    std::size_t stored_bytes = 0;  // and as they are stored
    std::size_t raw = 0;           // values that did not compress
    std::uint64_t evicted = 0;     // so far
  };

  // Both parts must outlive the cache. Throws std::bad_alloc.
  Cache(const Settings& settings, Codec& codec, ValueMemory& memory);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  // Stores a copy of `value` (1 ... most_value_bytes bytes) in place of what the key had. false: no memory, or a size out
  // of range; then the key is absent.
  bool put(std::uint64_t key, Bytes value);

  // The value into the front of `into`, which has room for most_value_bytes; its size into *bytes.
  Got get(std::uint64_t key, std::span<std::byte> into, std::size_t* bytes);

  // Whether there was one.
  bool erase(std::uint64_t key);

  [[nodiscard]] const Use& use() const { return use_; }

 private:
  using Index = std::uint32_t;  // of an entry; 0: none
  struct Entry {
    std::uint64_t key;
    Place place;
    std::uint32_t stored;  // bytes; equal to `bytes`: not compressed
    std::uint32_t bytes;   // before compression
    Index newer;           // by last use; the list is a ring through entry 0, whose `older` is the newest
    Index older;
    Index next;  // in the bucket, or in the list of unused entries
  };

  Index& bucket_of(std::uint64_t key);
  Index find(std::uint64_t key);
  void unlink_use(Index entry);
  void link_newest(Index entry);
  void remove(std::uint64_t key, Index entry);
  bool make_room(std::size_t stored);
  Bytes compressed(Bytes value);

  Settings settings_;
  Codec& codec_;
  ValueMemory& memory_;
  Table<Entry> entries_;
  Table<Index> buckets_;
  Table<std::byte> scratch_;
  Index unused_ = 0;
  Use use_;
};

}  // namespace zcache
