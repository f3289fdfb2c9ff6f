// SPDX-License-Identifier: MIT
//
// The two passes of mark.h.
#include "leaks/mark.h"

#include <array>

#include "memory/piece.h"

namespace brimful::observer::leaks {

Marker::Marker(const Objects& objects)
    : objects_(objects), reached_(objects.numbers()), possibly_(objects.numbers()), is_inner_(objects.numbers()) {}

void Marker::add_root(const memory::Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step) {
  scan(memory, from, to, step);
}

void Marker::add_root_words(const std::vector<std::uint64_t>& words) {
  for (const std::uint64_t word : words) visit(word);
}

void Marker::add_owner(std::uint64_t address) {
  Object object;
  if (objects_.find(address, object)) mark(object);
}

void Marker::run() {
  drain();
  second_pass_ = true;
  for (const Object object : inner_) mark(object);
  drain();
}

void Marker::scan(const memory::Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step) {
  memory::visit_words(memory, from, to, step, [this](std::uint64_t word) { visit(word); });
}

void Marker::visit(std::uint64_t word) {
  Object object;
  if (!objects_.find(word, object)) return;
  if (second_pass_ || objects_.address(object) == word) {
    mark(object);
  } else if (is_inner_.set(objects_.number(object))) {
    inner_.push_back(object);
  }
}

void Marker::mark(Object object) {
  const std::uint64_t number = objects_.number(object);
  if (reached_.test(number)) return;
  if ((second_pass_ ? possibly_ : reached_).set(number)) stack_.push_back(object);
}

void Marker::drain() {
  constexpr std::size_t kAhead = 8;  // a power of two
  std::array<Object, kAhead> queue;
  std::size_t in = 0;
  std::size_t out = 0;
  while (true) {
    while (in - out < kAhead && !stack_.empty()) {
      const Object object = stack_.back();
      stack_.pop_back();
      const Span& span = objects_.span(object);
      __builtin_prefetch(span.memory.data + (span.address(object.index) - span.memory.start));
      queue[in++ % kAhead] = object;
    }
    if (in == out) return;
    const Object object = queue[out++ % kAhead];
    const Span& span = objects_.span(object);
    const std::uint64_t start = span.address(object.index);
    scan(span.memory, start, start + span.object_bytes, sizeof(std::uint64_t));
  }
}

}  // namespace brimful::observer::leaks
