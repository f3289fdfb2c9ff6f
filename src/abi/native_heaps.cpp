// SPDX-License-Identifier: MIT
//
// The heaps of include/brimful/heap.h with C's conventions. A handle is a number in a pointer's clothes.
#include <errno.h>
#include <string.h>

#include "alloc/allocate.h"
#include "alloc/heaps.h"
#include "arch/sequences.h"
#include "base/units.h"
#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "os/errno_guard.h"
#include "slots/user_heap.h"

namespace {

namespace alloc = brimful::alloc;
namespace slots = brimful::slots;
using slots::HeapHandle;
using slots::UserHeap;

HeapHandle handle_of(const brimful_heap* heap) { return reinterpret_cast<HeapHandle>(heap); }
brimful_heap* heap_with(HeapHandle handle) { return reinterpret_cast<brimful_heap*>(handle); }

// relaxed: a heap with a live block, or that is a thread's current one, keeps its handle
HeapHandle handle_of(const UserHeap& heap) { return heap.handle.load(std::memory_order_relaxed); }

// Calls visitor(heap) under the heap's lock. 0, EDEADLK, or EINVAL: it is closed or none, which has been reported.
template <class Visit>
int visit(const brimful_heap* of, const char* call, Visit visitor) {
  if (slots::thread_state.depth != 0) return EDEADLK;
  const brimful::os::ErrnoGuard guard;
  UserHeap* heap = slots::heap_of(handle_of(of), call);
  if (heap == nullptr) return EINVAL;
  bool is_good = false;
  {
    const slots::OutsideHeap outside;
    const slots::SlowScope scope;
    const slots::HeapScope heap_scope(*heap);
    is_good = slots::is_good(*heap, handle_of(of));
    if (is_good) visitor(*heap);
  }
  if (is_good) return 0;
  slots::report_closed(*heap, handle_of(of), call);
  return EINVAL;
}

constexpr std::size_t kFirstVersionBytes = 72;
static_assert(sizeof(brimful_heap_stats) == kFirstVersionBytes);

}  // namespace

extern "C" {

brimful_heap* brimful_heap_create(std::size_t limit_bytes) {
  HeapHandle handle = 0;
  {
    const brimful::os::ErrnoGuard guard;
    const slots::OutsideHeap outside;
    const slots::SlowScope scope;
    slots::prepare();
    if (!scope.nested()) handle = slots::open_heap(limit_bytes);
  }
  if (handle == 0) errno = ENOMEM;
  return heap_with(handle);
}

int brimful_heap_destroy(brimful_heap* heap) {
  if (heap == nullptr) return 0;
  const brimful::os::ErrnoGuard guard;
  UserHeap* closed = slots::heap_of(handle_of(heap), "brimful_heap_destroy");
  if (closed == nullptr) return EINVAL;
  slots::Closed answer = slots::Closed::kBusy;
  if (slots::thread_state.depth == 0) {
    const slots::OutsideHeap outside;
    const slots::SlowScope scope;
    answer = slots::close_heap(*closed, handle_of(heap));
  }
  if (answer == slots::Closed::kBefore) {
    slots::report_closed(*closed, handle_of(heap), "brimful_heap_destroy");
    return EINVAL;
  }
  return answer == slots::Closed::kYes ? 0 : EBUSY;
}

void* brimful_heap_malloc(brimful_heap* heap, std::size_t bytes) {
  return alloc::allocate_in_heap(handle_of(heap), bytes, brimful::kObjectAlignment, "brimful_heap_malloc");
}

void* brimful_heap_calloc(brimful_heap* heap, std::size_t count, std::size_t bytes) {
  return alloc::allocate_zeroed_in_heap(handle_of(heap), count, bytes, "brimful_heap_calloc");
}

void* brimful_heap_aligned_alloc(brimful_heap* heap, std::size_t alignment, std::size_t bytes) {
  if (!brimful::is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  const std::size_t least = alignment < brimful::kObjectAlignment ? brimful::kObjectAlignment : alignment;
  return alloc::allocate_in_heap(handle_of(heap), bytes, least, "brimful_heap_aligned_alloc");
}

void* brimful_heap_realloc(brimful_heap* heap, void* pointer, std::size_t bytes) {
  if (pointer == nullptr) {
    return alloc::allocate_in_heap(handle_of(heap), bytes, brimful::kObjectAlignment, "brimful_heap_realloc");
  }
  if (bytes == 0) {
    brimful_free(pointer);
    return nullptr;
  }
  return alloc::reallocate_in_heap(handle_of(heap), pointer, bytes, "brimful_heap_realloc");
}

int brimful_heap_set_current(brimful_heap* heap) {
  const brimful::os::ErrnoGuard guard;
  if (slots::thread_state.depth != 0) return EDEADLK;
  UserHeap* chosen = nullptr;
  if (heap != nullptr) {
    chosen = slots::heap_of(handle_of(heap), "brimful_heap_set_current");
    if (chosen == nullptr) return EINVAL;
    const int error = slots::prepare_for_thread_exit();
    if (error != 0) return error;
  }
  bool is_good = false;
  {
    const slots::SlowScope scope;
    slots::prepare();
    is_good = slots::choose_heap(chosen, handle_of(heap));
  }
  if (is_good) return 0;
  slots::report_closed(*chosen, handle_of(heap), "brimful_heap_set_current");
  return EINVAL;
}

brimful_heap* brimful_heap_current() {
  const UserHeap* heap = slots::thread_state.heap;
  return heap != nullptr ? heap_with(handle_of(*heap)) : nullptr;
}

brimful_heap* brimful_heap_of(const void* pointer) {
  if (pointer == nullptr) return nullptr;
  const std::uint32_t number = alloc::heap_number_of(pointer, "brimful_heap_of");
  return number != 0 && number != alloc::kNotLive ? heap_with(handle_of(*slots::heap_of_number(number))) : nullptr;
}

int brimful_heap_set_limit(brimful_heap* heap, std::size_t limit_bytes) {
  return visit(heap, "brimful_heap_set_limit", [&](UserHeap& of) { of.limit_bytes = limit_bytes; });
}

int brimful_heap_get_stats(brimful_heap* heap, struct brimful_heap_stats* into) {
  if (into->size < kFirstVersionBytes) return EINVAL;
  brimful_heap_stats found = {};
  const int error = visit(heap, "brimful_heap_get_stats", [&](UserHeap& of) {
    const slots::HeapCounts& counts = of.counts;
    const slots::Held held = slots::held_by_stand_ins(of);
    found = {into->size,        of.limit_bytes,      counts.live_bytes - held.bytes,
             counts.peak_bytes, counts.held_bytes,   counts.live_blocks - held.objects,
             counts.slabs,      counts.large_blocks, counts.refused};
  });
  if (error != 0) return error;
  memset(into, 0, found.size);
  memcpy(into, &found, sizeof found);
  return 0;
}

}  // extern "C"
