// SPDX-License-Identifier: MIT
//
// Runs of granules: allocation, joining, commit and purge (pages/page_heap.h).
//
// A run's header is allocated before anything changes, so that a failing metadata arena fails the call and loses
// nothing. free() can't fail: it reuses a neighbour's header, and where there is none and the arena is empty as well, the
// memory goes back to the system and only the addresses are lost.
#include "pages/page_heap.h"

#include <string.h>

#include "base/compiler.h"
#include "config/options.h"
#include "os/calls.h"

namespace brimful::pages {
namespace {

// How far to commit ahead of a request while the heap grows: 1/8 of what is committed, within these bounds.
constexpr std::size_t kLeastStep = std::size_t{256} << 10;
constexpr std::size_t kMostStep = std::size_t{32} << 20;

// How far a peak may grow while dirty memory lies free, before as much of that is given back.
constexpr std::size_t kPeakStep = std::size_t{512} << 10;
// Younger dirty memory is likely to be asked for again at once.
constexpr std::uint64_t kPeakAgeMs = 20;

}  // namespace

void PageHeap::attach(Run* run) {
  table_.set(table_.id_of(run->start), run);
  const GranuleId last = table_.id_of(run->start + run->granules.bytes() - kGranuleBytes);
  if (last.raw() < table_.covered()) table_.set(last, run);  // a window's untouched tail ends beyond the table
  free_.insert(run);
  if (run->dirty) dirty_.push_back(run);
}

void PageHeap::detach(Run* run) {
  table_.clear(table_.id_of(run->start));
  const GranuleId last = table_.id_of(run->start + run->granules.bytes() - kGranuleBytes);
  if (last.raw() < table_.covered()) table_.clear(last);
  free_.remove(run);
  if (run->dirty) dirty_.remove(run);
}

// Makes [start, start + count) a free run of its own, joined with free neighbours.
bool PageHeap::make_free(std::uint64_t start, GranuleCount count, bool dirty, std::uint64_t stamp_ms) {
  const GranuleId first = table_.id_of(start);
  Run* spare = nullptr;
  const auto join = [&](Run* neighbour) {
    detach(neighbour);
    if (neighbour->start < start) start = neighbour->start;
    count = count + neighbour->granules;
    if (neighbour->dirty) {
      stamp_ms = dirty && stamp_ms < neighbour->stamp_ms ? stamp_ms : neighbour->stamp_ms;
      dirty = true;
    }
    if (spare != nullptr) arena_.free(spare, sizeof(Run));
    spare = neighbour;
  };
  const std::uint64_t end = start + count.bytes();
  if (first.raw() != 0) {
    Header* before = table_.get(GranuleId(first.raw() - 1));
    if (before->kind == Kind::kFree) join(static_cast<Run*>(before));
  }
  Header* after = table_.look_up(end);
  if (after->kind == Kind::kFree && after->start == end) join(static_cast<Run*>(after));
  if (spare == nullptr) spare = static_cast<Run*>(arena_.allocate(sizeof(Run)));
  if (spare == nullptr) return false;
  spare->start = start;
  spare->multiplier = 1;
  spare->count = 0;
  spare->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: guarded by the heap lock
  spare->kind = Kind::kFree;
  spare->size_class = kNoClass;
  spare->granules = count;
  spare->dirty = dirty;
  spare->stamp_ms = stamp_ms;
  attach(spare);
  return true;
}

Run* PageHeap::find(GranuleCount count, std::size_t alignment) {
  Run* run = free_.lower_bound([count](const Run& r) { return r.granules >= count; });
  if (run == nullptr || alignment <= kGranuleBytes) return run;
  const std::uint64_t aligned = round_up(run->start, alignment);
  if (aligned + count.bytes() <= run->start + run->granules.bytes()) return run;
  const auto padded = GranuleCount::covering(count.bytes() + alignment - kGranuleBytes);
  return free_.lower_bound([padded](const Run& r) { return r.granules >= padded; });
}

// A header for the rest behind a piece that is cut from the middle of a run. It is taken before any run is chosen, because
// the arena may itself take memory from a run (allocate_for_metadata), and then a pointer to one means something else.
void PageHeap::prepare_header() {
  if (spare_header_ == nullptr) spare_header_ = static_cast<Run*>(arena_.allocate(sizeof(Run)));
}

// Cuts [start, start + count) out of `run`; what is left in front and behind stays free.
bool PageHeap::carve(Run* run, std::uint64_t start, GranuleCount count) {
  const std::uint64_t run_end = run->start + run->granules.bytes();
  const std::uint64_t end = start + count.bytes();
  Run* tail = nullptr;
  if (start != run->start && end != run_end) {
    tail = spare_header_;
    if (tail == nullptr) return false;
    spare_header_ = nullptr;
  }
  detach(run);
  if (tail != nullptr) {
    memcpy(static_cast<void*>(tail), static_cast<const void*>(run), sizeof(Run));
    tail->start = end;
    tail->granules = GranuleCount::covering(run_end - end);
    attach(tail);
  }
  if (start != run->start) {
    run->granules = GranuleCount::covering(start - run->start);
  } else {
    run->start = end;
    run->granules = GranuleCount::covering(run_end - end);
  }
  if (run->granules.raw() != 0) {
    attach(run);
  } else {
    run->kind = Kind::kNone;
    arena_.free(run, sizeof(Run));
  }
  return true;
}

// Makes the granules usable, and up to `spare` free ones behind them while at it: fewer, larger system calls.
bool PageHeap::commit(std::uint64_t start, GranuleCount count, GranuleCount spare) {
  const GranuleId first = table_.id_of(start);
  // One granule more, for the entry of the free run behind; but never past the table's span.
  const std::uint64_t cover = first.raw() + count.raw() + spare.raw() + 1;
  if (!table_.cover(GranuleId(cover < table_.span() ? cover : table_.span()))) return false;
  for (std::uint32_t i = 0; i < count.raw();) {
    if ((table_.flags(first + i) & meta::GranuleTable::kCommitted) != 0) {
      ++i;
      continue;
    }
    std::uint32_t end = i;
    while (end < count.raw() && (table_.flags(first + end) & meta::GranuleTable::kCommitted) == 0) ++end;
    const std::uint32_t needed = end;
    if (end == count.raw()) {
      const std::uint32_t most = count.raw() + spare.raw();
      while (end < most && (table_.flags(first + end) & meta::GranuleTable::kCommitted) == 0) ++end;
    }
    const std::uint64_t from = start + GranuleCount(i).bytes();
    if (!os::calls.commit(from, GranuleCount(end - i).bytes())) {
      end = needed;
      if (!os::calls.commit(from, GranuleCount(end - i).bytes())) return false;
    }
    for (std::uint32_t g = i; g < end; ++g) table_.flags(first + g) |= meta::GranuleTable::kCommitted;
    stats_.committed_bytes += GranuleCount(end - i).bytes();
    i = end;
  }
  return true;
}

std::uint64_t PageHeap::allocate(GranuleCount count, std::size_t alignment, ClassId size_class) {
  prepare_header();
  Run* run = find(count, alignment);
  if (run == nullptr) {
    const auto padded = GranuleCount::covering(count.bytes() + (alignment > kGranuleBytes ? alignment : 0));
    if (!add_window(padded)) return 0;
    run = find(count, alignment);
    if (run == nullptr) return 0;
  }
  return take(run, count, alignment, size_class);
}

// The front of a run is cut off without a new header.
std::uint64_t PageHeap::allocate_for_metadata() {
  Run* run = find(GranuleCount(1), kGranuleBytes);
  return run != nullptr ? take(run, GranuleCount(1), kGranuleBytes, kNoClass) : 0;
}

// Asks for the policy of pages/backing.h, unless the heap is too small to have one.
void PageHeap::prepare_backing(std::uint64_t start, GranuleCount count, std::uint64_t free_end, ClassId size_class) {
  backing_.begin();
  if (BRIMFUL_LIKELY(stats_.used_bytes < backing_.asks_from())) return;
  bool is_clean = true;
  const GranuleId first = table_.id_of(start);
  for (std::uint32_t i = 0; i < count.raw() && is_clean; ++i) {
    if (first.raw() + i >= table_.covered()) break;  // beyond: never used
    is_clean = (table_.flags(first + i) & meta::GranuleTable::kDirty) == 0;
  }
  backing_.prepare({start, count.bytes(), free_end, stats_.used_bytes, size_class, is_clean});
}

std::uint64_t PageHeap::take(Run* run, GranuleCount count, std::size_t alignment, ClassId size_class) {
  const std::uint64_t start = round_up(run->start, alignment > kGranuleBytes ? alignment : kGranuleBytes);
  const std::uint64_t behind = run->start + run->granules.bytes() - start - count.bytes();
  std::size_t step = stats_.committed_bytes / 8;
  if (step < kLeastStep) step = kLeastStep;
  if (step > kMostStep || strict_overcommit_) step = strict_overcommit_ ? kLeastStep : kMostStep;
  // Whole hugepages, because one that is not usable as a whole when it is touched first is made of small pages.
  const std::uint64_t end = start + count.bytes();
  if (step >= kHugepageBytes) step = round_up(end + step, kHugepageBytes) - end;
  const auto spare = GranuleCount::covering(behind < step ? behind : step);
  prepare_backing(start, count, end + behind, size_class);
  if (!commit(start, count, spare) || !carve(run, start, count)) return 0;
  hand_out(start, count);
  return start;
}

// The granules are the caller's from now on. If that makes a new peak of resident memory while other granules lie free
// and dirty (of the wrong length), those go back first, oldest first, unless they became free only just now.
void PageHeap::hand_out(std::uint64_t start, GranuleCount count) {
  const GranuleId first = table_.id_of(start);
  for (std::uint32_t i = 0; i < count.raw(); ++i) {
    std::uint8_t& flags = table_.flags(first + i);
    if ((flags & meta::GranuleTable::kDirty) != 0) stats_.dirty_bytes -= kGranuleBytes;
    flags |= meta::GranuleTable::kUsed;
  }
  stats_.used_bytes += count.bytes();
  const std::size_t resident = stats_.used_bytes + stats_.dirty_bytes;
  if (resident <= peak_bytes_) return;
  if (stats_.dirty_bytes == 0 || config::options.purge_delay_ms < 0) {
    peak_bytes_ = resident;
  } else if (resident - peak_bytes_ >= kPeakStep) {
    const std::uint64_t now_ms = os::calls.now_ms();
    const Run* oldest = dirty_.front();
    std::size_t purged = 0;
    if (oldest != nullptr && oldest->stamp_ms + kPeakAgeMs <= now_ms) {
      purged = purge(now_ms - kPeakAgeMs, resident - peak_bytes_, now_ms);
    }
    if (resident - purged > peak_bytes_) peak_bytes_ = resident - purged;
  }
}

void PageHeap::free(std::uint64_t start, GranuleCount count, std::uint64_t now_ms) {
  const GranuleId first = table_.id_of(start);
  backing_.forget(start);
  for (std::uint32_t i = 0; i < count.raw(); ++i) table_.flags(first + i) |= meta::GranuleTable::kDirty;
  stats_.used_bytes -= count.bytes();
  stats_.dirty_bytes += count.bytes();
  if (!make_free(start, count, true, now_ms)) {
    // No header to be had: give the memory back and keep the address range out of use. Only a process that can't map
    // 64 KiB of metadata gets here, and it loses address space, not memory.
    purge_range(start, count.bytes());
  }
}

bool PageHeap::extend(std::uint64_t end, GranuleCount extra) {
  prepare_header();
  Header* after = table_.look_up(end);
  if (after->kind != Kind::kFree || after->start != end) return false;
  auto* run = static_cast<Run*>(after);
  if (run->granules < extra) return false;
  if (!commit(end, extra, GranuleCount(0)) || !carve(run, end, extra)) return false;
  hand_out(end, extra);
  return true;
}

void PageHeap::clear(std::uint64_t start, std::size_t bytes) {
  const std::uint64_t end = start + bytes;
  for (std::uint64_t at = start; at < end;) {
    const std::uint64_t granule_end = round_down(at, kGranuleBytes) + kGranuleBytes;
    const std::uint64_t stop = granule_end < end ? granule_end : end;
    if ((table_.flags(table_.id_of(at)) & meta::GranuleTable::kDirty) != 0) {
      memset(reinterpret_cast<void*>(at), 0, stop - at);
    }
    at = stop;
  }
}

bool PageHeap::purge_range(std::uint64_t start, std::size_t bytes) {
  backing_.purge(start, bytes);
  const bool given_back = strict_overcommit_ ? os::calls.decommit(start, bytes) : os::calls.purge(start, bytes);
  if (!given_back) return false;
  for (std::size_t offset = 0; offset < bytes; offset += kGranuleBytes) {
    std::uint8_t& flags = table_.flags(table_.id_of(start + offset));
    flags = static_cast<std::uint8_t>(flags & ~meta::GranuleTable::kDirty);
    if (strict_overcommit_) flags = static_cast<std::uint8_t>(flags & ~meta::GranuleTable::kCommitted);
  }
  stats_.dirty_bytes -= bytes;
  if (strict_overcommit_) stats_.committed_bytes -= bytes;
  return true;
}

// Gives dirty granules of a free run back, at most about `budget` bytes, one system call per dirty stretch.
std::size_t PageHeap::purge_run(Run* run, std::size_t budget) {
  std::size_t purged = 0;
  bool all = true;
  std::uint64_t end = run->start + run->granules.bytes();
  const std::uint64_t covered = table_.covered() - table_.id_of(run->start).raw();
  if (covered < run->granules.raw()) end = run->start + (covered << kGranuleShift);  // beyond: never used
  for (std::uint64_t at = run->start; at < end;) {
    if (purged >= budget) {
      all = false;
      break;
    }
    std::uint64_t stop = at;
    while (stop < end && stop - at + purged < budget &&
           (table_.flags(table_.id_of(stop)) & meta::GranuleTable::kDirty) != 0) {
      stop += kGranuleBytes;
    }
    if (stop != at) {
      if (purge_range(at, stop - at)) {
        purged += stop - at;
      } else {
        all = false;
      }
      at = stop;
    } else {
      at += kGranuleBytes;
    }
  }
  dirty_.remove(run);
  run->dirty = !all;
  return purged;
}

std::size_t PageHeap::purge(std::uint64_t cutoff_ms, std::size_t budget, std::uint64_t now_ms) {
  std::size_t purged = 0;
  List<Run> kept;
  while (purged < budget) {
    Run* run = dirty_.front();
    if (run == nullptr) break;
    if (run->stamp_ms > cutoff_ms) {
      dirty_.remove(run);
      kept.push_back(run);
      continue;
    }
    purged += purge_run(run, budget - purged);
    if (run->dirty) {
      if (purged < budget) run->stamp_ms = now_ms;  // locked in memory (mlock): try again after another delay
      kept.push_back(run);
    }
  }
  while (Run* run = kept.pop_front()) dirty_.push_back(run);
  return purged;
}

bool PageHeap::was_used(std::uint64_t address) {
  bool inside = false;
  for (std::size_t i = 0; i < window_count_; ++i) inside = inside || address - windows_[i].start < windows_[i].bytes;
  const GranuleId id = table_.id_of(address);
  return inside && id.raw() < table_.covered() && (table_.flags(id) & meta::GranuleTable::kUsed) != 0;
}

}  // namespace brimful::pages
