// SPDX-License-Identifier: MIT
//
// Size classes: 16 … 256 bytes by 16, then eight per doubling up to 32 KiB: 72 classes. So an object wastes at most
// 15 bytes, or 1/8 of its request, and the class of a request is one table load. Everything here is computed and
// proved at compile time.
//
// A class also fixes the shape of its slabs. A slab is a run of granules cut into whole groups of 64 objects, so that
// every 64-bit word of free bits is full. It is the shortest run of which at most a quarter is a tail that no object
// covers: one granule for most classes up to 1 KiB, 64 objects over up to 32 granules above. A tail that
// was never touched is address space, but one that comes from another class's slab is memory that nobody can use until
// the slab goes. Table and shapes are chosen by the sizes that real programs ask for: docs/design/0018.
//
// And the class holds the exact division that free() does (meta/header.h): size = odd << shift.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "base/units.h"

namespace brimful {

using ClassId = std::uint8_t;

inline constexpr std::size_t kClassCount = BRIMFUL_CLASSES;
inline constexpr std::size_t kMaxClassBytes = BRIMFUL_MEDIUM_MAX;
inline constexpr std::size_t kObjectAlignment = 16;
inline constexpr unsigned kGroupObjects = 64;

// Bytes of a group that are offered at a time. malloc walks through what is offered before it sees what was freed since,
// so this much memory gets touched where one object would do. With whole groups of 64, one live object of 32 KiB held 2 MiB (the C++ compiler: 28 MB).
inline constexpr std::uint32_t kOfferedBytes = 16384;

// Of a slab of which the program may need little, less is offered: where each of 40 classes keeps a few objects alive,
// offering 16 KiB at a time made 15 KiB of each resident, and this 9 (glibc: 5).
inline constexpr std::uint32_t kYoungBytes = 4096;
inline constexpr std::uint32_t kYoungObjects = 8;
// The share of a slab that its tail takes at most.
inline constexpr std::size_t kTailShare = 4;

struct SizeClass {
  std::uint32_t bytes;       // object size
  std::uint32_t odd;         // bytes == odd << shift
  std::uint32_t shift;       // 4 … 15
  std::uint16_t groups;      // of 64 objects, per slab; 1 … 64
  std::uint16_t granules;    // of a slab
  std::uint8_t batch;        // 64 less the objects of a group that are offered to malloc at a time
  std::uint8_t young;        // as batch, for a slab whose class may stay small
  std::uint64_t multiplier;  // inverse of `odd` modulo 2^64, times 2^(16 - shift)
};

namespace classes_detail {

constexpr std::uint64_t inverse(std::uint64_t odd) {
  std::uint64_t x = odd;  // right to 3 bits; each Newton step doubles that
  for (int i = 0; i < 5; ++i) x *= 2 - odd * x;
  return x;
}

// A power of two of objects, at most a group, that fill about kOfferedBytes.
constexpr std::uint32_t offered_objects(std::uint32_t bytes) {
  const std::uint32_t count = std::bit_ceil(kOfferedBytes / bytes + (bytes > kOfferedBytes ? 1 : 0));
  return count < kGroupObjects ? count : kGroupObjects;
}

// The same of the first slab of a class: a page, or a few objects.
constexpr std::uint32_t young_objects(std::uint32_t bytes) {
  const std::uint32_t page = kYoungBytes / bytes;
  const std::uint32_t count = std::bit_floor(page > kYoungObjects ? page : kYoungObjects);
  return count < offered_objects(bytes) ? count : offered_objects(bytes);
}

constexpr std::size_t groups_in(GranuleCount granules, std::uint32_t bytes) {
  return granules.bytes() / (std::size_t{bytes} * kGroupObjects);
}

constexpr bool is_tail_short(GranuleCount granules, std::uint32_t bytes) {
  const std::size_t used = groups_in(granules, bytes) * bytes * kGroupObjects;
  return used != 0 && (granules.bytes() - used) * kTailShare <= granules.bytes();
}

constexpr SizeClass make(std::uint32_t bytes) {
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(bytes));
  GranuleCount granules(1);
  while (!is_tail_short(granules, bytes)) granules = granules + GranuleCount(1);
  const std::size_t groups = groups_in(granules, bytes);
  return SizeClass{.bytes = bytes,
                   .odd = bytes >> shift,
                   .shift = shift,
                   .groups = static_cast<std::uint16_t>(groups),
                   .granules = static_cast<std::uint16_t>(granules.raw()),
                   .batch = static_cast<std::uint8_t>(kGroupObjects - offered_objects(bytes)),
                   .young = static_cast<std::uint8_t>(kGroupObjects - young_objects(bytes)),
                   .multiplier = inverse(bytes >> shift) << (BRIMFUL_DIVISION_SHIFT - shift)};
}

constexpr std::array<SizeClass, kClassCount> make_all() {
  std::array<SizeClass, kClassCount> all = {};
  std::uint32_t bytes = 0;
  for (SizeClass& size_class : all) {
    bytes += bytes < 256 ? 16 : std::bit_floor(bytes) / 8;
    size_class = make(bytes);
  }
  return all;
}

}  // namespace classes_detail

