// SPDX-License-Identifier: MIT
//
// Text of any length that fits, put together before it is written: what several processes print to one terminal or file
// then stays in one piece. Its memory is mapped for the purpose, because the heap may be what is wrong, and a thread's
// stack may be too small. A text that does not fit is cut.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::stats {

class Output {
 public:
  static constexpr std::size_t kCapacity = 64 << 10;  // 72 classes in two tables need a quarter of it

  Output();
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // false: no memory; everything below does nothing.
  [[nodiscard]] bool is_usable() const { return text_ != nullptr; }

  Output& operator<<(const char* text);
  Output& operator<<(std::uint64_t value);
  // In a column of `width` characters, at its left or right end.
  Output& left(const char* text, std::size_t width);
  Output& right(const char* text, std::size_t width);
  Output& right(std::uint64_t value, std::size_t width);
  // A number of thousandths, with its point: 1234 is 1.234.
  Output& thousandths(std::uint64_t value);

  [[nodiscard]] const char* data() const { return text_; }  // ended by a zero
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] char last() const { return size_ > 0 ? text_[size_ - 1] : '\0'; }

 private:
  Output& append(const char* text, std::size_t bytes);
  Output& spaces(std::size_t count);

  char* text_;
  std::size_t size_ = 0;
};

// One JSON object of objects, strings and whole numbers. Keys and strings are ours: nothing in them needs escaping.
class Json {
 public:
  explicit Json(Output& output) : output_(output) {}

  void begin() { output_ << "{"; }
  void begin(const char* key);
  void begin(std::uint64_t key);
  void end() { output_ << "}"; }
  void number(const char* key, std::uint64_t value);
  void thousandths(const char* key, std::uint64_t value);
  void string(const char* key, const char* value);

 private:
  Output& key(const char* name);

  Output& output_;
};

}  // namespace brimful::stats
