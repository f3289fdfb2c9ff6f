// SPDX-License-Identifier: MIT
//
// Windows: where the page heap's address space comes from. A window may lie anywhere whose granule numbers, modulo the
// table's span, continue those of the windows before it, so that one mask serves free() for all of them. That leaves the
// kernel's choice of the region (ASLR) and a start that is random within 16 MiB.
//
// Rejected, with a measurement in docs/design/0002: a small window with a two-level table (one load more on each free).
#include "arch/layout.h"
#include "classes/size_classes.h"
#include "config/options.h"
#include "meta/live_map.h"
#include "os/calls.h"
#include "os/environment.h"
#include "os/report.h"
#include "pages/page_heap.h"

namespace brimful::pages {
namespace {

constexpr std::size_t kDefaultReserve = std::size_t{32} << 30;
constexpr std::size_t kLeastWindow = kHugepageBytes;  // windows begin and end with a hugepage
constexpr int kPlacesToTry = 24;

// Further than this behind a slab's start no address is a number of one of its objects, whatever the class. The table,
// which repeats itself where it ends, must not lead from a nearer one to the slab, or malloc_usable_size() of a block that
// is mapped there would answer with the slab's size (free() and realloc() find out by the owner, or by the words). The
// length of a large window sees to it; around a small one the table is made as long.
constexpr std::uint64_t kReach = std::uint64_t{BRIMFUL_MAX_OBJECTS} * kMaxClassBytes;
constexpr std::uint64_t kLeastSpan = kReach >> kGranuleShift;

// Address space for one more window: all we want, or, under RLIMIT_AS, half of what is `left`, so that the program's own
// mappings and our metadata find room.
std::size_t window_bytes_wanted(std::size_t least, std::size_t left) {
  std::size_t wanted =
      config::options.reserve > 0 ? static_cast<std::size_t>(config::options.reserve) : kDefaultReserve;
  if (left != SIZE_MAX && wanted > left / 2) wanted = left / 2;
  wanted = round_down(wanted, kLeastWindow);
  return wanted > least ? wanted : least;
}

// About where the kernel would map something now: where it put the dynamic linker, or, without one, where it puts something.
std::uint64_t where_the_kernel_maps() {
  if (const std::uint64_t linker = os::dynamic_linker()) return linker;
  void* probe = os::calls.map(0, kGranuleBytes, os::Access::kNone);
  if (probe != nullptr) os::calls.unmap(reinterpret_cast<std::uintptr_t>(probe), kGranuleBytes);
  return reinterpret_cast<std::uintptr_t>(probe);
}

// Whether there is room for `bytes` anywhere.
bool has_room(std::size_t bytes) {
  void* probe = os::calls.map(0, bytes, os::Access::kNone);
  if (probe != nullptr) os::calls.unmap(reinterpret_cast<std::uintptr_t>(probe), bytes);
  return probe != nullptr;
}

// Maps `bytes` at an address that is `image` modulo `modulus`, near the kernel's own choice: below it, where Linux has
// room, else above (emulators that hand addresses out upwards). 0 on failure. Where one place is refused it is asked whether
// it was the place: a system that has no room refuses all 48 of them, for each of the sizes and spans that are tried, and
// for each malloc.
std::uint64_t map_congruent(std::size_t bytes, std::uint64_t image, std::uint64_t modulus) {
  const std::uint64_t near = where_the_kernel_maps();
  if (near == 0) return 0;
  const std::uint64_t most = near + kGranuleBytes > bytes + image ? near + kGranuleBytes - bytes - image : 0;
  std::uint64_t below = round_down(most, modulus) + image;
  std::uint64_t above = round_up(near, modulus) + image;
  for (int i = 0; i < kPlacesToTry && below >= modulus; ++i, below -= modulus) {
    if (os::calls.map(below, bytes, os::Access::kNone) != nullptr) return below;
    if (i == 0 && !has_room(bytes)) return 0;
  }
  for (int i = 0; i < kPlacesToTry; ++i, above += modulus) {
    if (os::calls.map(above, bytes, os::Access::kNone) != nullptr) return above;
  }
  return 0;
}

}  // namespace

ExhaustionHook exhaustion_hook = nullptr;

void PageHeap::remember_window(std::uint64_t start, std::size_t bytes) {
  windows_[window_count_++] = {.start = start, .bytes = bytes};
  next_image_ += bytes >> kGranuleShift;
  stats_.reserved_bytes += bytes;
}

// Where a window of `bytes` goes, mapped; 0 when there is no such place. The very first window also settles the table's
// span: as large as the address space has a place for, of which `limit` bytes are left.
std::uint64_t PageHeap::map_window(std::size_t bytes, std::size_t limit) {
  if (table_->span() != 0) return map_congruent(bytes, next_image_ << kGranuleShift, table_->span() << kGranuleShift);
  std::uint64_t span = meta::GranuleTable::kMaxGranules;
  while (limit != SIZE_MAX && span > 4096 && (span << kGranuleShift) > 4 * limit) span /= 2;
  for (; (span << kGranuleShift) >= bytes && span >= kLeastSpan; span /= 4) {
    const std::uint64_t start = map_congruent(bytes, 0, span << kGranuleShift);
    if (start == 0) continue;
    if (table_->reserve(span)) return start;
    os::calls.unmap(start, bytes);
    return 0;
  }
  return 0;
}

// Makes all but the first `skipped` granules of a new window free: the rest of the hugepage that they end in is the
// filler's, the hugepages behind are one range. Those in front are left out.
bool PageHeap::open_window(std::uint64_t start, std::size_t bytes, std::uint32_t skipped) {
  const std::uint32_t hugepages_skipped = skipped / meta::kGranulesPerHugepage;
  const std::uint32_t guards = skipped % meta::kGranulesPerHugepage;
  std::uint64_t end = next_image_ + (hugepages_skipped + 2) * std::uint64_t{meta::kGranulesPerHugepage};
  if (bytes < 2 * kReach && end < kLeastSpan) end = kLeastSpan;
  if (!table_->cover(GranuleId(end < table_->span() ? end : table_->span()))) return false;
  Hugepage* first = table_->hugepage_of(table_->id_of(start)) + hugepages_skipped;
  const auto number = static_cast<std::uint32_t>(start >> meta::kHugepageShift) + hugepages_skipped;
  first->state = Hugepage::State::kUsed;
  first->start = number;
  first->node = 1;
  first->free = guards != 0 ? ~bits_from(0, guards) : 0;
  refile(first);
  ++stats_.hugepages_in_use;
  const auto behind = static_cast<std::uint32_t>(bytes / kHugepageBytes) - hugepages_skipped - 1;
  if (behind != 0) {
    first[1].start = number + 1;
    ranges_.insert(first + 1, behind);
  }
  return true;
}

bool PageHeap::place_window(std::size_t bytes, std::size_t limit) {
  if (window_count_ == kMaxWindows) return false;
  const std::uint64_t start = map_window(bytes, limit);
  if (start == 0) return false;
  if (config::is_hardened() && !meta::live_map.add_window(start, bytes)) {
    os::calls.unmap(start, bytes);
    return false;
  }
  const bool first = window_count_ == 0;
  // A window's first granule stays unused, so that runs of two windows never touch; a large first window begins at a
  // random one.
  const bool roomy = first && bytes >= (std::size_t{1} << 30);
  const auto skipped = static_cast<std::uint32_t>(1 + (roomy ? os::process_random() % 255 : 0));
  if (!open_window(start, bytes, skipped)) {
    if (config::is_hardened()) meta::live_map.remove_last_window();
    os::calls.unmap(start, bytes);
    return false;
  }
  if (first) most_bytes_ = bytes / 8;
  backing_.add_window(start, bytes);
  remember_window(start, bytes);
  are_named_ = false;
  return true;
}

void PageHeap::name_all() {
  table_->name();
  for (std::size_t i = 0; i < window_count_; ++i) os::calls.name(windows_[i].start, windows_[i].bytes, "brimful heap");
  are_named_ = true;
}

// [start, end) was committed. The kernel's own core files leave holes for what was never touched; gdb's gcore writes it out
// (before gdb 15, which makes holes, too): 32 GiB for the least program. So what lies behind a window's memory in use is
// marked (MADV_DONTDUMP, which both heed), and what is committed there later is marked back. A small heap is committed
// once, so a program's start makes no call more.
void PageHeap::leave_out_of_cores(std::uint64_t start, std::uint64_t end) {
  Window* window = windows_;
  while (start - window->start >= window->bytes) ++window;
  if (window->dumped_end == 0) {
    window->dumped_end = end;
  } else if (!window->is_left_out) {
    if (window->dumped_end < end) window->dumped_end = end;
    const std::uint64_t rest = window->start + window->bytes - window->dumped_end;
    window->is_left_out = rest != 0 && os::calls.advise(window->dumped_end, rest, os::Advice::kNoDump);
  } else if (end > window->dumped_end) {
    os::calls.advise(start, end - start, os::Advice::kDump);
  }
}

bool PageHeap::add_window(GranuleCount least) {
  if (window_count_ != 0) {
    switch (config::on_exhaustion()) {
      case config::Exhaustion::kGrow:
        break;
      case config::Exhaustion::kNull:
        return false;
      case config::Exhaustion::kHook:
        if (exhaustion_hook == nullptr || !exhaustion_hook(least.bytes())) return false;
        break;
      case config::Exhaustion::kAbort:
        os::report_and_abort(Line() << "out of memory: the reserve of " << stats_.reserved_bytes
                                    << " bytes is used up, a request for " << least.bytes()
                                    << " more came, and on_exhaustion is abort");
    }
  }
  const std::size_t needed = round_up(least.bytes() + 2 * kGranuleBytes, kLeastWindow);
  const std::size_t limit = os::address_space_left();
  for (std::size_t bytes = window_bytes_wanted(needed, limit); bytes >= needed;
       bytes = round_down(bytes / 2, kLeastWindow)) {
    if (place_window(bytes, limit)) return true;
  }
  return false;
}

}  // namespace brimful::pages