inline constexpr std::array<SizeClass, kClassCount> kSizeClasses = classes_detail::make_all();

// The smallest class that holds `bytes` (0 … kMaxClassBytes). Computed, not looked up: for tables and slow paths.
constexpr ClassId class_of(std::size_t bytes) {
  if (bytes <= 256) return static_cast<ClassId>(bytes == 0 ? 0 : (bytes - 1) / 16);
  const auto top = static_cast<std::size_t>(std::bit_width(bytes - 1)) - 1;  // 2^top < bytes <= 2^(top + 1)
  const std::size_t step = (bytes - 1 - (std::size_t{1} << top)) >> (top - 3);
  return static_cast<ClassId>(16 + (top - 8) * 8 + step);
}

// What to ask for to get `bytes` (0 … kMaxClassBytes) on a multiple of `alignment` (a power of two up to kMaxClassBytes):
// the next multiple of it. Classes lie a power of two apart: where the alignment divides this step, all of them are
// multiples of it; where the step divides the alignment, its multiples are classes. Above kMaxClassBytes: none will do.
constexpr std::size_t aligned_request(std::size_t bytes, std::size_t alignment) {
  return round_up(bytes + (bytes == 0 ? 1 : 0), alignment);
}

// The smallest class that holds `bytes` and whose objects all lie on multiples of `alignment` (a power of two);
// kClassCount when there is none.
constexpr std::size_t class_of_aligned(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMaxClassBytes || alignment > kMaxClassBytes) return kClassCount;
  const std::size_t request = aligned_request(bytes, alignment);
  return request <= kMaxClassBytes ? class_of(request) : kClassCount;
}

namespace classes_detail {

constexpr bool all_classes_hold() {
  for (std::size_t i = 0; i < kClassCount; ++i) {
    const SizeClass& c = kSizeClasses[i];
    if (c.bytes % kObjectAlignment != 0 || (c.odd & 1) == 0 || c.odd << c.shift != c.bytes) return false;
    if (c.groups < 1 || c.groups > 64) return false;
    const std::size_t used = std::size_t{c.groups} * kGroupObjects * c.bytes;
    const std::size_t all = GranuleCount(c.granules).bytes();
    if (used > all || (all - used) * kTailShare > all || all > kHugepageBytes) return false;
    // Waste: the smallest request of a class is one byte more than the class below it.
    const std::size_t smallest = i == 0 ? 1 : kSizeClasses[i - 1].bytes + 1;
    const std::size_t waste = c.bytes - smallest;
    if (waste > 15 && waste * 8 > smallest) return false;
    if (class_of(c.bytes) != i || class_of(smallest) != i) return false;
    // The exact division: the last object divides, a byte beside it does not.
    const std::uint64_t count = std::uint64_t{c.groups} * kGroupObjects;
    const auto divide = [&c](std::uint64_t offset) { return std::rotr(offset * c.multiplier, BRIMFUL_DIVISION_SHIFT); };
    if (divide((count - 1) * c.bytes) != count - 1 || divide(c.bytes * count) < count) return false;
    if (divide(1) < count || divide(c.bytes - 16) < (c.bytes == 16 ? 0 : count) ||
        divide(-std::uint64_t{c.bytes}) < count)
      return false;
  }
  return kSizeClasses[kClassCount - 1].bytes == kMaxClassBytes;
}
static_assert(all_classes_hold());

// Of coarse classes malloc takes freed objects without an offer (arch/).
inline constexpr std::uint32_t kCoarseOffer = 2;
static_assert(kSizeClasses[class_of(BRIMFUL_COARSE_ABOVE)].bytes == BRIMFUL_COARSE_ABOVE &&
              offered_objects(BRIMFUL_COARSE_ABOVE) > kCoarseOffer &&
              offered_objects(kSizeClasses[class_of(BRIMFUL_COARSE_ABOVE + 1)].bytes) == kCoarseOffer);

}  // namespace classes_detail
}  // namespace brimful
