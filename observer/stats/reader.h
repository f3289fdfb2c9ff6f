// SPDX-License-Identifier: MIT
//
// Reading the library's variables by the names of its anatomy. A name that is not there reads as 0 and is remembered
// (Anatomy::missing()), so who reads a few of them asks once, at the end, whether all were known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "memory/target.h"

namespace brimful::observer::stats {

// A structure, copied as a whole.
class Copy {
 public:
  explicit Copy(std::size_t bytes = 0) : bytes_(bytes) {}

  // The member at an offset; 0 behind the end.
  template <class T = std::uint64_t>
  [[nodiscard]] T at(std::uint64_t offset) const {
    T value = {};
    if (offset + sizeof value <= bytes_.size()) std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return value;
  }
  [[nodiscard]] std::vector<std::byte>& bytes() { return bytes_; }
  [[nodiscard]] bool operator==(const Copy&) const = default;

 private:
  std::vector<std::byte> bytes_;
};

class Reader {
 public:
  Reader(memory::Anatomy& anatomy, const memory::Read& read) : anatomy_(anatomy), read_(read) {}

  // What a name stands for: a number, or an address.
  [[nodiscard]] std::uint64_t operator[](const char* name) const { return anatomy_[name]; }
  // Reads never throw: what can't be read is zeros, and failed() says so from then on.
  template <class T = std::uint64_t>
  [[nodiscard]] T variable(const char* name) const {
    T value = {};
    if (!read_(anatomy_[name], &value, sizeof value)) has_failed_ = true;
    return value;
  }
  [[nodiscard]] Copy copy(std::uint64_t address, std::uint64_t bytes) const {
    Copy result(bytes < kMostBytes ? bytes : 0);
    if (bytes >= kMostBytes || !read_(address, result.bytes().data(), result.bytes().size())) has_failed_ = true;
    return result;
  }
  // A text that ends with a zero; at most 255 letters.
  [[nodiscard]] std::string text(std::uint64_t address) const {
    std::string result;
    for (char letter = 0; result.size() < kMostText && read_(address + result.size(), &letter, 1); result += letter) {
      if (letter == '\0') return result;
    }
    has_failed_ = true;
    return {};
  }
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  void begin() { has_failed_ = false; }

 private:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;
  static constexpr std::size_t kMostText = 255;

  memory::Anatomy& anatomy_;
  const memory::Read& read_;
  mutable bool has_failed_ = false;
};

}  // namespace brimful::observer::stats
