// SPDX-License-Identifier: MIT
//
// Run caches: freed large blocks that wait for the next request of their length, without the heap lock. Those for which there
// is room wait in stacks (pages/run_stacks.h) instead.
//
//   cache (one for each context id, modulo 64)
//     places[length 1 … 7, longer][16]   header address │ granules << 48      0: empty
//     stamps                             when each was freed
//     rows                               where to look for blocks to give back: a bit for each length
//
// A place is one word that says whose block it holds AND how long that is, so looking for a length touches two cache
// lines at most and no header, and a compare-and-swap on the word takes exactly what was seen: the same word again is the same
// block of the same length, whatever happened in between. free() fills an empty place; malloc() empties one that is as
// long as asked or, of the longer ones, up to an eighth longer. Threads that share a cache race for places and lose
// nothing but a hit, and a signal handler may do either at any moment.
//
// A cached block is free memory that only its length can use. So it is held on four conditions: of no length does a cache
// hold more than an eighth of the heap (but always kLeastCapacity and never more than kMostCapacity may be held); nothing
// stays longer than purge_delay_ms (pages::tick()); whoever finds neither a block of the right length here nor resident
// memory in the page heap gives the cache back before more is asked for; and no fresh memory is touched while a cache
// holds any (use_cached_before_fresh()).
//
// Eight places in all were too few: where lengths are mixed at random, each miss gave all eight back and began anew
// (blocks of up to 256 KiB, for each: 2,500 instructions; with 8 for each length 940, with 16 720).
//
// Rejected: chains per length, which need two locked instructions on either side in place of one; fields of the context,
// because pages/ lies below slots/, and the caches of contexts that nobody runs in would need a visit of their own.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "meta/header.h"

namespace brimful::pages {

class RunCache {
 public:
  static constexpr std::size_t kRowPlaces = 16;  // two cache lines
  static constexpr std::size_t kRows = 8;        // of lengths of 1 … 7 granules, and of all longer ones
  static constexpr std::size_t kPlaces = kRows * kRowPlaces;

  struct Taken {
    Run* run;  // nullptr: none
    std::uint64_t stamp_ms;
  };

  // A claimed block of at least `count` granules and at most an eighth more, now the caller's; or nullptr. Any moment.
  Run* take(GranuleCount count);

  // Keeps a claimed block, unless all places of its row are taken or would hold more than `capacity` bytes together. Any
  // moment.
  bool put(Run* run, std::uint64_t now_ms, std::size_t capacity);

  // Takes out one block that was put in at `cutoff_ms` or before (UINT64_MAX: any), looking from `*row` on, which it
  // leaves at the row that it looked at last. Any moment.
  Taken take_older(std::uint64_t cutoff_ms, std::size_t* row);

  // false: nothing is held that was put in before the last look. Any moment.
  [[nodiscard]] bool may_hold() const {
    return rows_.load(std::memory_order_seq_cst) != 0;  // pairs with: mark() (before keep_run() sees `filled`)
  }

  // Bytes in granules that the blocks hold at this moment.
  [[nodiscard]] std::size_t bytes() const;

 private:
  [[nodiscard]] std::size_t bytes_in_row(std::size_t row) const;
  Taken take_older_in_row(std::size_t row, std::uint64_t cutoff_ms);
  void mark(std::size_t row);
  void unmark_if_empty(std::size_t row);
  static std::size_t row_of(std::uint64_t granules) { return (granules < kRows ? granules : kRows) - 1; }

  std::atomic<std::uint64_t> places_[kPlaces] = {};
  std::atomic<std::uint64_t> stamps_[kPlaces] = {};
  std::atomic<std::uint32_t> rows_ = 0;  // those that may hold something
};

inline constexpr std::size_t kLeastCapacity = std::size_t{32} << 20;
inline constexpr std::size_t kMostCapacity = std::size_t{64} << 20;

// Freed blocks may wait at all: options that count each granule of a small reserve, or want each one back at once,
// switch it off.
bool keeps_runs();

// The cache of the context `id` has a block of `count` granules: as RunCache::take().
Run* take_cached_run(std::uint32_t id, GranuleCount count);

// As RunCache::put(), of a block that the program has just freed. false: the caller has to free it.
bool keep_run(std::uint32_t id, Run* run, std::uint64_t now_ms);

// Gives the page heap what the cache of one context holds. Caller holds the heap lock.
void flush_cached_runs_of(std::uint32_t id);

// Gives the page heap every block that was freed at `cutoff_ms` or before (UINT64_MAX: all). Caller holds the heap lock.
// Cheap when there is none.
void flush_cached_runs(std::uint64_t cutoff_ms);

// Bytes of the blocks in all caches and stacks. Any moment.
std::size_t cached_run_bytes();

// Before `count` granules are taken from the page heap: if it can't serve them from what is dirty already, the caches go
// first. Caller holds the heap lock.
void use_cached_before_fresh(GranuleCount count);

}  // namespace brimful::pages
