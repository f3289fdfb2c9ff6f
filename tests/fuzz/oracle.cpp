// SPDX-License-Identifier: MIT
//
// oracle.h.
#include "oracle.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace brimful::fuzz {
namespace {

constexpr std::size_t kWhole = 64 << 10;  // up to here all bytes are painted
constexpr std::size_t kEdge = 4 << 10;    // else so many at both ends

// Calls visit(from, to) for the painted parts of the first `bytes`.
template <class Visit>
void visit_parts(std::size_t usable, std::size_t bytes, Visit visit) {
  if (usable <= kWhole) return visit(std::size_t{0}, bytes);
  visit(std::size_t{0}, std::min(bytes, kEdge));
  if (bytes > usable - kEdge) visit(usable - kEdge, bytes);
}

char colour_at(const Block& block, std::size_t offset) { return static_cast<char>(block.colour + offset * 7); }

}  // namespace

void fail(const char* promise, const void* where) {
  std::fprintf(stderr, "broken promise: %s (%p)\n", promise, where);
  std::abort();
}

void paint(const Block& block) {
  visit_parts(block.usable, block.usable, [&](std::size_t from, std::size_t to) {
    for (std::size_t n = from; n < to; ++n) block.start[n] = colour_at(block, n);
  });
}

void expect_painted(const Block& block, std::size_t bytes) {
  visit_parts(block.usable, bytes, [&](std::size_t from, std::size_t to) {
    for (std::size_t n = from; n < to; ++n)
      expect(block.start[n] == colour_at(block, n), "a block holds what was written to it", block.start + n);
  });
}

void expect_zeros(const char* start, std::size_t bytes) {
  visit_parts(bytes, bytes, [&](std::size_t from, std::size_t to) {
    for (std::size_t n = from; n < to; ++n) expect(start[n] == 0, "zeroed memory is zero", start + n);
  });
}

void Oracle::add(Block block) {
  const auto start = reinterpret_cast<std::uintptr_t>(block.start);
  expect(block.usable >= block.asked, "a block is as long as it was asked for", block.start);
  expect(start % alignment_ == 0, "a block is aligned", block.start);
  expect(block.alignment == 0 || start % block.alignment == 0, "a block is aligned as it was asked for", block.start);
  const auto behind = places_.lower_bound(start);
  expect(behind == places_.end() || start + block.usable <= behind->first, "no two blocks overlap", block.start);
  expect(behind == places_.begin() || std::prev(behind)->second <= start, "no two blocks overlap", block.start);
  places_[start] = start + block.usable;
  block.colour = next_colour_;
  next_colour_ = static_cast<std::uint8_t>(next_colour_ + 37);
  bytes_ += block.usable;
  paint(block);
  blocks_.push_back(block);
}

Block Oracle::take(std::size_t number) {
  const Block block = blocks_[number];
  expect_painted(block, block.usable);
  blocks_[number] = blocks_.back();
  blocks_.pop_back();
  places_.erase(reinterpret_cast<std::uintptr_t>(block.start));
  bytes_ -= block.usable;
  return block;
}

void Oracle::drop(const void* owner) {
  for (std::size_t n = blocks_.size(); n-- > 0;) {
    if (blocks_[n].owner == owner) take(n);
  }
}

void Oracle::expect_all() const {
  for (const Block& block : blocks_) expect_painted(block, block.usable);
}

}  // namespace brimful::fuzz
