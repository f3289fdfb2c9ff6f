// SPDX-License-Identifier: MIT
//
// The pages of one page pool: is an address a page of it, and which pages has it? 16 bytes a page.
//
// An array of entries, one for each page, without holes: the last moves where one is removed. Entry i is also bucket i of
// a hash table over the same entries, so there are as many buckets as pages and 1.5 steps on average, whatever the pages'
// addresses and however many there are (linear hashing: a page that comes splits one bucket, a page that goes
// joins two; nothing is ever rehashed at once). Looking up reads the table and nothing else, so that any pointer may be
// asked about.
//
// The array lies in chunks of 4096 bytes, found through a directory. Chunks come and go with the pages, half a page of entries
// later than they could; the directory starts inside the pool, doubles when it is full, and stays (8 bytes for each MiB
// of pool at its largest).
//
// Sources: Litwin, "Linear Hashing", VLDB 1980; Larson, "Dynamic Hash Tables", CACM 1988. Everything here is the pool's
// lock's. A flat table with open addressing would be one load shorter, but doubles at once and needs 16 to 32 bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "brimful/pool_host.h"

namespace brimful::pools::page_pool {

class PageTable {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Entry {
    std::uintptr_t page;
    std::uint32_t next;  // entry of the same bucket, or kEnd
    std::uint32_t head;  // of the bucket that has this entry's number
  };

  [[nodiscard]] std::size_t count() const { return count_; }
  // Bytes taken from the host.
  [[nodiscard]] std::size_t bytes() const {
    return chunks_ * kChunkBytes + (directory_ == inside_ ? 0 : capacity_ * sizeof *directory_);
  }
  // Of entry 0, for tests; null: there is no entry.
  [[nodiscard]] const void* memory() const { return count_ == 0 ? nullptr : directory_[0]; }
  [[nodiscard]] void* page(std::size_t number) const { return reinterpret_cast<void*>(entry(number).page); }

  // Its number, or kNone. `page` may be any address.
  [[nodiscard]] std::size_t find(std::uintptr_t page) const {
    if (count_ == 0) return kNone;
    for (std::uint32_t i = entry(bucket_of(page)).head; i != kEnd; i = entry(i).next) {
      if (entry(i).page == page) return i;
    }
    return kNone;
  }

  // Room for one more page; false: the host gave none.
  bool reserve(const brimful_pool_host& host);
  // reserve() has returned true since the last call.
  void add(void* page);
  void remove(const brimful_pool_host& host, std::size_t number);
  // Gives back the table's own memory.
  void give_all(const brimful_pool_host& host);

  // Every entry in its own bucket, once, and no address changed: O(pages). Reads the table only. On false *bad is near what
  // is wrong.
  [[nodiscard]] bool is_sound(std::size_t page_bytes, const void** bad) const;
  // find() that ends on smashed chains, too.
  [[nodiscard]] bool has(std::uintptr_t page) const;

 private:
  static constexpr std::uint32_t kEnd = ~std::uint32_t{0};
  static constexpr std::size_t kChunkBytes = 4096;
  static constexpr std::size_t kChunk = kChunkBytes / sizeof(Entry);  // entries of one chunk
  static constexpr std::size_t kInside = 256;

  [[nodiscard]] Entry& entry(std::size_t number) const { return directory_[number / kChunk][number % kChunk]; }
  [[nodiscard]] std::size_t bucket_of(std::uintptr_t page) const {
    // The product's high bytes depend on all of the address; swapped, they are the low ones.
    const std::uint64_t hash = __builtin_bswap64(page * 0x9E3779B97F4A7C15U);
    const std::size_t bucket = hash & mask_;
    return bucket < count_ ? bucket : bucket & mask_ / 2;
  }
  // The link that says `number`, in the chain of the bucket that `page` belongs to.
  [[nodiscard]] std::uint32_t* link_to(std::size_t number) const;
  bool grow_directory(const brimful_pool_host& host, std::size_t needed);

  std::size_t count_ = 0;
  std::size_t mask_ = 0;          // the least 2^n - 1 that is not below count_ - 1
  std::uintptr_t all_pages_ = 0;  // exclusive or of their addresses: a smashed one is found before anybody follows it
  std::size_t chunks_ = 0;
  std::size_t capacity_ = kInside;  // of directory_, pointers
  Entry** directory_ = inside_;
  Entry* inside_[kInside];
};

}  // namespace brimful::pools::page_pool
