// SPDX-License-Identifier: MIT
//
// The granule table: one header pointer per 64 KiB of window, and beside it one record per 2 MiB (meta/hugepage.h).
//
// free() indexes it with (address >> 16) & mask. Windows are placed so that their granule numbers, modulo the span,
// follow each other from 0; so the mask covers a power-of-two prefix that holds every window in use, every entry of that
// prefix points at a header (unused ones at the "none" header), and ANY address, also a wild one, may be looked up. The
// prefix grows by doubling: entries are filled first, then the mask is published. Unused table is PROT_NONE.
#pragma once

#include <cstddef>
#include <cstdint>

#include <atomic>

#include "arch/sequences.h"
#include "base/units.h"
#include "config/options.h"
#include "meta/header.h"
#include "meta/hugepage.h"

namespace brimful {
struct Anatomy;  // debug/anatomy.h
}

namespace brimful::meta {

// Where entries lead that no granule uses: free() of such an address leaves the fast path here.
extern Header none;

// The table as the slow paths find it: where free()'s fast path does, or, where each free() is to be seen, where it does not
// look. There the fast path's own table stays the one entry it begins with, and each free() misses with the exact address.
extern arch::brimful_hot_globals hidden_table;
inline arch::brimful_hot_globals& published_table() {
  return config::sees_each_free() ? hidden_table : arch::brimful_hot;
}

// The header that free() of the address looks at, for any address at all. Takes no lock: exact while a block at the
// address is live, else a header that was there.
inline Header* header_in(arch::brimful_hot_globals& table, std::uint64_t address) {
  // pairs with: GranuleTable::cover() (the table that goes with the mask)
  const std::uint64_t mask = std::atomic_ref(table.granule_mask).load(std::memory_order_acquire);
  // relaxed: ordered by the mask
  Header* const* entries = std::atomic_ref(table.table).load(std::memory_order_relaxed);
  auto& entry = const_cast<Header*&>(entries[(address >> kGranuleShift) & mask]);
  return std::atomic_ref(entry).load(std::memory_order_relaxed);  // relaxed: as set()
}
inline Header* header_of(std::uint64_t address) { return header_in(published_table(), address); }

class GranuleTable {
 public:
  // The most granules a table can have: 1 TiB of windows.
  static constexpr std::uint64_t kMaxGranules = std::uint64_t{1} << 24;

  // Reserves address space for `granules` entries. false: the system refuses.
  bool reserve(std::uint64_t granules);

  // Gives the reserved table its name in /proc/PID/maps.
  void name() const;

  // Makes [0, end) usable. false when the system has no memory, or end is beyond the span; nothing changes then.
  bool cover(GranuleId end);

  // Granules the reserved table can describe: a power of two. Addresses are taken modulo it.
  [[nodiscard]] std::uint64_t span() const { return span_; }
  [[nodiscard]] std::uint64_t covered() const { return covered_; }

  [[nodiscard]] GranuleId id_of(std::uint64_t address) const {
    return GranuleId((address >> kGranuleShift) & (span_ - 1));
  }
  [[nodiscard]] Header* get(GranuleId id) const {
    if (id.raw() >= covered_) return &none_header();
    return std::atomic_ref(entries_[id.raw()]).load(std::memory_order_acquire);  // pairs with: set() (the header)
  }
  // The entry that free() would look at for any address at all.
  [[nodiscard]] Header* look_up(std::uint64_t address) const { return get(id_of(address)); }

  void set(GranuleId id, Header* header) {
    // pairs with: get() (the header); free() needs no order: it got the address from the program, after this
    std::atomic_ref(entries_[id.raw()]).store(header, std::memory_order_release);
  }
  void set_all(GranuleId first, GranuleCount count, Header* header) {
    for (std::uint32_t i = 0; i < count.raw(); ++i) set(GranuleId(first.raw() + i), header);
  }
  void clear(GranuleId id) { set(id, &none_header()); }

  // The record of the n-th hugepage, n * 32 < span(); usable while n < covered_hugepages(). Guarded by the heap lock.
  [[nodiscard]] Hugepage* hugepage(std::uint64_t n) const { return hugepages_ + n; }
  [[nodiscard]] Hugepage* hugepage_of(GranuleId id) const { return hugepages_ + id.raw() / kGranulesPerHugepage; }
  [[nodiscard]] std::uint64_t index_of(const Hugepage* hugepage) const {
    return static_cast<std::uint64_t>(hugepage - hugepages_);
  }
  [[nodiscard]] bool is_covered(const Hugepage* hugepage) const { return index_of(hugepage) < covered_hugepages(); }
  [[nodiscard]] std::uint64_t covered_hugepages() const { return covered_ / kGranulesPerHugepage; }

  // Calls visit(start, bytes) for each part of the table's memory that is usable, in whole pages. Caller holds the heap lock.
  template <class Visit>
  void visit_memory(Visit visit) const {
    visit(reinterpret_cast<std::uint64_t>(entries_), std::uint64_t{committed_entry_bytes_});
    visit(reinterpret_cast<std::uint64_t>(hugepages_), std::uint64_t{committed_record_bytes_});
  }

  static Header& none_header();

 private:
  friend struct ::brimful::Anatomy;

  Header** entries_ = nullptr;
  Hugepage* hugepages_ = nullptr;
  std::uint64_t span_ = 0;
  std::uint64_t covered_ = 0;
  std::size_t committed_entry_bytes_ = 0;
  std::size_t committed_record_bytes_ = 0;
};

}  // namespace brimful::meta
