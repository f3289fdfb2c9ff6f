// SPDX-License-Identifier: MIT
//
// Shadow memory: one bit for each 16 bytes of the address space, set while a live object covers them.
//
// Invariant: a bit is set from the moment an allocation call has returned until right before the object is
// passed to free. So if a claim finds a bit already set, two live objects share these 16 bytes, and it is
// seen by the second allocation itself, not by a stamp that happens to be overwritten later.
//
//     address >> 30 ──► root[2¹⁷] ──► leaf: 8 MiB = 1 bit per 16 bytes of one GiB, mapped at first use
//
// All atomics are relaxed, on purpose: a release/acquire here would order the free in one thread before the
// allocation in another, and so hide from ThreadSanitizer (and from the hardware) that the allocator under
// test forgot to. If the allocator orders them, coherence alone makes the claim see the release.
//
// The memory comes from mmap, so the shadow works under any allocator and any sanitizer. An interval tree
// would give better messages but needs a lock, which would serialise the very races that are being looked
// for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace brimful::stress {

inline constexpr size_t kShadowUnit = 16;

class Shadow {
 public:
  // Maps the root table. Call once, before any thread starts.
  static void initialize();

  // Marks [address, address + bytes) live; 0 bytes count as one unit. Returns 0, or the address of the first
  // unit that was live already.
  static uintptr_t claim(uintptr_t address, size_t bytes);

  // Marks it dead. Returns 0, or the address of the first unit that was not live: the oracle's own books are
  // wrong, or somebody wrote over them.
  static uintptr_t release(uintptr_t address, size_t bytes);

  // Live units in the whole address space. Only exact while nobody claims or releases.
  static size_t count_live_units();
};

// Zeroed private memory straight from the kernel; ends the process with a message if there is none.
void* map_zeroed(size_t bytes);

}  // namespace brimful::stress
