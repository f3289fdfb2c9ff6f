// SPDX-License-Identifier: MIT
//
// What must hold of a program's blocks, whoever allocates them: each is aligned and as long as it was asked for, no two lie on the
// same bytes, and each holds what was last written to it. A broken promise is a line on standard error and abort(), which the
// fuzzer keeps with its input.
//
// All usable bytes are painted, of large blocks the first and last pages, in a colour of the block's own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace brimful::fuzz {

// Ends the process: what should have held.
[[noreturn]] void fail(const char* promise, const void* where = nullptr);

inline void expect(bool holds, const char* promise, const void* where = nullptr) {
  if (!holds) fail(promise, where);
}

struct Block {
  char* start = nullptr;
  std::size_t asked = 0;
  std::size_t usable = 0;
  std::size_t alignment = 0;  // that it was asked for by aligned_alloc; 0: by another call
  void* owner = nullptr;      // a heap of the program; nullptr: none
  std::uint8_t colour = 0;
};

void paint(const Block& block);
// The first `bytes` of the block are as they were painted.
void expect_painted(const Block& block, std::size_t bytes);
// They are zero.
void expect_zeros(const char* start, std::size_t bytes);

class Oracle {
 public:
  // `alignment`: of every block.
  explicit Oracle(std::uint8_t first_colour = 1, std::size_t alignment = 16)
      : alignment_(alignment), next_colour_(first_colour) {}

  // A block that is new: takes `start`, `asked`, `usable` and the rest, paints it.
  void add(Block block);
  // Of one that lives, by number; it is checked whole.
  Block take(std::size_t number);
  [[nodiscard]] const Block& at(std::size_t number) const { return blocks_[number]; }
  [[nodiscard]] std::size_t count() const { return blocks_.size(); }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Forgets and checks all blocks of an owner.
  void drop(const void* owner);
  void expect_all() const;

 private:
  std::vector<Block> blocks_;
  std::map<std::uintptr_t, std::uintptr_t> places_;  // start and end
  std::size_t bytes_ = 0;
  std::size_t alignment_;
  std::uint8_t next_colour_;
};

}  // namespace brimful::fuzz
