// SPDX-License-Identifier: MIT
//
// The statistics of include/brimful/brimful.h. Enumerators come from C programs, so every value is looked at.
#include <errno.h>
#include <string.h>

#include "brimful/brimful.h"
#include "classes/size_classes.h"
#include "os/errno_guard.h"
#include "os/write.h"
#include "slots/thread.h"
#include "stats/fragmentation.h"
#include "stats/locks.h"
#include "stats/output.h"
#include "stats/print.h"

namespace {

// The structure as it was first published: a caller can't know less.
constexpr std::size_t kFirstVersionBytes = 64;
static_assert(sizeof(brimful_lock_stats) == kFirstVersionBytes);

brimful_lock_stats numbers(const brimful::sync::LockUse& use, std::uint64_t locks, std::size_t object_bytes) {
  return {sizeof(brimful_lock_stats),
          object_bytes,
          locks,
          use.acquisitions,
          use.contended,
          use.sleeps,
          use.wait_ns,
          use.busy};
}

// false: no such lock.
bool find(brimful_lock which, std::size_t object_bytes, brimful_lock_stats* found) {
  if (which == BRIMFUL_LOCK_CENTRAL && object_bytes != 0) {
    if (object_bytes > brimful::kMaxClassBytes) return false;
    const brimful::ClassId size_class = brimful::class_of(object_bytes);
    *found = numbers(brimful::stats::central_lock(size_class), 1, brimful::kSizeClasses[size_class].bytes);
    return true;
  }
  if (object_bytes != 0) return false;
  brimful::stats::LockReport all = {};
  brimful::stats::read_locks(all);
  switch (which) {
    case BRIMFUL_LOCK_HEAP:
      *found = numbers(all.heap, 1, 0);
      return true;
    case BRIMFUL_LOCK_CENTRAL:
      *found = numbers(all.central, brimful::kClassCount, 0);
      return true;
    case BRIMFUL_LOCK_CONTEXT:
      *found = numbers(all.context, all.contexts, 0);
      return true;
    case BRIMFUL_LOCK_USER_HEAP:
      *found = numbers(all.user_heap, all.user_heaps, 0);
      return true;
    default:
      return false;
  }
}

constexpr std::size_t kFirstMemoryBytes = 72;
constexpr std::size_t kFirstClassBytes = 64;
static_assert(sizeof(brimful_memory_stats) == kFirstMemoryBytes && sizeof(brimful_class_memory) == kFirstClassBytes);

brimful_class_memory entry(std::size_t object_bytes, const brimful::stats::MemoryUse& use) {
  return {object_bytes,
          use.slabs,
          use.live,
          use.resident_bytes,
          use.live_bytes,
          use.requests.count,
          use.requests.requested_bytes,
          use.requests.granted_bytes};
}

// A caller of a later version knows more members than we: those are 0.
void copy_known(void* into, std::size_t room, const void* from, std::size_t bytes) {
  memset(into, 0, room);
  memcpy(into, from, bytes);
}

}  // namespace

extern "C" {

int brimful_get_memory_stats(brimful_memory_stats* into, brimful_class_memory* classes, std::size_t room) {
  if (into->size < kFirstMemoryBytes || (room != 0 && into->class_size < kFirstClassBytes)) return EINVAL;
  if (brimful::slots::thread_state.depth != 0) return EDEADLK;
  const brimful::os::ErrnoGuard guard;
  brimful::stats::MemoryReport report;
  brimful::stats::take_memory_report(report);
  constexpr std::size_t kEntries = brimful::kClassCount + 1;
  for (std::size_t i = 0; i < kEntries && i < room; ++i) {
    const bool is_class = i < brimful::kClassCount;
    const brimful_class_memory found =
        entry(is_class ? brimful::kSizeClasses[i].bytes : 0, is_class ? report.classes[i] : report.blocks);
    copy_known(reinterpret_cast<char*>(classes) + i * into->class_size, into->class_size, &found, sizeof found);
  }
  const brimful_memory_stats found = {into->size,
                                      into->class_size,
                                      report.resident_bytes,
                                      report.live_bytes,
                                      report.internal_bytes,
                                      report.slab_free_bytes,
                                      report.run_free_bytes,
                                      report.metadata_bytes,
                                      kEntries};
  copy_known(into, into->size, &found, sizeof found);
  return 0;
}

int brimful_get_lock_stats(brimful_lock which, std::size_t object_bytes, struct brimful_lock_stats* into) {
  if (into->size < kFirstVersionBytes) return EINVAL;
  struct brimful_lock_stats found = {};
  if (!find(which, object_bytes, &found)) return EINVAL;
  found.size = into->size;
  memset(into, 0, into->size);
  memcpy(into, &found, sizeof found);
  return 0;
}

int brimful_print_stats(int descriptor, brimful_format format) {
  if (format != BRIMFUL_FORMAT_TEXT && format != BRIMFUL_FORMAT_JSON) return EINVAL;
  const brimful::os::ErrnoGuard guard;
  brimful::stats::Output output;
  const bool is_json = format == BRIMFUL_FORMAT_JSON;
  const int fault =
      brimful::stats::print(output, is_json ? brimful::stats::Format::kJson : brimful::stats::Format::kText);
  return fault != 0 ? fault : brimful::os::write_whole(descriptor, output.data(), output.size());
}

}  // extern "C"
