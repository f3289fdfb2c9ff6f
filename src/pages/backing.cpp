// SPDX-License-Identifier: MIT
//
// pages/backing.h.
#include "pages/backing.h"

#include <bit>

#include "base/compiler.h"
#include "base/units.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/environment.h"
#include "pages/fault_costs.h"
#include "pages/pressure.h"

namespace brimful::pages {
namespace {

constexpr ClassId kBlock = 0xFF;
// Slabs up to here hold objects smaller than a page: whoever uses the slab touches all of it.
constexpr std::size_t kFilledSlab = std::size_t{128} << 10;
// Growth is counted from here on, so that there is something to judge by at kHugeFrom.
constexpr std::size_t kCountFrom = Backing::kHugeFrom / 2;
constexpr std::size_t kLeastGrowth = std::size_t{4} << 20;
// Of what the heap has asked for of late, this much must be filled for each byte that is not.
constexpr std::size_t kFilledToSparse = 12;
// An extent is 1/8 of the heap, within these bounds. What nobody touches of it costs nothing.
constexpr std::size_t kLeastExtent = std::size_t{8} << 20;
constexpr std::size_t kMostExtent = std::size_t{256} << 20;

// Where hugepages cost too much, one is tried for so much memory that would have been of them.
constexpr std::size_t kTryAgain = std::size_t{256} << 20;

// populate:auto
constexpr std::size_t kPopulateFrom = std::size_t{1} << 20;
constexpr std::size_t kMostPopulate = std::size_t{4} << 20;
constexpr std::uint32_t kOftenEnough = 16;

// Pages looked at before a kind is known, and when the past counts by half.
constexpr unsigned kLeastPages = 16;
constexpr unsigned kMostPages = 128;
// A kind that is known is looked at again now and then.
constexpr std::uint32_t kLookAgain = 8;

config::Thp thp() { return config::thp(); }

// The part of a run that anything can be in: the tail of a slab behind its last object is nobody's.
std::size_t usable_bytes(const Demand& demand) {
  if (demand.size_class == kBlock) return demand.bytes;
  const SizeClass& shape = kSizeClasses[demand.size_class];
  return std::size_t{shape.groups} * kGroupObjects * shape.bytes;
}

}  // namespace

void populate(MemoryRange range) {
  if (BRIMFUL_UNLIKELY(range.hugepage != 0)) touch_hugepage_and_measure(range.hugepage);
  if (BRIMFUL_UNLIKELY(range.sample != 0)) touch_and_measure(range.sample);
  if (BRIMFUL_LIKELY(range.bytes == 0)) return;
  const bool is_auto = config::populate() == config::Populate::kAuto;
  if (is_auto && fault_costs.is_due() ? populate_and_measure(range.start, range.bytes)
                                      : os::calls.advise(range.start, range.bytes, os::Advice::kPopulate)) {
    return;
  }
  // Kernels before 5.14 can't populate: what was asked for by name is touched instead.
  if (!is_auto) os::calls.touch(range.start, range.bytes);
}

std::size_t Backing::kind_of(ClassId size_class, std::size_t bytes) {
  if (size_class != kBlock) return size_class;
  const auto power = static_cast<std::size_t>(std::bit_width(bytes >> kGranuleShift));
  return kClassCount + (power < kBlockKinds ? power : kBlockKinds - 1);
}

// Programs touch at least `eighths` of 8 pages of such runs.
bool Backing::is_filled(std::size_t kind, std::size_t bytes, unsigned eighths) const {
  if (kind < kClassCount && bytes <= kFilledSlab) return true;
  const Kind& known = kinds_[kind];
  return known.pages >= kLeastPages && known.resident * 8U >= known.pages * eighths;
}

void Backing::add_window(std::uint64_t start, std::size_t bytes) {
  if (window_count_ == 0) {
    if (thp() != config::Thp::kAuto) state_ = State::kOff;
    const config::Populate level = config::populate();
    asks_from_ = state_ == State::kOff ? SIZE_MAX : kLookFrom;
    if (level == config::Populate::kAuto) asks_from_ = kPopulateFrom;
    if (level == config::Populate::kPartial || level == config::Populate::kAll) asks_from_ = 0;
  }
  if (window_count_ < kMaxWindows) windows_[window_count_++] = {start, bytes};
  if (thp() == config::Thp::kAlways && !os::is_overcommit_strict())
    os::calls.advise(start, bytes, os::Advice::kHugepage);
  if (thp() == config::Thp::kNever || state_ == State::kQuiet) {
    os::calls.advise(start, bytes, os::Advice::kNoHugepage);
  }
}

void Backing::look() {
  if (os::is_overcommit_strict()) {  // a hugepage would be charged as a whole
    state_ = State::kOff;
    return;
  }
  switch (os::calls.hugepage_mode()) {
    case os::HugepageMode::kNever:
      state_ = State::kOff;
      break;
    case os::HugepageMode::kMadvise:
      state_ = State::kReady;
      break;
    case os::HugepageMode::kAlways:
      quieten();
      break;
  }
}

void Backing::quieten() {
  for (std::size_t i = 0; i < window_count_; ++i) {
    os::calls.advise(windows_[i].start, windows_[i].bytes, os::Advice::kNoHugepage);
  }
  state_ = State::kQuiet;
}

void Backing::prepare(const Demand& demand) {
  const std::size_t kind = kind_of(demand.size_class, demand.bytes);
  if (demand.is_clean) ++kinds_[kind].fresh;
  const bool is_long = demand.is_clean && demand.bytes >= kHugepageBytes;
  if (is_long && kinds_[kind].pages < kMostPages / 4 && !is_filled(kind, demand.bytes, 6)) look_for_filled();
  plan_hugepages(demand, kind);
  if (!demand.is_clean) return;
  plan_populate(demand, kind);
  plan_probe(demand);
}

namespace {

// Runs of this length, one behind the other, leave at most an eighth of their hugepages over. What is left over comes
// with the hugepage all the same: redis with slabs of 18 granules in 32 held 43 MiB of it beside 56 live.
bool tiles_hugepages(std::size_t bytes) {
  const std::size_t left = bytes < kHugepageBytes ? kHugepageBytes % bytes : round_up(bytes, kHugepageBytes) - bytes;
  const std::size_t whole = bytes < kHugepageBytes ? kHugepageBytes : bytes + left;
  return left * 8 <= whole;
}

}  // namespace

void Backing::plan_hugepages(const Demand& demand, std::size_t kind) {
  if (state_ == State::kUnknown && demand.used_bytes >= kLookFrom) look();
  const bool tiles = tiles_hugepages(demand.bytes);
  const bool filled = is_filled(kind, demand.bytes, 6) && (tiles || demand.bytes > kHugepageBytes);
  const bool possible = state_ != State::kOff && demand.is_clean && demand.used_bytes >= kCountFrom;
  if (possible) count_fresh(demand, filled);
  if (!demand.is_clean) return;
  const std::uint64_t end = demand.start + demand.bytes;
  Demand wanted = demand;
  if (filled && !tiles) {  // small pages for what lies in the last hugepage
    wanted.free_end = round_down(end, kHugepageBytes);
    wanted.bytes = wanted.free_end - wanted.start;
    withdraw(wanted.free_end, end);
  }
  if (Extent* extent = extent_in(wanted.start, wanted.start + wanted.bytes)) {
    if (filled ? wanted.start + wanted.bytes <= extent->end : bears(*extent, demand)) return;
    if (!filled) withdraw(demand.start, end);
  }
  if (!is_filled(kind, demand.bytes, 8) || kind >= kClassCount) watch(demand.start, demand.bytes, kind);
  if (!filled || !possible || demand.used_bytes < kHugeFrom || under_pressure()) return;
  if (fresh_filled_ < kLeastGrowth || fresh_sparse_ * kFilledToSparse > fresh_filled_) return;
  note_costs();
  if (is_refused_) return try_one(wanted);
  std::size_t step = round_up(demand.used_bytes / 8, kHugepageBytes);
  if (step < kLeastExtent) step = kLeastExtent;
  add_extent(wanted, step > kMostExtent ? kMostExtent : step);
}

// Where hugepages turn out to cost more than they save, those that are not touched yet lose the advice.
void Backing::note_costs() {
  const bool pays = fault_costs.do_hugepages_pay();
  if (!pays && !is_refused_) {
    for (Extent& extent : extents_) cut(extent, extent.start);
  }
  is_refused_ = !pays;
}

// Hugepages are refused: one is asked for now and then, to see whether they still cost so much.
void Backing::try_one(const Demand& demand) {
  refused_bytes_ += demand.bytes;
  if (refused_bytes_ >= kTryAgain && add_extent(demand, kHugepageBytes)) refused_bytes_ = 0;
}

// The run that is handed out may hold the next hugepage to be measured.
void Backing::plan_probe(const Demand& demand) {
  // A hugepage that is touched to be measured is resident as a whole, whatever the program would have made of it. So a
  // small heap is not asked: a thousand sleeping threads held 41 KiB each in place of 26 when the first eight were.
  constexpr std::size_t kProbeFrom = std::size_t{128} << 20;
  constexpr std::uint32_t kProbeEvery = 8;
  // Small pages have a price of their own where they are not populated: of slabs that are filled by nature, shortly before
  // hugepages are asked for, and while they are.
  constexpr std::uint32_t kSampleEvery = 64;
  const bool is_small = demand.size_class != kBlock && demand.bytes <= kFilledSlab && populate_.bytes == 0;
  if (is_small && state_ != State::kOff && demand.used_bytes >= kCountFrom &&
      extent_in(demand.start, demand.start + demand.bytes) == nullptr) {
    if (samples_ < 2 * FaultCosts::kLeastValues || samples_ % kSampleEvery == 0) populate_.sample = demand.start;
    ++samples_;
  }
  if (state_ != State::kQuiet) return;
  note_costs();
  if (demand.used_bytes < kProbeFrom) return;
  if (demand.start + demand.bytes <= next_probe_) return;
  if (demand.start > next_probe_) next_probe_ = round_up(demand.start, kHugepageBytes);
  if (demand.start + demand.bytes <= next_probe_ || !is_advised(next_probe_)) return;
  populate_.hugepage = next_probe_;
  next_probe_ += kProbeEvery * kHugepageBytes;
}

void Backing::count_fresh(const Demand& demand, bool filled) {
  const std::size_t usable = filled ? usable_bytes(demand) : 0;
  fresh_filled_ += usable;
  // Blocks of whole hugepages keep the advice off themselves.
  if (filled || demand.bytes < kHugepageBytes) fresh_sparse_ += demand.bytes - usable;
  if (fresh_filled_ + fresh_sparse_ < demand.used_bytes / 2) return;
  fresh_filled_ /= 2;
  fresh_sparse_ /= 2;
}

// The last extent that holds a part of the range.
Backing::Extent* Backing::extent_in(std::uint64_t start, std::uint64_t end) {
  Extent* last = nullptr;
  if (state_ != State::kQuiet) return last;
  for (Extent& extent : extents_) {
    const bool meets = extent.start < end && start < extent.end;
    if (meets && (last == nullptr || last->end < extent.end)) last = &extent;
  }
  return last;
}

bool Backing::is_advised(std::uint64_t hugepage) {
  return config::thp() == config::Thp::kAlways || extent_in(hugepage, hugepage + kHugepageBytes) != nullptr;
}

// An extent bears runs that nobody may fill, if they are shorter than a hugepage and few.
bool Backing::bears(Extent& extent, const Demand& demand) {
  extent.sparse_bytes += demand.bytes;
  return demand.bytes < kHugepageBytes && extent.sparse_bytes * 8 < extent.end - extent.start;
}

// Takes the advice off the range, but for a hugepage that begins before it, and off what lies behind it in its extents.
void Backing::withdraw(std::uint64_t start, std::uint64_t end) {
  if (state_ != State::kQuiet) return;
  for (Extent& extent : extents_) {
    if (extent.start < end && start < extent.end) cut(extent, round_up(start, kHugepageBytes));
  }
}

// Takes the advice off what lies behind `end`.
void Backing::cut(Extent& extent, std::uint64_t end) {
  if (end < extent.start) end = extent.start;
  if (end >= extent.end) return;
  os::calls.advise(end, extent.end - end, os::Advice::kNoHugepage);
  extent.end = end;
}

// false: there is no room for a hugepage behind the run, or the system refuses.
bool Backing::add_extent(const Demand& demand, std::size_t bytes) {
  std::uint64_t begin = round_up(demand.start, kHugepageBytes);
  std::uint64_t end = round_up(demand.start + demand.bytes, kHugepageBytes);
  if (end < begin + bytes) end = begin + bytes;
  if (end > demand.free_end) end = round_down(demand.free_end, kHugepageBytes);
  if (const Extent* before = extent_in(begin, begin + kHugepageBytes)) begin = before->end;
  if (end <= begin) return false;
  if (state_ == State::kReady) quieten();
  Extent& oldest = extents_[next_extent_++ % kExtents];
  cut(oldest, oldest.start);
  oldest = {begin, begin, 0};
  if (!os::calls.advise(begin, end - begin, os::Advice::kHugepage)) return false;
  oldest.end = end;
  return true;
}

void Backing::plan_populate(const Demand& demand, std::size_t kind) {
  const config::Populate level = config::populate();
  if (level == config::Populate::kOff || under_pressure()) return;
  if (level == config::Populate::kPartial && demand.size_class == kBlock) return;
  if (level == config::Populate::kAuto) {
    if (demand.used_bytes < kPopulateFrom || demand.bytes > kMostPopulate) return;
    if (kinds_[kind].fresh <= kOftenEnough || !is_filled(kind, demand.bytes, 7)) return;
    if (extent_in(demand.start, demand.start + demand.bytes) != nullptr) return;  // one fault does for 2 MiB
    // Where faults are cheaper, a range now and then is to tell whether they still are.
    if (!fault_costs.does_populate_pay() && kinds_[kind].fresh % kLookAgain != 0) return;
  }
  populate_ = {demand.start, round_up(usable_bytes(demand), os::page_bytes())};
}

MemoryRange Backing::take_populate() {
  const MemoryRange range = populate_;
  begin();
  populated_bytes_ += range.bytes;
  return range;
}

void Backing::prepare_mapping(std::uint64_t start, std::size_t bytes) {
  if (state_ == State::kUnknown) look();
  if (state_ != State::kReady && state_ != State::kQuiet) return;
  const std::size_t kind = kind_of(kBlock, bytes);
  ++kinds_[kind].fresh;
  if (is_filled(kind, bytes, 6) && !under_pressure() && fault_costs.do_hugepages_pay()) {
    os::calls.advise(start, bytes, os::Advice::kHugepage);
    return;
  }
  if (os::calls.hugepage_mode() == os::HugepageMode::kAlways) {
    os::calls.advise(start, bytes, os::Advice::kNoHugepage);
  }
  watch(start, bytes, kind);
}

void Backing::watch(std::uint64_t start, std::size_t bytes, std::size_t kind) {
  if (kinds_[kind].pages >= kMostPages / 2 && kinds_[kind].fresh % kLookAgain != 0) return;
  Watched& entry = watch_list_[next_watched_++ % kWatched];
  if (entry.bytes != 0) {
    look_at(entry);
  } else {
    ++watched_;
  }
  entry = {start, bytes, kind};
}

// One of the run's pages. Drawn by a generator of Knuth's: pages at equal distances are alike.
bool Backing::is_resident_at_random(const Watched& run) {
  random_ = random_ * 6364136223846793005U + 1442695040888963407U;
  const std::uint64_t page = (random_ >> 33) % (run.bytes / os::page_bytes());
  return os::calls.is_resident(run.start + page * os::page_bytes());
}

void Backing::count_looks(const Watched& run, unsigned pages, unsigned resident) {
  Kind& kind = kinds_[run.kind];
  const bool filled_before = is_filled(run.kind, run.bytes, 6);
  kind.pages = static_cast<std::uint16_t>(kind.pages + pages);
  kind.resident = static_cast<std::uint16_t>(kind.resident + resident);
  if (kind.pages >= kMostPages) {
    kind.pages /= 2;
    kind.resident /= 2;
  }
  // What was counted against this kind was counted in ignorance.
  if (!filled_before && is_filled(run.kind, run.bytes, 6)) fresh_sparse_ = 0;
}

void Backing::look_at(const Watched& run) {
  const unsigned pages = run.bytes >= kHugepageBytes ? 8 : 4;
  unsigned resident = 0;
  for (unsigned i = 0; i < pages; ++i) resident += is_resident_at_random(run) ? 1 : 0;
  count_looks(run, pages, resident);
}

// Blocks of whole hugepages that are filled already: one of them says enough about its kind. What is half filled passes
// in 1 of 65,536 cases.
void Backing::look_for_filled() {
  for (Watched& entry : watch_list_) {
    if (entry.bytes < kHugepageBytes) continue;
    unsigned resident = 0;
    while (resident < kLeastPages && is_resident_at_random(entry)) ++resident;
    if (resident < kLeastPages) continue;
    count_looks(entry, kLeastPages, resident);
    entry = {};
    --watched_;
  }
}

void Backing::look_at_freed(std::uint64_t start) {
  for (Watched& entry : watch_list_) {
    if (entry.bytes == 0 || entry.start != start) continue;
    look_at(entry);
    entry = {};
    --watched_;
  }
}

void Backing::purge(std::uint64_t start, std::size_t bytes) {
  if (state_ != State::kQuiet) return;
  for (Extent& extent : extents_) {
    if (extent.start < start + bytes && start < extent.end) cut(extent, extent.start);
  }
}

BackingStats Backing::stats() const {
  BackingStats result = {0, populated_bytes_, is_refused_};
  for (const Extent& extent : extents_) result.advised_bytes += extent.end - extent.start;
  return result;
}

}  // namespace brimful::pages
