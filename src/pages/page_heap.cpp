// SPDX-License-Identifier: MIT
//
// Taking runs and giving them back (pages/page_heap.h). A place is found first (find.cpp), then committed, which may fail,
// then carved, which can't.
#include "pages/page_heap.h"

#include <string.h>

#include <bit>

#include "base/check.h"
#include "base/compiler.h"
#include "config/options.h"
#include "os/calls.h"
#include "pages/backing.h"

namespace brimful::pages {
namespace {

using meta::kGranulesPerHugepage;

// How far to commit ahead of a request while the heap grows: 1/8 of what is committed, within these bounds; where memory is
// charged when it is committed, no more than kChargedStep. A small program's heap is committed by one call.
constexpr std::size_t kLeastStep = std::size_t{1} << 20;
constexpr std::size_t kChargedStep = std::size_t{256} << 10;
// The first time: a granule short of a hugepage, so that none is usable as a whole before it is touched.
constexpr std::size_t kFirstStep = kHugepageBytes - kGranuleBytes;
// From here on the heap asks whether memory is charged, and gives its windows names; smaller ones can do without.
constexpr std::size_t kAskFrom = std::size_t{4} << 20;
constexpr std::size_t kMostStep = std::size_t{32} << 20;

// How far a peak may grow while dirty memory lies free, before as much of that is given back.
constexpr std::size_t kPeakStep = std::size_t{512} << 10;
// Younger dirty memory is likely to be asked for again at once.
constexpr std::uint64_t kPeakAgeMs = 20;

// Memory that is asked for again within this time after it went back had better stayed.
constexpr std::uint32_t kRefaultMs = 10'000;

std::size_t bytes_in(std::uint32_t granules) { return GranuleCount(count_ones(granules)).bytes(); }

// Calls visit(hugepage, granules) for each hugepage of a run, `granules` being the run's part of it.
template <class Visit>
void for_each_hugepage(meta::GranuleTable& table, std::uint64_t start, std::uint32_t count, Visit visit) {
  const GranuleId id = table.id_of(start);
  meta::Hugepage* hugepage = table.hugepage_of(id);
  auto first = static_cast<std::uint32_t>(id.raw() % kGranulesPerHugepage);
  while (count != 0) {
    const std::uint32_t here = count < kGranulesPerHugepage - first ? count : kGranulesPerHugepage - first;
    visit(hugepage, bits_from(first, here));
    count -= here;
    first = 0;
    ++hugepage;
  }
}

}  // namespace

void PageHeap::attach(meta::GranuleTable& table) {
  table_ = &table;
  ranges_ = FreeRanges(table);
  dirty_whole_ = DirtyList(table, Hugepage::kDirtyWhole);
  dirty_parts_ = DirtyList(table, Hugepage::kDirtyPart);
  muzzy_ = DirtyList(table, Hugepage::kMuzzy);
}

// The end of what is known to be free behind a run that is to be placed there.
std::uint64_t PageHeap::free_end_of(const Place& place, GranuleCount count) {
  if (place.range == nullptr) return place.start + count.bytes();
  return place.range->address() + place.range->length * kHugepageBytes;
}

// Puts a hugepage into the list of the filler where it belongs now. One that is handed out or comes back as a whole is in
// none, before and after.
void PageHeap::refile(Hugepage* hugepage) {
  const unsigned node = hugepage->node - 1U;
  const bool before = hugepage->has(Hugepage::kListed);
  (hugepage->has(Hugepage::kTail) ? lists_of(node).tails : lists_of(node).used).update(hugepage);
  const bool after = hugepage->has(Hugepage::kListed);
  stats_.hugepages_partly_used += static_cast<std::size_t>(after) - static_cast<std::size_t>(before);
}

// Granules behind a run, up to `most`, that are free and not committed yet. Those before `free_end` are known to be free.
std::uint32_t PageHeap::uncommitted_behind(GranuleId end, GranuleId free_end, std::uint32_t most) {
  std::uint32_t found = 0;
  std::uint64_t in_range = 0;  // hugepages left of the free range that we are in
  for (std::uint64_t id = end.raw(); found < most && id < table_->covered();) {
    const Hugepage* hugepage = table_->hugepage_of(GranuleId(id));
    if (in_range == 0 && hugepage->state == Hugepage::State::kFree && id % kGranulesPerHugepage == 0) {
      in_range = hugepage->length;
    }
    std::uint32_t free = kAllBits;
    if (in_range == 0 && id >= free_end.raw()) free = hugepage->state == Hugepage::State::kUsed ? hugepage->free : 0;
    const auto first = static_cast<unsigned>(id % kGranulesPerHugepage);
    const auto here = static_cast<std::uint32_t>(std::countr_one((free & ~hugepage->committed) >> first));
    found += here;
    id += here;
    if (in_range != 0) --in_range;
    if (first + here != kGranulesPerHugepage) break;
  }
  return found < most ? found : most;
}

// Commits `wanted` granules from `start` on, or at least `needed`.
bool PageHeap::commit_stretch(std::uint64_t start, std::uint32_t needed, std::uint32_t wanted) {
  if (!os::calls.commit(start, GranuleCount(wanted).bytes())) {
    if (wanted == needed || !os::calls.commit(start, GranuleCount(needed).bytes())) return false;
    wanted = needed;
  }
  for_each_hugepage(*table_, start, wanted, [](Hugepage* h, std::uint32_t granules) { h->committed |= granules; });
  stats_.committed_bytes += GranuleCount(wanted).bytes();
  leave_out_of_cores(start, start + GranuleCount(wanted).bytes());
  return true;
}

// Makes the granules usable, and free ones behind them, up to `ahead` bytes, while at it: fewer, larger system calls.
bool PageHeap::commit(std::uint64_t start, GranuleCount count, std::uint64_t free_end, std::size_t ahead) {
  const GranuleId first = table_->id_of(start);
  const std::uint32_t all = count.raw();
  // The record behind the run's last one is that of the free range behind, unless the span ends there.
  const std::uint64_t cover = round_up(first.raw() + all, kGranulesPerHugepage) + kGranulesPerHugepage;
  if (!table_->cover(GranuleId(cover < table_->span() ? cover : table_->span()))) return false;
  if (BRIMFUL_UNLIKELY(config::hugetlb() != config::Hugetlb::kOff) && commit_from_pool(start, count)) return true;
  std::uint32_t from = 0;  // [from, at) is not committed
  std::uint32_t at = 0;
  std::uint32_t seen = 0;  // granules of the hugepages before
  bool done = true;
  const auto commit_pending = [&](std::uint32_t spare) {
    if (at != from && done) done = commit_stretch(start + GranuleCount(from).bytes(), at - from, at - from + spare);
  };
  for_each_hugepage(*table_, start, all, [&](Hugepage* hugepage, std::uint32_t granules) {
    const auto skipped = static_cast<unsigned>(std::countr_zero(granules));
    for_each_run(granules & ~hugepage->committed, [&](unsigned bit, unsigned length) {
      const std::uint32_t begin = seen + bit - skipped;
      if (begin != at) {  // committed ones in between
        commit_pending(0);
        from = begin;
      }
      at = begin + length;
    });
    seen += count_ones(granules);
  });
  std::uint32_t spare = 0;
  if (at == all && at != from) {
    spare =
        uncommitted_behind(first + all, table_->id_of(free_end), static_cast<std::uint32_t>(ahead >> kGranuleShift));
  }
  commit_pending(spare);
  return done;
}

std::uint64_t PageHeap::allocate(GranuleCount count, std::size_t alignment, unsigned node, ClassId size_class,
                                 Memory wanted) {
  Place place = find(count, alignment, node, wanted);
  if (place.start == 0) {
    const auto padded = GranuleCount::covering(count.bytes() + (alignment > kGranuleBytes ? alignment : 0));
    if (!add_window(padded)) return 0;
    place = find(count, alignment, node, wanted);
  }
  const std::uint64_t start = take(place, count, node, size_class);
  if (BRIMFUL_LIKELY(start != 0) || alignment > kGranuleBytes || count.raw() > kGranulesPerHugepage) return start;
  // The system makes no more memory usable (ulimit -d, vm.overcommit_memory=2): what is usable already must do.
  return take(find_committed(count), count, node, size_class);
}

std::uint64_t PageHeap::allocate_resident(GranuleCount count, unsigned node) {
  return count.raw() < kGranulesPerHugepage ? take(find_resident(count, node), count, node, kNoClass) : 0;
}

std::uint64_t PageHeap::allocate_for_metadata() {
  constexpr GranuleCount kOne(1);
  const std::uint64_t start = take(find(kOne, kGranuleBytes, 0), kOne, 0, kNoClass);
  return start != 0 ? start : take(find_committed(kOne), kOne, 0, kNoClass);  // as allocate()
}

// Asks for the policy of pages/backing.h, unless the heap is too small to have one.
void PageHeap::prepare_backing(const Place& place, GranuleCount count, ClassId size_class) {
  backing_.begin();
  if (BRIMFUL_LIKELY(stats_.used_bytes < backing_.asks_from())) return;
  const std::uint64_t id = table_->id_of(place.start).raw();
  std::uint64_t covered =
      table_->covered() > id ? table_->covered() - id : 0;  // beyond: never used, and without a record
  if (covered > count.raw()) covered = count.raw();
  bool is_clean = true;
  for_each_hugepage(
      *table_, place.start, static_cast<std::uint32_t>(covered),
      [&](Hugepage* hugepage, std::uint32_t granules) { is_clean = is_clean && (hugepage->dirty() & granules) == 0; });
  backing_.prepare({place.start, count.bytes(), free_end_of(place, count), stats_.used_bytes, size_class, is_clean});
}

std::uint64_t PageHeap::take(const Place& place, GranuleCount count, unsigned node, ClassId size_class) {
  if (place.start == 0) return 0;
  std::size_t step = stats_.committed_bytes / 8;
  if (step < kLeastStep) step = stats_.committed_bytes == 0 ? kFirstStep : kLeastStep;
  if (step > kMostStep) step = kMostStep;
  if (stats_.used_bytes >= kAskFrom) {
    if (is_strict()) step = kChargedStep;
    if (BRIMFUL_UNLIKELY(!are_named_)) name_all();
  }
  // Whole hugepages, because one that is not usable as a whole when it is touched first is made of small pages.
  const std::uint64_t end = place.start + count.bytes();
  if (step >= kHugepageBytes) step = round_up(end + step, kHugepageBytes) - end;
  prepare_backing(place, count, size_class);
  if (!commit(place.start, count, free_end_of(place, count), step)) return 0;
  carve(place, count, node);
  mind_the_peak();
  return place.start;
}

// The free hugepages that the run reaches into are in use from now on.
void PageHeap::open_hugepages(const Place& place, GranuleCount count, unsigned node) {
  Hugepage* first = nullptr;
  std::uint32_t opened = 0;
  for_each_hugepage(*table_, place.start, count.raw(), [&](Hugepage* hugepage, std::uint32_t /*granules*/) {
    if (hugepage->state == Hugepage::State::kUsed) return;
    if (first == nullptr) first = hugepage;
    ++opened;
  });
  if (opened == 0) return;
  ranges_.take(place.range, first, opened);
  stats_.hugepages_in_use += opened;
  used_nodes_ |= 1U << node;
  bool is_new = false;
  for (std::uint32_t i = 0; i < opened; ++i) {
    Hugepage& hugepage = first[i];
    hugepage.unset(Hugepage::kTail);
    if (hugepage.node != 0) --stats_.hugepages_free;
    is_new = is_new || hugepage.node != node + 1;
    hugepage.node = static_cast<std::uint8_t>(node + 1);
  }
  if (is_new) backing::on_new_hugepage(first->address(), opened, node);
  if (count.raw() > kGranulesPerHugepage) first[opened - 1].set(Hugepage::kTail);
}

void PageHeap::carve(const Place& place, GranuleCount count, unsigned node) {
  if (place.range != nullptr) open_hugepages(place, count, node);
  for_each_hugepage(*table_, place.start, count.raw(),
                    [this](Hugepage* hugepage, std::uint32_t granules) { hand_out(hugepage, granules); });
  stats_.used_bytes += count.bytes();
}

// The granules are the caller's from now on.
void PageHeap::hand_out(Hugepage* hugepage, std::uint32_t granules) {
  BRIMFUL_ASSERT((hugepage->free & granules) == granules);
  const std::uint32_t dirty = hugepage->dirty();
  const std::uint32_t given_back = granules & ~dirty & hugepage->used_once;
  if (dirty == 0 && backing_.is_advised(hugepage->address())) hugepage->set(Hugepage::kHuge);
  stats_.dirty_bytes -= bytes_in(granules & dirty);
  if (hugepage->has(Hugepage::kMuzzy)) stats_.muzzy_bytes -= bytes_in(granules & dirty);
  if (given_back != 0) {
    const auto now_ms = static_cast<std::uint32_t>(os::calls.now_ms());
    if (now_ms - hugepage->purged_ms < kRefaultMs) stats_.refaulted_bytes += bytes_in(given_back);
  }
  hugepage->free &= ~granules;
  hugepage->used_once |= granules;
  forget_clean(hugepage);
  if (granules != kAllBits) refile(hugepage);
}

// If handing out made a new peak of resident memory while other granules lie free and dirty (of the wrong length), those
// go back first, oldest first, unless they became free only just now.
void PageHeap::mind_the_peak() {
  const std::size_t resident = stats_.used_bytes + stats_.dirty_bytes;
  if (resident <= peak_bytes_) return;
  if (stats_.dirty_bytes == 0 || config::options.purge_delay_ms < 0) {
    peak_bytes_ = resident;
  } else if (resident - peak_bytes_ >= kPeakStep) {
    const std::uint64_t now_ms = os::calls.now_ms();
    std::size_t purged = 0;
    if (now_ms >= kPeakAgeMs) purged = purge(now_ms - kPeakAgeMs, resident - peak_bytes_, now_ms);
    if (resident - purged > peak_bytes_) peak_bytes_ = resident - purged;
  }
}

// Some granules of a hugepage are free again.
void PageHeap::take_back(Hugepage* hugepage, std::uint32_t granules, std::uint64_t now_ms) {
  BRIMFUL_ASSERT(hugepage->state == Hugepage::State::kUsed && (hugepage->free & granules) == 0);
  unmuzzy(hugepage);
  hugepage->free |= granules;
  hugepage->set_dirty(hugepage->dirty() | granules);
  if (BRIMFUL_UNLIKELY(hugepage->has(Hugepage::kHuge))) {  // and what nobody has touched is there with the rest
    const std::uint32_t untouched = hugepage->free & ~hugepage->dirty();
    hugepage->unset(Hugepage::kHuge);
    hugepage->set_dirty(hugepage->dirty() | untouched);
    stats_.dirty_bytes += bytes_in(untouched);
  }
  if (hugepage->has(Hugepage::kTail) && (granules & 1) != 0) {  // the long run that ended here is gone
    if (hugepage->has(Hugepage::kListed)) --stats_.hugepages_partly_used;
    lists_of(hugepage->node - 1U).tails.take_out(hugepage);
    hugepage->unset(Hugepage::kTail);
  }
  if (hugepage->free == kAllBits) hugepage->state = Hugepage::State::kFree;
  if (granules != kAllBits) refile(hugepage);
  note_dirty(hugepage, now_ms);
}

void PageHeap::free(std::uint64_t start, GranuleCount count, std::uint64_t now_ms) {
  backing_.forget(start);
  Hugepage* first = nullptr;
  std::uint32_t emptied = 0;
  for_each_hugepage(*table_, start, count.raw(), [&](Hugepage* hugepage, std::uint32_t granules) {
    take_back(hugepage, granules, now_ms);
    if (hugepage->state != Hugepage::State::kFree) return;
    if (first == nullptr) first = hugepage;
    ++emptied;
  });
  stats_.used_bytes -= count.bytes();
  stats_.dirty_bytes += count.bytes();
  if (emptied == 0) return;
  stats_.hugepages_in_use -= emptied;
  stats_.hugepages_free += emptied;
  ranges_.insert(first, emptied);
}

bool PageHeap::extend(std::uint64_t end, GranuleCount extra) {
  Place place = {end, nullptr};
  if (!is_free(end, extra, &place.range)) return false;
  prepare_backing(place, extra, kNoClass);
  if (!commit(end, extra, end + extra.bytes(), 0)) return false;
  const unsigned node = table_->hugepage_of(table_->id_of(end - kGranuleBytes))->node - 1U;
  carve(place, extra, node);
  mind_the_peak();
  return true;
}

void PageHeap::clear(std::uint64_t start, std::size_t bytes) {
  const std::uint64_t end = start + bytes;
  for_each_hugepage(*table_, start, GranuleCount::covering(bytes).raw(),
                    [&](Hugepage* hugepage, std::uint32_t granules) {
                      for_each_run(hugepage->dirty() & granules, [&](unsigned first, unsigned count) {
                        const std::uint64_t from = hugepage->address() + GranuleCount(first).bytes();
                        const std::uint64_t to = from + GranuleCount(count).bytes();
                        memset(reinterpret_cast<void*>(from), 0, (to < end ? to : end) - from);
                      });
                    });
}

bool PageHeap::was_used(std::uint64_t address) {
  bool inside = false;
  for (std::size_t i = 0; i < window_count_; ++i) inside = inside || address - windows_[i].start < windows_[i].bytes;
  const GranuleId id = table_->id_of(address);
  return inside && id.raw() < table_->covered() &&
         (table_->hugepage_of(id)->used_once >> id.raw() % kGranulesPerHugepage & 1) != 0;
}

}  // namespace brimful::pages
