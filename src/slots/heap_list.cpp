// SPDX-License-Identifier: MIT
//
// slots/user_heap.h: which heaps there are, whose current heap is which, and forks.
//
//   chunks[number / 1024][number % 1024] ──▶ UserHeap       all made on demand, never unmapped
//
// A destroyed heap's structure and number serve another heap later, the one destroyed longest ago first, with the next
// generation: 2^44 of them, so that no handle ever comes again.
#include <errno.h>
#include <pthread.h>

#include <atomic>

#include "meta/misuse.h"
#include "pages/heap.h"
#include "slots/stand_in.h"
#include "slots/start.h"
#include "slots/user_heap.h"

namespace brimful::slots {
namespace {

constexpr std::uint32_t kMaxNumber = (1U << kHeapNumberBits) - 1;
constexpr std::uint32_t kChunkHeaps = 1024;
constexpr HeapHandle kOneGeneration = HeapHandle{1} << kHeapNumberBits;
// Slabs of all heaps that one look gives pages back of.
constexpr int kSlabsAtATime = 128;

using Place = std::atomic<UserHeap*>;
using Chunk = std::atomic<Place*>;
constexpr std::size_t kChunks = (kMaxNumber + 1) / kChunkHeaps;
constinit std::atomic<Chunk*> chunks{nullptr};

// Guarded by `list_lock`.
constinit sync::HeapListMutex list_lock;
constinit std::uint32_t made = 0;  // numbers 1 ... made have a structure
constinit UserHeap* first_free = nullptr;
constinit UserHeap* last_free = nullptr;

constinit pthread_key_t exit_key = 0;
constinit std::atomic<bool> has_exit_key{false};

void on_thread_exit(void*) {
  const SlowScope scope;
  choose_heap(nullptr, 0);
}

// A structure with the next number; nullptr when there is no memory, or no number.
UserHeap* make_structure() {
  const std::uint32_t number = made + 1;
  if (number > kMaxNumber) return nullptr;
  const sync::MutexLock guard(pages::heap.lock);
  Chunk* all = chunks.load(std::memory_order_relaxed);  // relaxed: written under this lock
  if (all == nullptr) {
    all = static_cast<Chunk*>(pages::heap.arena.allocate(kChunks * sizeof(Chunk)));
    if (all == nullptr) return nullptr;
    chunks.store(all, std::memory_order_release);  // pairs with: heap_of_number() (zeros)
  }
  Place* chunk = all[number / kChunkHeaps].load(std::memory_order_relaxed);  // relaxed: written under this lock
  if (chunk == nullptr) {
    chunk = static_cast<Place*>(pages::heap.arena.allocate(kChunkHeaps * sizeof(Place)));
    if (chunk == nullptr) return nullptr;
    all[number / kChunkHeaps].store(chunk, std::memory_order_release);  // pairs with: heap_of_number() (zeros)
  }
  auto* heap = static_cast<UserHeap*>(pages::heap.arena.allocate(sizeof(UserHeap)));
  if (heap == nullptr) return nullptr;
  heap->number = number;
  heap->handle.store(kOneGeneration | number, std::memory_order_relaxed);  // relaxed: published by the store below
  chunk[number % kChunkHeaps].store(heap, std::memory_order_release);      // pairs with: heap_of_number() (the heap)
  made = number;
  return heap;
}

UserHeap* take_structure() {
  if (first_free == nullptr) return make_structure();
  UserHeap* heap = first_free;
  first_free = heap->next_free;
  if (first_free == nullptr) last_free = nullptr;
  heap->next_free = nullptr;
  return heap;
}

void give_structure(UserHeap* heap) {
  (last_free != nullptr ? last_free->next_free : first_free) = heap;
  last_free = heap;
}

// Calls visit(heap) for the open heaps whose lock is free, under it, until it returns false. Does nothing while the
// list is busy.
template <class Visit>
void for_each_free_heap(Visit visit) {
  if (!list_lock.try_lock()) return;
  bool goes_on = true;
  for (std::uint32_t number = 1; number <= made && goes_on; ++number) {
    UserHeap* heap = heap_of_number(number);
    if (!heap->lock.try_lock()) continue;
    if (heap->is_open) goes_on = visit(*heap);
    heap->lock.unlock();
  }
  list_lock.unlock();
}

}  // namespace

HeapHandle open_heap(std::size_t limit_bytes) {
  const sync::MutexLock guard(list_lock);
  UserHeap* heap = take_structure();
  if (heap == nullptr) return 0;
  const sync::MutexLock heap_guard(heap->lock);
  heap->limit_bytes = limit_bytes;
  heap->is_open = true;
  return heap->handle.load(std::memory_order_relaxed);  // relaxed: written under this lock
}

UserHeap* heap_of_number(std::uint32_t number) {
  if (number == 0 || number > kMaxNumber) return nullptr;
  Chunk* all = chunks.load(std::memory_order_acquire);  // pairs with: make_structure()
  if (all == nullptr) return nullptr;
  Place* chunk = all[number / kChunkHeaps].load(std::memory_order_acquire);  // pairs with: make_structure()
  if (chunk == nullptr) return nullptr;
  return chunk[number % kChunkHeaps].load(std::memory_order_acquire);  // pairs with: make_structure()
}

UserHeap* heap_of(HeapHandle handle, const char* call) {
  UserHeap* heap = heap_of_number(static_cast<std::uint32_t>(handle) & kMaxNumber);
  if (BRIMFUL_UNLIKELY(heap == nullptr)) meta::report_bad_heap(call, handle, false);
  return heap;
}

void report_closed(const UserHeap& heap, HeapHandle handle, const char* call) {
  // relaxed: handles of one number grow
  const bool was_heap = handle >= kOneGeneration && handle < heap.handle.load(std::memory_order_relaxed);
  meta::report_bad_heap(call, handle, was_heap);
}

void OutsideHeap::leave_current_heap() {
  ThreadState& state = thread_state;
  state.heap = nullptr;
  std::atomic_signal_fence(
      std::memory_order_seq_cst);  // pairs with: a handler on this thread, which allocates as usual
  arch::brimful_thread.context_id = state.own_id_pointer;
}

void OutsideHeap::enter_current_heap(UserHeap* heap) {
  ThreadState& state = thread_state;
  state.own_id_pointer = arch::brimful_thread.context_id;
  arch::brimful_thread.context_id = state.stand_in != nullptr ? &state.stand_in->id : &no_context_id;
  std::atomic_signal_fence(
      std::memory_order_seq_cst);  // pairs with: a handler on this thread, which misses from here on
  state.heap = heap;
}

int prepare_for_thread_exit() {
  if (!has_exit_key.load(std::memory_order_acquire)) {  // pairs with: the store below (the key)
    const SlowScope scope;
    const sync::MutexLock guard(list_lock);
    if (!has_exit_key.load(std::memory_order_relaxed)) {  // relaxed: written under this lock
      const int error = pthread_key_create(&exit_key, on_thread_exit);
      if (error != 0) return error;
      has_exit_key.store(true, std::memory_order_release);  // pairs with: the load above (the key)
    }
  }
  return pthread_setspecific(exit_key, &exit_key);
}

namespace {

void leave_for_good(UserHeap& heap) {
  OutsideHeap::leave_current_heap();
  StandIn* stand_in = thread_state.stand_in;
  thread_state.stand_in = nullptr;
  if (stand_in != nullptr) {
    return_all(*stand_in, heap);
    recycle_stand_in(stand_in);
  }
  const HeapScope scope(heap);
  --heap.users;
}

}  // namespace

bool choose_heap(UserHeap* heap, HeapHandle handle) {
  UserHeap* before = thread_state.heap;
  if (heap != nullptr) {
    const HeapScope scope(*heap);
    if (!is_good(*heap, handle)) return false;
    ++heap->users;
  }
  if (before != nullptr) leave_for_good(*before);
  if (heap != nullptr) {
    thread_state.stand_in = take_stand_in();
    OutsideHeap::enter_current_heap(heap);
  }
  return true;
}

Closed close_heap(UserHeap& heap, HeapHandle handle) {
  {
    const sync::MutexLock guard(list_lock);
    const HeapScope scope(heap);
    if (!is_good(heap, handle)) return Closed::kBefore;
    if (heap.users != 0) return Closed::kBusy;
    heap.is_open = false;
    heap.handle.store(handle + kOneGeneration, std::memory_order_relaxed);  // relaxed: written under this lock
  }
  // Nobody else looks into a closed heap. If the process forks now, the child never gets the rest back.
  bury(heap);
  const sync::MutexLock guard(list_lock);
  give_structure(&heap);
  return Closed::kYes;
}

sync::LockUse heap_lock_use(std::uint64_t* locks) {
  sync::LockUse sum = list_lock.use();
  *locks = 0;
  for (UserHeap* heap = heap_of_number(1); heap != nullptr; heap = heap_of_number(heap->number + 1)) {
    sum += heap->lock.use();
    ++*locks;
  }
  if (*locks != 0) ++*locks;  // without a heap, the list's serves forks alone
  return sum;
}

sync::HeapListMutex& heap_list_lock() { return list_lock; }

std::uint32_t heaps_made() { return made; }

void forget_other_users() {
  for (std::uint32_t number = 1; number <= made; ++number) {
    UserHeap* heap = heap_of_number(number);
    heap->users = heap == thread_state.heap ? 1 : 0;
  }
}

int purge_heaps(bool at_once) {
  int purged = 0;
  const int budget = at_once ? INT32_MAX : kSlabsAtATime;
  for_each_free_heap([&](UserHeap& heap) {
    purged += purge_heap(heap, budget - purged, at_once);
    return purged < budget;
  });
  return purged;
}

void reclaim_heaps() {
  for_each_free_heap([](UserHeap& heap) {
    release_empty_slabs(heap);
    return true;
  });
  end_quarantine();
}

}  // namespace brimful::slots
