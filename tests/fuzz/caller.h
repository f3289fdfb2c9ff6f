// SPDX-License-Identifier: MIT
//
// One thread of a made-up program: turns bytes into calls of the allocator, all of them, and holds the answers against the
// oracle. Sizes that can't be had are among them, so are heaps with limits; what is freed twice or at a wrong address is not:
// the library ends the process for it, and tests/misuse/ sees to that.
//
// Beside the contents it is checked that calls which succeed keep errno, that a refused call says ENOMEM, that usable sizes
// do not change, and that a block belongs to the heap that it was asked of.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "brimful/heap.h"
#include "input.h"
#include "oracle.h"

namespace brimful::fuzz {

// Where threads leave blocks for each other.
struct Mailbox {
  static constexpr std::size_t kSlots = 8;
  std::array<std::atomic<Block*>, kSlots> slots{};
};

class Caller {
 public:
  // `mailbox`: nullptr, or shared with other callers.
  explicit Caller(std::uint8_t first_colour, Mailbox* mailbox = nullptr) : oracle_(first_colour), mailbox_(mailbox) {}
  Caller(const Caller&) = delete;
  Caller& operator=(const Caller&) = delete;

  // One call, as the input says.
  void step(Input& input);
  // Frees all that lives, and destroys the heaps.
  void finish();
  [[nodiscard]] Oracle& oracle() { return oracle_; }
  void free_one(std::size_t number, std::uint8_t way);

 private:
  void allocate(Input& input);
  void resize(Input& input);
  void use_heap(Input& input);
  void ask(Input& input);
  void exchange(Input& input);
  void destroy_heap(std::size_t number);
  void add(void* start, std::size_t asked, std::size_t alignment, const void* owner, bool may_fail);
  std::size_t any_block(Input& input) const;

  static constexpr std::size_t kMostBlocks = 512;
  static constexpr std::size_t kMostBytes = std::size_t{256} << 20;
  static constexpr std::size_t kMostHeaps = 3;

  struct Heap {
    brimful_heap* handle = nullptr;
    std::size_t limit = 0;
  };

  Oracle oracle_;
  Mailbox* mailbox_;
  std::array<Heap, kMostHeaps> heaps_;
};

}  // namespace brimful::fuzz
