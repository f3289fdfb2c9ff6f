// SPDX-License-Identifier: MIT
//
// stats/output.h.
#include "stats/output.h"

#include <string.h>

#include "base/line.h"
#include "os/calls.h"

namespace brimful::stats {

Output::Output() : text_(static_cast<char*>(os::calls.map(0, kCapacity, os::Access::kReadWrite))) {}

Output::~Output() {
  if (text_ != nullptr) os::calls.unmap(reinterpret_cast<std::uintptr_t>(text_), kCapacity);
}

Output& Output::append(const char* text, std::size_t bytes) {
  if (text_ == nullptr) return *this;
  const std::size_t room = kCapacity - 1 - size_;  // a zero stays behind the text
  const std::size_t taken = bytes < room ? bytes : room;
  memcpy(text_ + size_, text, taken);
  size_ += taken;
  return *this;
}

Output& Output::spaces(std::size_t count) {
  for (; count > 0; --count) append(" ", 1);
  return *this;
}

Output& Output::operator<<(const char* text) { return append(text, strlen(text)); }

Output& Output::operator<<(std::uint64_t value) {
  const Line digits = Line() << value;
  return append(digits.data(), digits.size());
}

Output& Output::left(const char* text, std::size_t width) {
  const std::size_t length = strlen(text);
  return append(text, length).spaces(length < width ? width - length : 0);
}

Output& Output::right(const char* text, std::size_t width) {
  const std::size_t length = strlen(text);
  return spaces(length < width ? width - length : 0).append(text, length);
}

Output& Output::right(std::uint64_t value, std::size_t width) { return right((Line() << value).data(), width); }

Output& Output::thousandths(std::uint64_t value) {
  const std::uint64_t rest = value % 1000;
  return *this << value / 1000 << (rest < 10 ? ".00" : rest < 100 ? ".0" : ".") << rest;
}

Output& Json::key(const char* name) {
  if (output_.last() != '{') output_ << ",";
  return output_ << "\"" << name << "\":";
}

void Json::begin(const char* name) { key(name) << "{"; }

void Json::begin(std::uint64_t name) { key((Line() << name).data()) << "{"; }

void Json::number(const char* name, std::uint64_t value) { key(name) << value; }

void Json::thousandths(const char* name, std::uint64_t value) { key(name).thousandths(value); }

void Json::string(const char* name, const char* value) { key(name) << "\"" << value << "\""; }

}  // namespace brimful::stats
