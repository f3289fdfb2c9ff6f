// SPDX-License-Identifier: MIT
//
// meta/granule_table.h.
#include "meta/granule_table.h"

#include <atomic>

#include "meta/table_memory.h"
#include "os/calls.h"

namespace brimful::meta {

// Its start is so far from any address of a program that none is an object of it.
constinit Header none = {std::uint64_t{1} << 63, 1, 0, kOwnerReleased, 0, 1, Kind::kNone, kNoClass, 0};

namespace {

constinit Header* const kNoTable[1] = {&none};

}  // namespace

constinit arch::brimful_hot_globals hidden_table = {kNoTable, 0};

Header& GranuleTable::none_header() { return none; }

bool GranuleTable::reserve(std::uint64_t granules) {
  const std::size_t entry_bytes = round_up(granules * sizeof(Header*), os::page_bytes());
  const std::size_t record_bytes = round_up(granules / kGranulesPerHugepage * sizeof(Hugepage), os::page_bytes());
  void* memory = reserve_table(entry_bytes + record_bytes);
  if (memory == nullptr) return false;
  entries_ = static_cast<Header**>(memory);
  hugepages_ = reinterpret_cast<Hugepage*>(static_cast<std::byte*>(memory) + entry_bytes);
  span_ = granules;
  return true;
}

void GranuleTable::name() const {
  const std::size_t bytes = reinterpret_cast<std::uintptr_t>(hugepages_) - reinterpret_cast<std::uintptr_t>(entries_) +
                            round_up(span_ / kGranulesPerHugepage * sizeof(Hugepage), os::page_bytes());
  os::calls.name(reinterpret_cast<std::uintptr_t>(entries_), bytes, "brimful granule table");
}

bool GranuleTable::cover(GranuleId end) {
  if (end.raw() > span_) return false;
  std::uint64_t target = covered_ != 0 ? covered_ : os::page_bytes() / sizeof(Header*);
  while (target < end.raw()) target *= 2;
  if (target == covered_) return true;
  const auto commit_to = [](std::uintptr_t base, std::size_t& done, std::size_t bytes) {
    bytes = round_up(bytes, os::page_bytes());
    if (bytes <= done) return true;
    if (!os::calls.commit(base + done, bytes - done)) return false;
    done = bytes;
    return true;
  };
  if (!commit_to(reinterpret_cast<std::uintptr_t>(entries_), committed_entry_bytes_, target * sizeof(Header*)) ||
      !commit_to(reinterpret_cast<std::uintptr_t>(hugepages_), committed_record_bytes_,
                 target / kGranulesPerHugepage * sizeof(Hugepage))) {
    return false;
  }
  for (std::uint64_t i = covered_; i < target; ++i) entries_[i] = &none;
  covered_ = target;
  arch::brimful_hot_globals& table = published_table();
  // relaxed: published by the mask
  std::atomic_ref(table.table).store(entries_, std::memory_order_relaxed);
  // pairs with: the program's own hand-over of any pointer beyond the old prefix, header_of() (the entries filled above)
  std::atomic_ref(table.granule_mask).store(target - 1, std::memory_order_release);
  return true;
}

}  // namespace brimful::meta
