// SPDX-License-Identifier: MIT
//
// glibc's windows into the allocator, answered with what they can truthfully say of this one: mallinfo, mallinfo2,
// malloc_info, malloc_stats, malloc_trim, mallopt. Sources: glibc manual "Statistics for Memory Allocation with malloc",
// mallinfo(3), malloc_info(3), mallopt(3).
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "config/build.h"
#include "config/options.h"
#include "stats/snapshot.h"

namespace {

using brimful::kClassCount;
using brimful::kSizeClasses;
using brimful::stats::Snapshot;

Snapshot snapshot() {
  Snapshot result;
  brimful::stats::take_snapshot(result);
  return result;
}

int saturated(std::size_t value) { return value > INT_MAX ? INT_MAX : static_cast<int>(value); }

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

// arena: bytes that blocks in windows can use now; ordblks: free objects and runs; hblks, hblkhd: blocks mapped on their
// own; uordblks: live bytes; fordblks: free bytes that are still ours; keepcost: what malloc_trim could give back.
struct mallinfo2 mallinfo2() noexcept {
  const Snapshot now = snapshot();
  struct mallinfo2 info = {};
  std::size_t free_objects = 0;
  for (const auto& use : now.classes) free_objects += use.free;
  info.arena = now.committed_bytes;
  info.ordblks = free_objects;
  info.hblks = now.huge_blocks;
  info.hblkhd = now.huge_bytes;
  info.uordblks = now.live_bytes - now.huge_bytes;
  info.fordblks = now.slab_free_bytes + now.dirty_bytes;
  info.keepcost = now.dirty_bytes;
  return info;
}

struct mallinfo __libc_mallinfo() noexcept {
  const struct mallinfo2 wide = mallinfo2();
  struct mallinfo info = {};
  info.arena = saturated(wide.arena);
  info.ordblks = saturated(wide.ordblks);
  info.hblks = saturated(wide.hblks);
  info.hblkhd = saturated(wide.hblkhd);
  info.uordblks = saturated(wide.uordblks);
  info.fordblks = saturated(wide.fordblks);
  info.keepcost = saturated(wide.keepcost);
  return info;
}

// glibc's elements and attributes in glibc's order, to the letter: most of what reads them are regular expressions and lines
// counted from the end. `current` less what is free is what is in use, so it holds metadata, too; `max` is what was in use
// at one time or another. What glibc has no element for is in one of our own.
int malloc_info(int options, FILE* stream) noexcept {
  if (options != 0) {
    errno = EINVAL;
    return -1;
  }
  const Snapshot now = snapshot();
  // Free objects can be had at once, as glibc's fast bins; free runs are counted by granules.
  const std::uint64_t current =
      now.live_bytes - now.huge_bytes + now.slab_free_bytes + now.dirty_bytes + now.metadata_bytes;
  const std::uint64_t most = current > now.committed_bytes ? current : now.committed_bytes;
  std::uint64_t free_objects = 0;
  for (const auto& use : now.classes) free_objects += use.free;
  fprintf(stream, "<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
  for (std::size_t c = 0; c < kClassCount; ++c) {
    const auto& use = now.classes[c];
    if (use.free == 0) continue;
    const unsigned least = c == 0 ? 0 : kSizeClasses[c - 1].bytes + 1;
    fprintf(stream, "  <size from=\"%u\" to=\"%u\" total=\"%lu\" count=\"%lu\"/>\n", least, kSizeClasses[c].bytes,
            use.free * kSizeClasses[c].bytes, use.free);
  }
  fprintf(stream, "</sizes>\n");
  // Of the one heap, and then of all heaps, which is the same but for blocks with a mapping of their own.
  for (const bool is_whole : {false, true}) {
    fprintf(stream, "<total type=\"fast\" count=\"%lu\" size=\"%lu\"/>\n", free_objects, now.slab_free_bytes);
    fprintf(stream, "<total type=\"rest\" count=\"%lu\" size=\"%lu\"/>\n", now.dirty_bytes / brimful::kGranuleBytes,
            now.dirty_bytes);
    if (is_whole) {
      fprintf(stream, "<total type=\"mmap\" count=\"%lu\" size=\"%lu\"/>\n", now.huge_blocks, now.huge_bytes);
    }
    fprintf(stream, "<system type=\"current\" size=\"%lu\"/>\n<system type=\"max\" size=\"%lu\"/>\n", current, most);
    fprintf(stream, "<aspace type=\"total\" size=\"%lu\"/>\n<aspace type=\"mprotect\" size=\"%lu\"/>\n",
            now.reserved_bytes, now.committed_bytes);
    if (is_whole) continue;
    fprintf(stream, "<brimful version=\"%s\" live=\"%lu\" large=\"%lu\" metadata=\"%lu\"/>\n</heap>\n",
            brimful::config::kVersion, now.live_bytes, now.large_bytes, now.metadata_bytes);
  }
  fprintf(stream, "</malloc>\n");
  return 0;
}

// More than glibc prints, in tables: what brimful_print_stats() writes.
void malloc_stats() noexcept { brimful_print_stats(STDERR_FILENO, BRIMFUL_FORMAT_TEXT); }

// `pad` asks to keep that much at the top of the heap; there is no top here, so all free memory goes.
int malloc_trim(std::size_t) noexcept { return brimful::alloc::trim() > 0 ? 1 : 0; }

// Parameters that have a meaning here are obeyed, the others are accepted, as mallopt(3) has no answer for "not
// applicable" but 1; an unknown parameter or an impossible value answers 0.
int mallopt(int parameter, int value) noexcept {
  switch (parameter) {
    case M_TRIM_THRESHOLD:
      // How eagerly free memory goes back: -1 is "never", 0 "at once".
      if (value == -1 || value == 0) brimful::config::options.purge_delay_ms = value;
      return 1;
    case M_MXFAST:
      return value >= 0 && value <= static_cast<int>(80 * sizeof(std::size_t) / 4) ? 1 : 0;
    case M_TOP_PAD:
    case M_MMAP_THRESHOLD:
    case M_MMAP_MAX:
    case M_CHECK_ACTION:
    case M_PERTURB:
    case M_ARENA_TEST:
    case M_ARENA_MAX:
      return 1;
    default:
      return 0;
  }
}

struct mallinfo mallinfo() noexcept {
  return __libc_mallinfo();
}
int __libc_mallopt(int parameter, int value) { return mallopt(parameter, value); }

}  // extern "C"

#pragma GCC visibility pop
