// SPDX-License-Identifier: MIT
//
// meta/live_map.h. The bits of a window are reserved when its first slab is made, and committed as slabs lie higher.
#include "meta/live_map.h"

#include "base/check.h"
#include "base/units.h"
#include "classes/size_classes.h"
#include "os/calls.h"

namespace brimful::meta {
namespace {

constexpr std::size_t kWindowPerByte = 8 * kObjectAlignment;        // bytes of window that a byte of bits describes
constexpr std::size_t kStepBytes = std::size_t{64} << 10;           // committed at a time; a multiple of every page size
constexpr std::size_t kWindowPerWord = sizeof(std::uint64_t) * kWindowPerByte;

}  // namespace

constinit LiveMap live_map;

LiveMap::Region* LiveMap::region_of(const AddressRange& window) {
  const std::size_t count = count_.load(std::memory_order_relaxed);  // relaxed: written under the heap lock
  for (std::size_t i = 0; i < count; ++i) {
    if (regions_[i].start == window.start) return &regions_[i];
  }
  const std::size_t bytes = round_up(window.bytes / kWindowPerByte, kStepBytes);
  if (count == kMaxRegions) return nullptr;
  void* words = os::calls.map(0, bytes, os::Access::kNone);
  if (words == nullptr) return nullptr;
  os::calls.name(reinterpret_cast<std::uintptr_t>(words), bytes, "brimful live map");
  Region& region = regions_[count];
  region.start = window.start;
  region.words = static_cast<std::atomic<std::uint64_t>*>(words);
  count_.store(count + 1, std::memory_order_release);  // pairs with: find() (the region)
  return &region;
}

bool LiveMap::cover(const AddressRange& window, std::uint64_t end) {
  Region* region = region_of(window);
  if (region == nullptr) return false;
  const std::uint64_t covered = region->covered.load(std::memory_order_relaxed);  // relaxed: as above
  if (end - region->start <= covered) return true;
  const std::size_t done = covered / kWindowPerByte;
  const std::size_t wanted = round_up((end - region->start) / kWindowPerByte, kStepBytes);
  if (!os::calls.commit(reinterpret_cast<std::uintptr_t>(region->words) + done, wanted - done)) return false;
  // Not beyond the window: what lies there may become another's.
  const std::uint64_t now_covered = wanted * kWindowPerByte < window.bytes ? wanted * kWindowPerByte : window.bytes;
  region->covered.store(now_covered, std::memory_order_release);  // pairs with: find() (usable bits)
  return true;
}

LiveMap::Place LiveMap::find(std::uint64_t address) {
  const std::size_t count = count_.load(std::memory_order_acquire);  // pairs with: region_of() (the region)
  for (std::size_t i = 0; i < count; ++i) {
    Region& region = regions_[i];
    const std::uint64_t offset = address - region.start;
    // pairs with: cover() (usable bits)
    if (offset >= region.covered.load(std::memory_order_acquire) || offset % kObjectAlignment != 0) continue;
    return {&region.words[offset / kWindowPerWord], std::uint64_t{1} << (offset / kObjectAlignment % 64)};
  }
  return {nullptr, 0};
}

void LiveMap::set(std::uint64_t address) {
  const Place place = find(address);
  BRIMFUL_CHECK(place.word != nullptr);
  // relaxed: the bit decides by itself; whoever frees the object got its address after this
  place.word->fetch_or(place.bit, std::memory_order_relaxed);
}

bool LiveMap::clear(std::uint64_t address) {
  const Place place = find(address);
  if (place.word == nullptr) return false;
  // relaxed: one of two frees finds the bit set, in whichever order; what follows orders the object's next use
  return (place.word->fetch_and(~place.bit, std::memory_order_relaxed) & place.bit) != 0;
}

bool LiveMap::is_set(std::uint64_t address) {
  const Place place = find(address);
  // relaxed: a caller that asks about a live object knows that it is
  return place.word != nullptr && (place.word->load(std::memory_order_relaxed) & place.bit) != 0;
}

}  // namespace brimful::meta
