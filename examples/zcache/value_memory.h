// SPDX-License-Identifier: MIT
//
// Where the cache keeps the bytes of its values. Two of them, so that they can be compared with everything else equal: the
// handle pool, and the process's malloc, whichever that is.
//
// The contract is a handle's, not a pointer's: bytes are looked at between open() and close() only, and may be
// elsewhere the next time. malloc keeps it without effort; the handle pool uses it to move values together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace zcache {

using Place = std::uint64_t;  // of one value; 0: none
using Bytes = std::span<const std::byte>;

class ValueMemory {
 public:
  // What the memory says of itself; zeros where malloc does not know. Bytes.
  struct Use {
    std::size_t held = 0;      // pages held for values
    std::size_t metadata = 0;  // pages held for the memory's own lists
    std::uint64_t moved = 0;   // values moved so far
  };

  ValueMemory() = default;
  virtual ~ValueMemory() = default;
  ValueMemory(const ValueMemory&) = delete;
  ValueMemory& operator=(const ValueMemory&) = delete;

  // Copies the bytes in. 0: no memory left.
  virtual Place store(Bytes bytes) = 0;

  // The bytes of a value, until close(). A value must not be opened twice at once.
  virtual const std::byte* open(Place place) = 0;
  virtual void close(Place place) = 0;

  // Gives a value's memory back.
  virtual void drop(Place place) = 0;

  // A bounded piece of housekeeping, called after each change.
  virtual void tidy(std::size_t stored_bytes) = 0;

  [[nodiscard]] virtual Use use() const = 0;
};

struct HandleSettings {
  std::size_t most_value_bytes = 4096;
  // Compaction begins when it could give back this many per cent of the values' bytes. Negative: never.
  double most_waste_percent = 3;
  std::size_t moves_a_step = 16;  // of compaction, in one put or erase
};

// Throw std::bad_alloc.
std::unique_ptr<ValueMemory> make_handle_memory(const HandleSettings& settings);
std::unique_ptr<ValueMemory> make_malloc_memory();

}  // namespace zcache
