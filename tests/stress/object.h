// SPDX-License-Identifier: MIT
//
// A live object as the oracle knows it, and the stamp that proves nobody else wrote there.
//
// The stamp is a function of (id, address, offset), so an object's content is wrong whichever way it went
// astray: overwritten by a neighbour, swapped with an object of another id, or copied to another place by
// realloc without the oracle knowing. Up to 256 bytes every word is stamped; beyond that the head, the tail
// (to the last byte) and a few spots drawn from the id, so that 64 MiB objects cost microseconds and
// untouched pages stay untouched.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::stress {

struct Object {
  std::byte* address;
  size_t size;       // as asked for
  size_t usable;     // as usable_size answered right after the allocation; it must never change
  uint64_t id;       // unique in the process
  size_t alignment;  // as asked for; 0 = by malloc, calloc or realloc
};

// Writes the stamp over head, tail and spots.
void stamp(const Object& object);

// Returns the offset of the first wrong byte among the stamped ones below `limit`, or SIZE_MAX if there is
// none. `content` is where the bytes are now (realloc may have moved them); `object` is how they were
// stamped.
size_t find_damage(const std::byte* content, const Object& object, size_t limit);

// Returns the offset of a byte that is not zero, or SIZE_MAX. Up to 1 MiB every byte is read, beyond that 64
// KiB at both ends and the places where stamp() writes.
size_t find_nonzero(const std::byte* content, size_t size, uint64_t seed);

}  // namespace brimful::stress
