// SPDX-License-Identifier: MIT
//
// Giving free memory back (pages/page_heap.h): which hugepages hold some, in which order, and the system calls.
//
// Free hugepages first: their memory is the longest unasked for, 2 MiB go in one call, and where the kernel backs them by
// hugepages that takes 9 ns a page in place of 240. Then free granules of hugepages that are in use.
#include "base/compiler.h"
#include "os/calls.h"
#include "pages/page_heap.h"

namespace brimful::pages {
namespace {

using meta::Hugepage;

// How long frees may put a hugepage's turn off: those of one burst count as one. With half a second the peak rule
// (mind_the_peak) found nothing old enough in a heap in motion, and the workload `fragmentation` needed 12 % more.
constexpr std::int32_t kMostFreshMs = 20;

// From stamp to now; the stamps are low bits, and clocks that were read before the lock was taken may be a little behind.
std::int32_t age_ms(std::uint32_t stamp_ms, std::uint64_t now_ms) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(now_ms) - stamp_ms);
}

bool is_due(const Hugepage& hugepage, std::uint64_t cutoff_ms, std::uint64_t now_ms) {
  return cutoff_ms >= now_ms || age_ms(hugepage.stamp_ms, now_ms) >= static_cast<std::int64_t>(now_ms - cutoff_ms);
}

}  // namespace

void PageHeap::unlist_dirty(Hugepage* hugepage) {
  if (hugepage->has(Hugepage::kDirtyWhole)) dirty_whole_.remove(hugepage);
  if (hugepage->has(Hugepage::kDirtyPart)) dirty_parts_.remove(hugepage);
  if (hugepage->has(Hugepage::kMuzzy)) muzzy_.remove(hugepage);
}

// Its free memory counts as dirty again: some of it is about to change hands, or the system refused it.
void PageHeap::unmuzzy(Hugepage* hugepage) {
  if (!hugepage->has(Hugepage::kMuzzy)) return;
  muzzy_.remove(hugepage);
  stats_.muzzy_bytes -= GranuleCount(count_ones(hugepage->free_and_dirty())).bytes();
}

// Puts the hugepage behind the others, with a stamp that is not before theirs.
void PageHeap::list_dirty(Hugepage* hugepage, bool whole) {
  DirtyList& list = whole ? dirty_whole_ : dirty_parts_;
  const Hugepage* last = list.back();
  if (last != nullptr && static_cast<std::int32_t>(hugepage->stamp_ms - last->stamp_ms) < 0) {
    hugepage->stamp_ms = last->stamp_ms;
  }
  list.push_back(hugepage);
}

// Memory of the hugepage was freed just now.
void PageHeap::note_dirty(Hugepage* hugepage, std::uint64_t now_ms) {
  const bool whole = hugepage->state == Hugepage::State::kFree;
  if (!hugepage->has(Hugepage::kDirtyWhole | Hugepage::kDirtyPart)) {
    hugepage->oldest_ms = hugepage->stamp_ms = static_cast<std::uint32_t>(now_ms);
  } else if (age_ms(hugepage->oldest_ms, now_ms) < kMostFreshMs) {
    hugepage->stamp_ms = static_cast<std::uint32_t>(now_ms);
  } else if (hugepage->has(whole ? Hugepage::kDirtyWhole : Hugepage::kDirtyPart)) {
    return;
  }
  unlist_dirty(hugepage);
  list_dirty(hugepage, whole);
}

// Memory of the hugepage was handed out or given back: it may have no free dirty memory any more, or be in use now.
void PageHeap::forget_clean(Hugepage* hugepage) {
  if (hugepage->free_and_dirty() == 0) {
    unlist_dirty(hugepage);
  } else if (hugepage->has(Hugepage::kDirtyWhole) && hugepage->state == Hugepage::State::kUsed) {
    unlist_dirty(hugepage);
    list_dirty(hugepage, false);
  }
}

// One system call for `granules` (a run of bits) of `hugepages` hugepages (with one: a part of it).
bool PageHeap::give_back(Hugepage* first, std::uint32_t granules, std::uint32_t hugepages, std::uint64_t now_ms) {
  const auto skipped = static_cast<std::uint32_t>(std::countr_zero(granules));
  const std::uint64_t start = first->address() + GranuleCount(skipped).bytes();
  const std::size_t bytes = GranuleCount(count_ones(granules) * hugepages).bytes();
  backing_.purge(start, bytes);
  const bool given_back = is_strict() ? os::calls.decommit(start, bytes) : os::calls.purge(start, bytes);
  if (!given_back) return false;
  for (std::uint32_t i = 0; i < hugepages; ++i) {
    Hugepage& hugepage = first[i];
    if (hugepage.has(Hugepage::kMuzzy)) stats_.muzzy_bytes -= GranuleCount(count_ones(granules)).bytes();
    hugepage.set_dirty(hugepage.dirty() & ~granules);
    if (is_strict()) hugepage.committed &= ~granules;
    hugepage.purged_ms = static_cast<std::uint32_t>(now_ms);
    forget_clean(&hugepage);
  }
  stats_.dirty_bytes -= bytes;
  stats_.purged_bytes += bytes;
  ++stats_.purges;
  if (is_strict()) stats_.committed_bytes -= bytes;
  return true;
}

