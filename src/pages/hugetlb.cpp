// SPDX-License-Identifier: MIT
//
// Hugepages of the system's pool (option hugetlb, os/hugetlb.h) in the windows.
//
// A hugepage of which nothing is committed yet is taken from the pool as a whole, when the first of its granules is
// wanted. If the pool has none, its granules are committed one by one as ever, and the next hugepage asks again. Pool
// pages can't be given back in part: they go back as wholes (2 MiB) when all of their granules are free, by a mapping without
// access in their place, not by MADV_DONTNEED, which before Linux 6.9 gives up the reservation but not the mapping, so that
// the next touch might be a SIGBUS. Pages of 1 GiB never go back.
#include "os/hugetlb.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/report.h"
#include "pages/page_heap.h"

namespace brimful::pages {
namespace {

constexpr std::uint64_t kHugepagesPerGib = std::uint64_t{1} << (os::kHugetlb1G - meta::kHugepageShift);

}  // namespace

// Takes `count` hugepages from `first` (at `address`) on from the pool, as one page or one each.
bool PageHeap::take_from_pool(Hugepage* first, std::uint64_t address, std::uint64_t count) {
  const bool is_giant = count == kHugepagesPerGib;
  if (!os::calls.map_hugetlb(address, count * kHugepageBytes, is_giant ? os::kHugetlb1G : os::kHugetlb2M)) return false;
  for (std::uint64_t i = 0; i < count; ++i) {
    first[i].committed = kAllBits;
    first[i].set(is_giant ? Hugepage::kPool | Hugepage::kGiant : Hugepage::kPool);
  }
  stats_.committed_bytes += count * kHugepageBytes;
  stats_.hugetlb_bytes += count * kHugepageBytes;
  return true;
}

// The whole GiB around `address`, if it lies in a window and nothing of it is in use.
bool PageHeap::take_giant(std::uint64_t address) {
  constexpr std::uint64_t kGib = std::uint64_t{1} << os::kHugetlb1G;
  const std::uint64_t start = round_down(address, kGib);
  bool inside = false;
  for (std::size_t i = 0; i < window_count_; ++i) {
    inside = inside || (windows_[i].start <= start && start + kGib <= windows_[i].start + windows_[i].bytes);
  }
  const GranuleId id = table_->id_of(start);
  if (!inside || !table_->cover(id + kHugepagesPerGib * meta::kGranulesPerHugepage)) return false;
  Hugepage* first = table_->hugepage_of(id);
  for (std::uint64_t i = 0; i < kHugepagesPerGib; ++i) {
    if (first[i].committed != 0) return false;
  }
  return take_from_pool(first, start, kHugepagesPerGib);
}

bool PageHeap::commit_from_pool(std::uint64_t start, GranuleCount count) {
  bool all = true;
  for (std::uint64_t at = round_down(start, kHugepageBytes); at < start + count.bytes(); at += kHugepageBytes) {
    Hugepage* hugepage = table_->hugepage_of(table_->id_of(at));
    if (hugepage->has(Hugepage::kPool)) continue;
    if (hugepage->committed == 0 && all) {
      if (config::hugetlb() == config::Hugetlb::k1G && take_giant(at)) continue;
      if (take_from_pool(hugepage, at, 1)) continue;
    }
    all = false;
  }
  if (!all && !pool_was_empty_) {
    pool_was_empty_ = true;
    if (config::options.verbose != 0) os::report(Line() << "hugetlb: the system's pool is empty: ordinary pages serve");
  }
  return all;
}

std::size_t PageHeap::return_to_pool(Hugepage* hugepage, std::uint64_t now_ms) {
  if (hugepage->state != Hugepage::State::kFree || hugepage->has(Hugepage::kGiant) ||
      !os::calls.decommit(hugepage->address(), kHugepageBytes)) {
    put_off(hugepage, now_ms);
    return 0;
  }
  const std::size_t dirty = GranuleCount(count_ones(hugepage->free_and_dirty())).bytes();
  hugepage->set_dirty(0);
  hugepage->committed = 0;
  hugepage->unset(Hugepage::kPool);
  hugepage->purged_ms = static_cast<std::uint32_t>(now_ms);
  forget_clean(hugepage);
  stats_.dirty_bytes -= dirty;
  stats_.purged_bytes += dirty;
  ++stats_.purges;
  stats_.committed_bytes -= kHugepageBytes;
  stats_.hugetlb_bytes -= kHugepageBytes;
  return dirty;
}

}  // namespace brimful::pages
