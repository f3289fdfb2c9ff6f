// SPDX-License-Identifier: MIT
//
// Which objects of slabs are live: one bit for each 16 bytes of window, set while an object that begins there is the
// program's, or is offered to malloc. In tier:hardened only; the default tier maps none of it.
//
//   window     │ object ──────│ object ──────│ …      free() clears the bit of the address it got, by ONE atomic AND,
//   live map   │ 1 0 0 0      │ 0 0 0 0      │ …      before anything else happens to the object
//
// The bits of objects that are offered together are set together, a word at a time (slots/lives.h): malloc's hit need not
// know of them.
//
// Two frees of one object at the same moment otherwise part ways: the owner's sets a bit in its word, another's in the
// remote mask, and neither looks at both at once. Here they meet: whoever finds the bit clear is the second.
//
// The bit belongs to the address, not to a slab's header: a second free may have read the table before the first one
// emptied the slab, and the header may be another slab's by now. A bit found through it would be that slab's object's.
// Decision, cost and what was rejected: docs/design/0011, 0042.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arch/alone.h"
#include "classes/size_classes.h"
#include "os/thread.h"

namespace brimful {
struct Anatomy;  // debug/anatomy.h
}

namespace brimful::meta {

class LiveMap {
 public:
  static constexpr std::size_t kWindowPerByte = 8 * kObjectAlignment;  // bytes of window that a byte of bits describes
  static constexpr std::size_t kWindowPerWord = sizeof(std::uint64_t) * kWindowPerByte;

  // Reserves the bits of a window. With the window, not when its first slab is made: by then a limit on address space may
  // have been reached. false: no address space, nothing has changed. Caller holds the heap lock, as for the next two.
  bool add_window(std::uint64_t start, std::size_t bytes);

  // The window added last could not be used; it holds no slab.
  void remove_last_window();

  // Makes the bits below `end` usable, which lies behind a slab's last byte. false: no memory, nothing has changed. A
  // system call for every 8 MiB of window.
  bool cover(std::uint64_t end);

  // The object at `address`, which is covered, is going to be handed out.
  void set(std::uint64_t address);

  // Ends the life of the object at `address`. false: none is live there; any address at all may be asked. O(windows), no
  // lock. What the caller reads of the object's slab from here on is at least as new as its bit.
  [[nodiscard]] bool clear(std::uint64_t address) {
    const Place place = find(address);
    // Blocks that have no bit come by here, too: a page of bits that only they would touch need not be there.
    // relaxed: decides nothing but which way the next line goes
    if (place.word == nullptr || (place.word->load(std::memory_order_relaxed) & place.bit) == 0) return false;
    // Without a lock prefix where nobody can free at the same moment.
    if (os::is_single_threaded()) return arch::clear_bit_alone(*place.word, place.number);
    // pairs with: set(), set_group() (the slab's header). One of two frees finds the bit set, in whichever order.
    return (place.word->fetch_and(~place.bit, std::memory_order_acquire) & place.bit) != 0;
  }

  // The same for objects of a group of 64 (a mask), which begin at `start` and every `bytes` from there; `start` is a
  // multiple of 64 times 16 bytes. One caller for a group at a time. O(objects), one atomic step for each 1024 bytes in
  // which others of the group live.
  void set_group(std::uint64_t start, std::uint64_t bytes, std::uint64_t objects);
  // Returns those that were live.
  [[nodiscard]] std::uint64_t clear_group(std::uint64_t start, std::uint64_t bytes, std::uint64_t objects);

  // No object in [start, start + bytes) lives any more: covered, whole granules. O(bytes / 1024).
  void clear_all(std::uint64_t start, std::size_t bytes);

  [[nodiscard]] bool is_set(std::uint64_t address);

  // Calls visit(start, bytes) for the usable bits of each window, in whole pages. Caller holds the heap lock.
  template <class Visit>
  void visit_memory(Visit visit) const {
    const std::size_t count = count_.load(std::memory_order_relaxed);  // relaxed: written under the heap lock
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t usable = regions_[i].covered.load(std::memory_order_relaxed);  // relaxed: as above
      visit(reinterpret_cast<std::uint64_t>(regions_[i].words), bytes_for(usable));
    }
  }

 private:
  friend struct ::brimful::Anatomy;

  static constexpr std::size_t kMaxRegions = 128;

  // The bits of one window. Written under the heap lock.
  struct Region {
    std::uint64_t start;                 // of the window
    std::uint64_t bytes;                 // of the window
    std::atomic<std::uint64_t> covered;  // bytes of the window that have usable bits; grows
    std::atomic<std::uint64_t>* words;
  };

  struct Place {
    std::atomic<std::uint64_t>* word;  // nullptr: the address has no bit
    std::uint64_t bit;                 // 1 << number
    unsigned number;
  };

  Place find(std::uint64_t address) {
    const std::size_t count = count_.load(std::memory_order_acquire);  // pairs with: add_window() (the region)
    for (std::size_t i = 0; i < count; ++i) {
      Region& region = regions_[i];
      const std::uint64_t offset = address - region.start;
      // pairs with: cover() (usable bits)
      if (offset >= region.covered.load(std::memory_order_acquire) || offset % kObjectAlignment != 0) continue;
      const auto number = static_cast<unsigned>(offset / kObjectAlignment % 64);
      return {&region.words[offset / kWindowPerWord], std::uint64_t{1} << number, number};
    }
    return {nullptr, 0, 0};
  }
  // Bytes of bits for that many bytes of window, in whole pages.
  static std::uint64_t bytes_for(std::uint64_t window_bytes);

  Region regions_[kMaxRegions] = {};
  std::atomic<std::size_t> count_{0};
};

extern LiveMap live_map;

}  // namespace brimful::meta
