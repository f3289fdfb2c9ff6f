// SPDX-License-Identifier: MIT
//
// Handle pool: its size classes and the shape of their runs. All of it is computed when the library is compiled.
//
// Classes are 16 bytes apart up to 4096, and above that 32 to each doubling, so that a slot is at most 15 bytes or 1/32
// larger than what was asked for. A run is 1 … kMostRunPages pages with as many slots as fit. Each slot needs 4 bytes
// that say whose it is (a reference, handle/pool.h); they stand in one of two places, whichever wastes less:
//
//   inside     | slot 0 | slot 1 | … | slot n-1 |  rest  | reference 0 … n-1 |     in what the slots leave over
//   embedded   | slot 0 | slot 1 | … | slot n-1 |  rest  |                         in the run's record, at most 8 slots
//
// The second is for powers of two, which leave nothing over: 8 objects of 4096 bytes fill 8 pages to the last byte.
// The run length is the one of least cost, where cost is all bytes a slot takes that are not the slot's (rest,
// references, the record) and a penalty for each page, because each class has a run that is half full.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "pools/host.h"

namespace brimful::pools::handle {

inline constexpr std::size_t kUnitBytes = 16;           // what slots are multiples of, and aligned to
inline constexpr std::size_t kFineBytes = 4096;         // up to here a class for each unit
inline constexpr std::size_t kMostObjectBytes = 65536;  // the largest object of any pool
inline constexpr unsigned kCoarseSteps = 32;            // classes to each doubling above kFineBytes
inline constexpr unsigned kFineClasses = kFineBytes / kUnitBytes;
inline constexpr unsigned kMostClasses = kFineClasses + 4 * kCoarseSteps;
inline constexpr std::size_t kRunRecordBytes = 64;
inline constexpr std::size_t kReferenceBytes = 4;
inline constexpr unsigned kEmbeddedReferences = 8;

// The class of objects of `bytes` bytes, 1 … kMostObjectBytes.
constexpr unsigned class_of(std::size_t bytes) {
  if (bytes <= kFineBytes) return static_cast<unsigned>((bytes - 1) / kUnitBytes);
  const auto log = static_cast<unsigned>(std::bit_width(bytes - 1)) - 1;  // 12 … 15
  return kFineClasses + (log - 12) * kCoarseSteps + static_cast<unsigned>((bytes - 1) >> (log - 5) & 31);
}

// Bytes of a slot of the class.
constexpr std::size_t slot_bytes_of(unsigned index) {
  if (index < kFineClasses) return (index + 1) * kUnitBytes;
  const unsigned log = 12 + (index - kFineClasses) / kCoarseSteps;
  return (kCoarseSteps + (index - kFineClasses) % kCoarseSteps + 1) << (log - 5);
}

struct RunShape {
  std::uint16_t pages = 0;  // of the host's
  std::uint16_t slots = 0;
  bool embedded = false;  // references stand in the record
};

// Bits of a slot's number: a page of the smallest slots has this many, and no run has more.
constexpr unsigned slot_bits_for(std::size_t page_bytes) {
  return static_cast<unsigned>(std::countr_zero(page_bytes / kUnitBytes));
}

using Shapes = std::array<RunShape, kMostClasses>;

// The shapes of all classes for hosts with these pages.
const Shapes& shapes_for(std::size_t page_bytes);

}  // namespace brimful::pools::handle
