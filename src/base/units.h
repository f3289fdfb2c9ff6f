// SPDX-License-Identifier: MIT
//
// Units as types. The address space is carved in granules of 64 KiB; the kernel backs it in pages (4, 16 or 64 KiB,
// read at run time) or hugepages of 2 MiB. Mixing them up is the classic allocator bug, so a count of granules does
// not convert to bytes without saying so.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace brimful {

inline constexpr unsigned kGranuleShift = 16;
inline constexpr std::size_t kGranuleBytes = std::size_t{1} << kGranuleShift;
inline constexpr std::size_t kHugepageBytes = std::size_t{2} << 20;

// A number of granules.
class GranuleCount {
 public:
  constexpr GranuleCount() = default;
  constexpr explicit GranuleCount(std::uint32_t count) : count_(count) {}

  // The fewest granules that hold `bytes`.
  static constexpr GranuleCount covering(std::size_t bytes) {
    return GranuleCount(static_cast<std::uint32_t>((bytes + kGranuleBytes - 1) >> kGranuleShift));
  }

  [[nodiscard]] constexpr std::uint32_t raw() const { return count_; }
  [[nodiscard]] constexpr std::size_t bytes() const { return std::size_t{count_} << kGranuleShift; }

  constexpr auto operator<=>(const GranuleCount&) const = default;
  constexpr GranuleCount operator+(GranuleCount other) const { return GranuleCount(count_ + other.count_); }
  constexpr GranuleCount operator-(GranuleCount other) const { return GranuleCount(count_ - other.count_); }

 private:
  std::uint32_t count_ = 0;
};

// The number of a granule in the granule table: its address shifted, modulo the table's span.
class GranuleId {
 public:
  constexpr GranuleId() = default;
  constexpr explicit GranuleId(std::uint64_t id) : id_(id) {}
  [[nodiscard]] constexpr std::uint64_t raw() const { return id_; }
  constexpr auto operator<=>(const GranuleId&) const = default;
  constexpr GranuleId operator+(std::uint64_t n) const { return GranuleId(id_ + n); }

 private:
  std::uint64_t id_ = 0;
};

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t power_of_two) {
  return (value + power_of_two - 1) & ~(power_of_two - 1);
}
constexpr std::uint64_t round_down(std::uint64_t value, std::uint64_t power_of_two) {
  return value & ~(power_of_two - 1);
}
constexpr bool is_power_of_two(std::uint64_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace brimful