// The system does not take the hugepage's memory: it is tried again after another delay.
void PageHeap::put_off(Hugepage* hugepage, std::uint64_t now_ms) {
  const bool whole = hugepage->has(Hugepage::kDirtyWhole);
  unlist_dirty(hugepage);
  hugepage->stamp_ms = hugepage->oldest_ms = static_cast<std::uint32_t>(now_ms);
  list_dirty(hugepage, whole);
}

// The free dirty granules of one hugepage, as far as the budget goes, one call per stretch.
std::size_t PageHeap::purge_parts(Hugepage* hugepage, std::size_t budget, std::uint64_t now_ms) {
  if (BRIMFUL_UNLIKELY(hugepage->has(Hugepage::kPool))) return return_to_pool(hugepage, now_ms);
  std::size_t purged = 0;
  bool refused = false;
  std::uint32_t left = hugepage->free_and_dirty();
  while (left != 0 && purged < budget) {
    const auto first = static_cast<unsigned>(std::countr_zero(left));
    auto count = static_cast<std::uint32_t>(std::countr_one(left >> first));
    const std::size_t room = budget - purged;
    if (GranuleCount(count).bytes() > room) count = GranuleCount::covering(room).raw();
    const std::uint32_t granules = bits_from(first, count);
    if (give_back(hugepage, granules, 1, now_ms)) {
      purged += GranuleCount(count).bytes();
    } else {
      refused = true;
    }
    left &= ~granules;
  }
  if (refused) put_off(hugepage, now_ms);  // locked in memory (mlock)
  return purged;
}

// `first` and its neighbours, as long as all of each is free, dirty and due, in one call.
std::size_t PageHeap::purge_hugepages(Hugepage* first, std::uint64_t cutoff_ms, std::size_t budget,
                                      std::uint64_t now_ms) {
  std::uint32_t count = 0;
  for (Hugepage* next = first; (count + 1) * kHugepageBytes <= budget && table_->is_covered(next); ++next, ++count) {
    if (next->has(Hugepage::kPool) || !next->has(Hugepage::kDirtyWhole) || next->dirty() != kAllBits ||
        !is_due(*next, cutoff_ms, now_ms))
      break;
  }
  if (count != 0 && give_back(first, kAllBits, count, now_ms)) return count * kHugepageBytes;
  return purge_parts(first, budget, now_ms);
}

std::size_t PageHeap::purge_list(DirtyList& list, std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
  std::size_t purged = 0;
  // What the system does not take goes to the end of the list: no more rounds than there are hugepages now.
  for (std::uint32_t left = list.count(); left != 0 && purged < budget; --left) {
    Hugepage* hugepage = list.front();
    if (hugepage == nullptr || !is_due(*hugepage, cutoff_ms, now_ms)) break;
    purged += purge_hugepages(hugepage, cutoff_ms, budget - purged, now_ms);
  }
  return purged;
}

std::size_t PageHeap::purge(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
  std::size_t purged = 0;
  for (DirtyList* list : {&dirty_whole_, &dirty_parts_, &muzzy_}) {
    if (purged < budget) purged += purge_list(*list, cutoff_ms, budget - purged, now_ms);
  }
  return purged;
}

std::uint32_t PageHeap::youngest_dirty_age_ms(std::uint64_t now_ms) const {
  std::uint32_t youngest = UINT32_MAX;
  for (const DirtyList* list : {&dirty_whole_, &dirty_parts_}) {
    const Hugepage* back = list->back();
    if (back == nullptr) continue;
    const std::int32_t age = age_ms(back->stamp_ms, now_ms);
    const auto known = static_cast<std::uint32_t>(age > 0 ? age : 0);
    if (known < youngest) youngest = known;
  }
  return youngest;
}

// Offers all free dirty memory of the hugepage to the system. false: it was refused (locked in memory).
bool PageHeap::soften(Hugepage* hugepage, std::uint64_t now_ms) {
  const bool whole = hugepage->state == Hugepage::State::kFree;
  const std::uint32_t granules = hugepage->free_and_dirty();
  bool done = true;
  for_each_run(granules, [&](unsigned first, unsigned count) {
    const std::uint64_t start = hugepage->address() + GranuleCount(first).bytes();
    done = os::calls.purge_lazily(start, GranuleCount(count).bytes()) && done;
  });
  unlist_dirty(hugepage);
  hugepage->stamp_ms = hugepage->oldest_ms = static_cast<std::uint32_t>(now_ms);
  if (!done) {
    list_dirty(hugepage, whole);
    return false;
  }
  muzzy_.push_back(hugepage);
  stats_.muzzy_bytes += GranuleCount(count_ones(granules)).bytes();
  return true;
}

std::size_t PageHeap::soften_list(DirtyList& list, std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
  const std::size_t before = stats_.muzzy_bytes;
  for (std::uint32_t left = list.count(); left != 0 && stats_.muzzy_bytes - before < budget; --left) {
    Hugepage* hugepage = list.front();
    if (hugepage == nullptr || !is_due(*hugepage, cutoff_ms, now_ms)) break;
    soften(hugepage, now_ms);
  }
  return stats_.muzzy_bytes - before;
}

std::size_t PageHeap::soften(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
  const std::size_t whole = soften_list(dirty_whole_, cutoff_ms, budget, now_ms);
  return whole < budget ? whole + soften_list(dirty_parts_, cutoff_ms, budget - whole, now_ms) : whole;
}

}  // namespace brimful::pages
