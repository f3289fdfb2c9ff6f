// SPDX-License-Identifier: MIT
//
// One line of text built on the stack: messages must work when the heap does not. Text that does not fit is cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful {

class Line {
 public:
  static constexpr std::size_t kCapacity = 480;

  Line& operator<<(const char* text) {
    while (*text != '\0') put(*text++);
    return *this;
  }
  Line& operator<<(std::uint64_t value) {
    char digits[20];
    int count = 0;
    do {
      digits[count++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    while (count > 0) put(digits[--count]);
    return *this;
  }
  Line& operator<<(std::int64_t value) {
    if (value < 0) put('-');
    return *this << (value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
  }
  Line& operator<<(std::uint32_t value) { return *this << static_cast<std::uint64_t>(value); }
  Line& operator<<(int value) { return *this << static_cast<std::int64_t>(value); }
  Line& operator<<(const void* pointer) {
    const auto value = reinterpret_cast<std::uintptr_t>(pointer);
    *this << "0x";
    int shift = 60;
    while (shift > 0 && ((value >> shift) & 15) == 0) shift -= 4;
    for (; shift >= 0; shift -= 4) put("0123456789abcdef"[(value >> shift) & 15]);
    return *this;
  }
  Line& append(const char* text, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i) put(text[i] == '\n' ? '?' : text[i]);
    return *this;
  }

  [[nodiscard]] const char* data() const { return text_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  // Control characters of foreign text would break the promise of one line.
  void put(char c) {
    if (size_ < kCapacity) text_[size_++] = static_cast<unsigned char>(c) < ' ' && c != '\n' ? '?' : c;
  }

  char text_[kCapacity + 1] = {};  // ends with '\0' always
  std::size_t size_ = 0;
};

}  // namespace brimful
