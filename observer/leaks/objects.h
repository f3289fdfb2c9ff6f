// SPDX-License-Identifier: MIT
//
// The live objects of a heap, found from any address: what the search for leaks asks about every word it meets.
//
//   word ──▶ directory: a table for each 4 GiB, an entry for each 64 KiB ──▶ span ──▶ (word − start) ÷ bytes = object
//
// A span is a slab's objects, or one large or huge block. Its objects have numbers among all of the heap, so that what is
// known of each (live, reached) is a bit in one of a few long bitmaps. The division is a multiplication by the rounded-up
// reciprocal, exact below 2^32 (Granlund & Montgomery 1994, §4); exact division, with which the library tells starts
// from other addresses, does not say to which object an address inside of one belongs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "memory/piece.h"

namespace brimful::observer::leaks {

__extension__ using Wide = unsigned __int128;

struct Span {
  std::uint64_t start = 0;
  std::uint64_t object_bytes = 0;
  std::uint32_t count = 0;  // objects, live or free
  bool is_slab = false;
  std::uint64_t reciprocal = 0;  // 2^64 / object_bytes, rounded up
  std::uint64_t first = 0;       // number of its first object; a multiple of 64
  memory::Piece memory;

  [[nodiscard]] std::uint64_t bytes() const { return object_bytes * count; }
  [[nodiscard]] std::uint64_t address(std::uint64_t index) const { return start + index * object_bytes; }
};

// One object: a span's number and the object's in it.
struct Object {
  std::uint32_t span;
  std::uint32_t index;
};

class Objects {
 public:
  static constexpr unsigned kGranuleShift = 16;

  // Enters a slab or a block; `live`: a bit for each object. Spans lie apart from each other.
  void add(std::uint64_t start, std::uint64_t object_bytes, std::uint32_t count, bool is_slab,
           const std::uint64_t* live);
  // After the last add(): the directory.
  void finish();

  [[nodiscard]] const std::vector<Span>& spans() const { return spans_; }
  std::vector<Span>& spans() { return spans_; }
  [[nodiscard]] const Span& span(Object object) const { return spans_[object.span]; }
  [[nodiscard]] std::uint64_t number(Object object) const { return spans_[object.span].first + object.index; }
  [[nodiscard]] std::uint64_t address(Object object) const { return spans_[object.span].address(object.index); }
  [[nodiscard]] std::uint64_t numbers() const { return numbers_; }
  [[nodiscard]] const memory::Bits& live() const { return live_; }
  [[nodiscard]] std::uint64_t live_count() const;
  [[nodiscard]] std::uint64_t live_bytes() const;

  // Whether any object might lie there: two instructions, which most words don't pass.
  [[nodiscard]] bool is_near(std::uint64_t address) const { return address - lowest_ < extent_; }

  // The live object that `address` lies in. false: in none.
  [[nodiscard]] bool find(std::uint64_t address, Object& object) const {
    if (!is_near(address)) return false;
    const std::uint32_t* leaf = leaves_[address >> kLeafShift].get();
    if (leaf == nullptr) return false;
    std::uint32_t entry = leaf[(address >> kGranuleShift) & (kLeafEntries - 1)];
    if (entry == kShared) entry = find_among(address);
    if (entry == kNone) return false;
    const Span& span = spans_[entry - 1];
    const std::uint64_t offset = address - span.start;
    if (offset >= span.bytes()) return false;  // also below the start: it wraps around
    const std::uint64_t index =
        span.count == 1 ? 0 : static_cast<std::uint64_t>((static_cast<Wide>(offset) * span.reciprocal) >> 64);
    object = {entry - 1, static_cast<std::uint32_t>(index)};
    return live_.test(span.first + index);
  }

 private:
  static constexpr unsigned kLeafShift = 32;
  static constexpr std::uint64_t kLeafEntries = std::uint64_t{1} << (kLeafShift - kGranuleShift);
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kShared =
      ~std::uint32_t{0};  // two blocks with mappings of their own meet in a granule

  [[nodiscard]] std::uint32_t find_among(std::uint64_t address) const;

  std::vector<Span> spans_;  // by address after finish()
  memory::Bits live_;
  std::uint64_t numbers_ = 0;
  std::uint64_t lowest_ = 0;
  std::uint64_t extent_ = 0;
  std::vector<std::unique_ptr<std::uint32_t[]>> leaves_;
};

}  // namespace brimful::observer::leaks
