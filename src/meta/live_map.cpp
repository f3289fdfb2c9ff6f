// SPDX-License-Identifier: MIT
//
// meta/live_map.h. Bits are committed from the start of a window up to its highest slab; the page heap gives
// out the lowest addresses first.
#include "meta/live_map.h"

#include <bit>

#include "base/check.h"
#include "base/units.h"
#include "classes/size_classes.h"
#include "meta/table_memory.h"
#include "os/calls.h"

namespace brimful::meta {
namespace {

constexpr std::size_t kStepBytes = std::size_t{64} << 10;  // committed at a time; a multiple of every page size

// Calls visit(number of a word, bits in it) for each word of bits that objects of a group have bits in, and returns the
// objects of those bits that it answers with.
template <class Visit>
std::uint64_t for_each_word(std::uint64_t bytes, std::uint64_t objects, Visit visit) {
  const std::uint64_t step = bytes / kObjectAlignment;
  std::uint64_t answered = 0;
  while (objects != 0) {
    const std::uint64_t word = static_cast<unsigned>(std::countr_zero(objects)) * step / 64;
    std::uint64_t bits = 0;
    std::uint64_t rest = objects;
    for (; rest != 0; rest &= rest - 1) {
      const std::uint64_t place = static_cast<unsigned>(std::countr_zero(rest)) * step;
      if (place / 64 != word) break;
      bits |= std::uint64_t{1} << (place % 64);
    }
    for (std::uint64_t found = visit(word, bits); found != 0; found &= found - 1) {
      answered |= std::uint64_t{1} << ((word * 64 + static_cast<unsigned>(std::countr_zero(found))) / step);
    }
    objects = rest;
  }
  return answered;
}

}  // namespace

BRIMFUL_ZEROS_COLD constinit LiveMap live_map;

std::uint64_t LiveMap::bytes_for(std::uint64_t window_bytes) {
  return round_up(window_bytes / kWindowPerByte, os::page_bytes());
}

bool LiveMap::add_window(std::uint64_t start, std::size_t bytes) {
  const std::size_t count = count_.load(std::memory_order_relaxed);  // relaxed: written under the heap lock
  BRIMFUL_CHECK(count < kMaxRegions);
  const std::size_t map_bytes = bytes_for(bytes);
  void* words = reserve_table(map_bytes);
  if (words == nullptr) return false;
  os::calls.name(reinterpret_cast<std::uintptr_t>(words), map_bytes, "brimful live map");
  Region& region = regions_[count];
  region.start = start;
  region.bytes = bytes;
  region.words = static_cast<std::atomic<std::uint64_t>*>(words);
  count_.store(count + 1, std::memory_order_release);  // pairs with: find() (the region)
  return true;
}

void LiveMap::remove_last_window() {
  const std::size_t last = count_.load(std::memory_order_relaxed) - 1;  // relaxed: written under the heap lock
  count_.store(last, std::memory_order_relaxed);                        // relaxed: nothing was ever found in the region
  const std::size_t map_bytes = bytes_for(regions_[last].bytes);
  release_table(regions_[last].words, map_bytes);
}

bool LiveMap::cover(std::uint64_t end) {
  Region* region = regions_;
  while (end - 1 - region->start >= region->bytes) ++region;
  const std::uint64_t covered =
      region->covered.load(std::memory_order_relaxed);  // relaxed: written under the heap lock
  if (end - region->start <= covered) return true;
  const std::size_t done = covered / kWindowPerByte;
  const std::size_t most = bytes_for(region->bytes);
  const std::size_t needed = round_up((end - region->start) / kWindowPerByte, kStepBytes);
  const std::size_t wanted = needed < most ? needed : most;
  if (!os::calls.commit(reinterpret_cast<std::uintptr_t>(region->words) + done, wanted - done)) return false;
  // Not beyond the window: what lies there may become another's.
  const std::uint64_t usable = wanted * kWindowPerByte;
  // pairs with: find() (usable bits)
  region->covered.store(usable < region->bytes ? usable : region->bytes, std::memory_order_release);
  return true;
}

void LiveMap::set(std::uint64_t address) {
  const Place place = find(address);
  BRIMFUL_CHECK(place.word != nullptr);
  if (os::is_single_threaded()) return arch::set_bits_alone(*place.word, place.bit);
  place.word->fetch_or(place.bit, std::memory_order_release);  // pairs with: clear() (the slab's header)
}

void LiveMap::set_group(std::uint64_t start, std::uint64_t bytes, std::uint64_t objects) {
  const Place first = find(start);
  BRIMFUL_CHECK(first.word != nullptr && first.bit == 1);
  for_each_word(bytes, objects, [first](std::uint64_t word, std::uint64_t bits) {
    std::atomic<std::uint64_t>& all = first.word[word];
    // Where no bit is set, none can be lost: others only clear. A locked instruction less.
    if (all.load(std::memory_order_relaxed) == 0) {  // relaxed: as above; we wrote it last, or who had the lock before
      all.store(bits, std::memory_order_release);    // pairs with: clear() (the slab's header)
    } else if (os::is_single_threaded()) {
      arch::set_bits_alone(all, bits);
    } else {
      all.fetch_or(bits, std::memory_order_release);  // pairs with: as above
    }
    return std::uint64_t{0};
  });
}

std::uint64_t LiveMap::clear_group(std::uint64_t start, std::uint64_t bytes, std::uint64_t objects) {
  const Place first = find(start);
  BRIMFUL_CHECK(first.word != nullptr && first.bit == 1);
  // relaxed: as clear(); the caller has the slab
  return objects & ~for_each_word(bytes, objects, [first](std::uint64_t word, std::uint64_t bits) {
           return bits & ~first.word[word].fetch_and(~bits, std::memory_order_relaxed);  // relaxed: ^
         });
}

void LiveMap::clear_all(std::uint64_t start, std::size_t bytes) {
  const Place first = find(start);
  BRIMFUL_CHECK(first.word != nullptr && start % kGranuleBytes == 0 && bytes % kGranuleBytes == 0);
  // relaxed: as clear()
  for (std::size_t i = 0; i < bytes / kWindowPerWord; ++i) first.word[i].store(0, std::memory_order_relaxed);
}

bool LiveMap::is_set(std::uint64_t address) {
  const Place place = find(address);
  // relaxed: a caller that asks about a live object knows that it is
  return place.word != nullptr && (place.word->load(std::memory_order_relaxed) & place.bit) != 0;
}

}  // namespace brimful::meta
