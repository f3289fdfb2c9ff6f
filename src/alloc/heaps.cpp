// SPDX-License-Identifier: MIT
//
// alloc/heaps.h. A block of its own is made and freed as any other, outside of the heap's lock: first its bytes are
// counted against the limit, then it is made, then it is the heap's.
#include "alloc/heaps.h"

#include <errno.h>
#include <string.h>

#include "alloc/allocate.h"
#include "alloc/emergency.h"
#include "alloc/large.h"
#include "config/options.h"
#include "meta/block.h"
#include "meta/granule_table.h"
#include "meta/live_map.h"
#include "meta/request_class.h"
#include "os/calls.h"
#include "os/errno_guard.h"
#include "slots/front_end.h"
#include "slots/lives.h"

namespace brimful::alloc {
namespace {

using slots::HeapAnswer;
using slots::HeapHandle;
using slots::UserHeap;

// Where a request goes. A stand-in: of the calling thread, whose current heap it is.
struct Source {
  UserHeap& heap;
  HeapHandle handle;
  slots::StandIn* stand_in;
};

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// The block that allocate_run_of() gave; nullptr: it is of the signal handlers' reserve.
Run* run_of(void* block) {
  const std::uint64_t start = address_of(block);
  Header* header = meta::header_of(start);
  if (header->kind == Kind::kLarge && header->start == start) return static_cast<Run*>(header);
  return find_huge(start);
}

void* allocate_object(const Source& source, ClassId size_class, HeapAnswer* answer) {
  const auto attempt = [&] {
    return source.stand_in != nullptr ? slots::allocate_through(*source.stand_in, source.heap, size_class, answer)
                                      : slots::allocate_in(source.heap, source.handle, size_class, answer);
  };
  void* object = attempt();
  if (BRIMFUL_UNLIKELY(*answer == HeapAnswer::kNoMemory)) {
    slots::reclaim_all();
    object = attempt();
  }
  return slots::begin_life(object);
}

void* allocate_block(const Source& source, std::size_t bytes, std::size_t alignment, HeapAnswer* answer) {
  *answer = HeapAnswer::kNoMemory;
  if (bytes > kMostBytes) return nullptr;
  const std::size_t usable = round_up(bytes != 0 ? bytes : 1, os::page_bytes());
  {
    const slots::SlowScope scope;
    *answer = slots::charge(source.heap, source.handle, usable);
    if (*answer != HeapAnswer::kDone) return nullptr;
  }
  void* block = allocate_run_of(bytes, alignment);
  const slots::SlowScope scope;
  if (block != nullptr) {
    slots::adopt_block(source.heap, run_of(block));
  } else {
    slots::uncharge(source.heap, usable);
    *answer = HeapAnswer::kNoMemory;
  }
  return block;
}

// In an OutsideHeap. nullptr and kClosed: the handle is not good.
void* allocate_from(const Source& source, std::size_t bytes, std::size_t alignment, HeapAnswer* answer) {
  {
    const slots::SlowScope scope;
    if (scope.nested()) {
      *answer = HeapAnswer::kDone;
      return allocate_emergency(bytes, alignment);
    }
    slots::prepare();
    prepare_emergency();
    const std::size_t index = meta::class_for(bytes, alignment);
    if (index < kClassCount) return allocate_object(source, static_cast<ClassId>(index), answer);
  }
  return allocate_block(source, bytes, alignment, answer);
}

void* allocate_for(const Source& source, std::size_t bytes, std::size_t alignment, const char* call) {
  HeapAnswer answer = HeapAnswer::kDone;
  void* block = nullptr;
  {
    const os::ErrnoGuard errno_guard;
    const slots::OutsideHeap outside;
    block = allocate_from(source, bytes, alignment, &answer);
  }
  if (BRIMFUL_LIKELY(answer != HeapAnswer::kClosed)) return or_errno(block);
  slots::report_closed(source.heap, source.handle, call);
  return or_errno(kMisused);
}

}  // namespace

void* allocate_in_heap(HeapHandle handle, std::size_t bytes, std::size_t alignment, const char* call) {
  UserHeap* heap = slots::heap_of(handle, call);
  if (BRIMFUL_UNLIKELY(heap == nullptr)) return or_errno(kMisused);
  return allocate_for({*heap, handle, nullptr}, bytes, alignment, call);
}

void* allocate_in_current_heap(std::size_t bytes, std::size_t alignment) {
  UserHeap& heap = *slots::thread_state.heap;
  // relaxed: constant while the heap is some thread's current one
  const HeapHandle handle = heap.handle.load(std::memory_order_relaxed);
  return allocate_for({heap, handle, slots::thread_state.stand_in}, bytes, alignment, "malloc");
}

void* allocate_beside(std::uint32_t heap_number, std::size_t bytes) {
  const UserHeap& heap = *slots::heap_of_number(heap_number);
  // relaxed: constant while the heap has a live block
  return allocate_in_heap(heap.handle.load(std::memory_order_relaxed), bytes, kObjectAlignment, "realloc");
}

void* allocate_zeroed_in_heap(HeapHandle handle, std::size_t count, std::size_t bytes, const char* call) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return or_errno(nullptr);
  void* block = allocate_in_heap(handle, total, kObjectAlignment, call);
  if (block == nullptr) return nullptr;
  total > kMaxClassBytes ? clear_large(block, total) : static_cast<void>(memset(block, 0, total));
  return block;
}

void* reallocate_in_heap(HeapHandle handle, void* pointer, std::size_t bytes, const char* call) {
  {
    const UserHeap* heap = slots::heap_of(handle, call);
    if (heap == nullptr) return or_errno(kMisused);
    const std::uint32_t number = heap_number_of(pointer, call);
    if (number == kNotLive) return or_errno(kMisused);
    if (number == heap->number) return or_errno(reallocate(pointer, bytes));
  }
  const std::size_t old_bytes = usable_bytes(pointer, call);  // 0: freed meanwhile; its free() below reports it, too
  void* moved = allocate_in_heap(handle, bytes, kObjectAlignment, call);
  if (moved == nullptr) return nullptr;
  memcpy(moved, pointer, bytes < old_bytes ? bytes : old_bytes);
  arch::brimful_free(pointer);
  return moved;
}

void* resize_large_in_heap(Run* run, std::uint64_t start, std::size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  UserHeap* heap = slots::heap_of_number(slots::heap_number(run));
  const std::size_t old_bytes = run->bytes;
  const std::size_t usable = round_up(bytes, os::page_bytes());
  if (heap == nullptr || !slots::take_for_resize(*heap, run, usable)) return nullptr;
  void* resized = resize_large(run, start, bytes);
  if (resized != nullptr) {
    slots::adopt_block(*heap, run_of(resized));
  } else {
    slots::restore_block(*heap, run, usable, old_bytes);
  }
  return resized;
}

}  // namespace brimful::alloc
