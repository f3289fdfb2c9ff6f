// SPDX-License-Identifier: MIT
//
// What a fuzzer's bytes mean: numbers and texts, taken from the front. Where the bytes end, all is zero, so that each input is
// a program that ends, and a shorter one is the same program broken off.
//
// Rejected: clang's FuzzedDataProvider, which takes numbers from the end: a mutation in the middle of the input then changes
// what comes before it, and gcc, which replays the corpora, has it not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace brimful::fuzz {

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  [[nodiscard]] bool is_empty() const { return at_ == end_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  std::uint8_t byte() { return at_ == end_ ? std::uint8_t{0} : *at_++; }
  // Little endian, of so many bytes.
  std::uint64_t number(unsigned bytes) {
    std::uint64_t value = 0;
    for (unsigned n = 0; n < bytes; ++n) value |= std::uint64_t{byte()} << (8 * n);
    return value;
  }
  std::uint64_t below(std::uint64_t bound) { return number(bound <= 256 ? 1 : bound <= 65536 ? 2 : 8) % bound; }
  bool flag() { return (byte() & 1) != 0; }

  // So many bytes, or what is left of them.
  std::string text(std::size_t bytes) {
    const std::size_t taken = std::min(bytes, left());
    std::string result(reinterpret_cast<const char*>(at_), taken);
    at_ += taken;
    return result;
  }
  // Up to the byte `mark`, which is taken as well, or the end.
  std::string text_until(char mark) {
    const auto* const found = is_empty() ? nullptr : static_cast<const std::uint8_t*>(std::memchr(at_, mark, left()));
    std::string result = text(found == nullptr ? left() : static_cast<std::size_t>(found - at_));
    if (found != nullptr) ++at_;
    return result;
  }
  std::string rest() { return text(left()); }
  // The rest in two: another reader, of the first `bytes`.
  Input part(std::size_t bytes) {
    const std::size_t taken = std::min(bytes, left());
    const Input result(at_, taken);
    at_ += taken;
    return result;
  }

  // A size as programs ask for: mostly small, near powers of two, seldom large, and now and then one that can't be had.
  std::size_t request_bytes() {
    const std::uint8_t kind = byte();
    if (kind < 128) return number(1);
    if (kind < 180) return number(2) % 4200;
    if (kind < 210) return number(2);
    if (kind < 230) return (std::size_t{1} << below(23)) + number(1) - 128;
    if (kind < 250) return number(3) % (std::size_t{4} << 20);
    if (kind < 254) return number(4) % (std::size_t{64} << 20);
    return ~std::size_t{0} - number(3);
  }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace brimful::fuzz
