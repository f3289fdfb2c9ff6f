// SPDX-License-Identifier: MIT
//
// Heaps of the program (include/brimful/heap.h): slabs and large blocks that one structure holds, so that they can go
// all at once.
//
//   handle ── number ──▶ UserHeap ──┬─ partial[class]  slabs with free objects; malloc takes from the front
//             generation            ├─ full            slabs without
//                                   └─ blocks          large and huge blocks
//   free(p) ── granule table ──▶ slab, owner kOwnerHeap ── last_owner: the number ──▶ UserHeap
//
// A heap's slab has an owner that no context is, above BRIMFUL_OWNER_SHARED: the fast path of free() sends such
// objects the slow way as it is. So they are never in a magazine and never in a context, and when a heap is destroyed
// nobody holds anything of it. All of a slab is in its freed words, written under the heap's lock, but for what a
// stand-in has. The remote masks belong to signal handlers, who must not wait for the lock; the next holder takes over
// what they say.
//
// A thread's *current* heap costs the fast paths nothing either: the thread's id pointer leads to a stand-in
// (slots/stand_in.h) while it has one. What a slow path does for others than the heap, it does in an OutsideHeap,
// where the thread is as any other.
//
// One lock for each heap. Rejected: a context for each heap and CPU (27 KiB each, and its magazines, slots and queues
// would have to be emptied by barriers before a destroy: time that depends on CPUs), and a lock for each class (3.4
// KiB more, for threads that share one heap and one class seldom).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "base/list.h"
#include "classes/size_classes.h"
#include "meta/header.h"
#include "slots/thread.h"
#include "sync/mutex.h"

namespace brimful::slots {

// Names a heap for the program: 20 bits of number, from 1, below the generation, from 1.
using HeapHandle = std::uint64_t;
inline constexpr unsigned kHeapNumberBits = 20;

// What a heap counts; its lock guards it.
struct HeapCounts {
  std::size_t live_bytes;  // usable bytes of live blocks
  std::size_t peak_bytes;  // the most that was
  std::size_t held_bytes;  // of slabs and large blocks
  std::uint64_t live_blocks;
  std::uint64_t slabs;
  std::uint64_t large_blocks;
  std::uint64_t refused;  // requests, by the limit
};

struct UserHeap {
  sync::UserHeapMutex lock;
  std::uint32_t number;             // constant
  std::uint32_t users;              // threads whose current heap it is; `lock`, as all below that says nothing else
  std::atomic<HeapHandle> handle;   // the heap's, or, while is_open is false, the next one's
  std::int32_t until_look;          // calls until one looks at the clock
  bool is_open;                     // the handle is good: created and not destroyed
  std::atomic<bool> has_nested;     // signal handlers freed something: in remote masks, or
  std::atomic<Run*> nested_blocks;  // claimed blocks, still in `blocks`, linked by next
  std::size_t limit_bytes;          // 0: none
  HeapCounts counts;
  UserHeap* next_free;  // destroyed ones, the longest ago first; the list's lock
  Run* blocks;          // large ones, linked by heap_next and heap_prev
  List<Slab> full;
  List<Slab> lent;  // to threads' stand-ins, each to one (slots/stand_in.h)
  List<Slab> partial[kClassCount];
};

enum class HeapAnswer : std::uint8_t { kDone, kNoMemory, kOverLimit, kClosed };

// Takes over what signal handlers freed. Caller holds the heap's lock.
void take_over_nested(UserHeap& heap);

// Holds a heap's lock, with what signal handlers freed taken over. Inside a SlowScope that is not nested.
class HeapScope {
 public:
  explicit HeapScope(UserHeap& heap) : heap_(heap) {
    heap.lock.lock();
    // relaxed: what a handler frees right now is found next time
    if (BRIMFUL_UNLIKELY(heap.has_nested.load(std::memory_order_relaxed))) take_over_nested(heap);
  }
  ~HeapScope() { heap_.lock.unlock(); }
  HeapScope(const HeapScope&) = delete;
  HeapScope& operator=(const HeapScope&) = delete;

 private:
  UserHeap& heap_;
};

// Ends for its life what a current heap does to this thread: malloc and free go as in any other. A handler that
// interrupts it allocates outside of the heap, too. Any moment.
class OutsideHeap {
 public:
  OutsideHeap() : heap_(thread_state.heap) {
    if (BRIMFUL_UNLIKELY(heap_ != nullptr)) leave_current_heap();
  }
  ~OutsideHeap() {
    if (BRIMFUL_UNLIKELY(heap_ != nullptr)) enter_current_heap(heap_);
  }
  OutsideHeap(const OutsideHeap&) = delete;
  OutsideHeap& operator=(const OutsideHeap&) = delete;

  static void leave_current_heap();
  static void enter_current_heap(UserHeap* heap);

 private:
  UserHeap* heap_;
};

// --- the list of heaps (slots/heap_list.cpp) ----------------------------------------------------------------------

// Makes a heap. 0: no memory, or there are too many. Takes the list's lock and the heap lock.
HeapHandle open_heap(std::size_t limit_bytes);

// The heap of a handle, which may be closed by now: whoever takes its lock asks is_good(). nullptr: no heap ever had the
// handle's number, which has been reported. `call` is the function's name. No lock.
UserHeap* heap_of(HeapHandle handle, const char* call);

// Caller holds the heap's lock.
inline bool is_good(const UserHeap& heap, HeapHandle handle) {
  return heap.is_open && heap.handle.load(std::memory_order_relaxed) == handle;  // relaxed: written under the lock
}

// The handle is not good.
BRIMFUL_COLD void report_closed(const UserHeap& heap, HeapHandle handle, const char* call);

// The heap of a number, or nullptr. No lock.
UserHeap* heap_of_number(std::uint32_t number);

// Makes the heap (nullptr: none) the calling thread's current one. false: the handle is not good. In a SlowScope that
// is not nested, and not inside an OutsideHeap.
bool choose_heap(UserHeap* heap, HeapHandle handle);

// Sees to it that a thread that ends leaves its current heap. 0, or an error number. Before choose_heap().
int prepare_for_thread_exit();

enum class Closed : std::uint8_t { kYes, kBusy, kBefore };

// Destroys the heap. kBusy: it is some thread's current one; kBefore: the handle is not good.
Closed close_heap(UserHeap& heap, HeapHandle handle);

// Sum over the heaps' locks, those of destroyed ones included, and the list's. *locks: how many. No lock.
sync::LockUse heap_lock_use(std::uint64_t* locks);

// For fork(), which takes the list's lock and then every heap's: how many there are, under the list's lock; and, in the
// child, that the other threads use none any more.
sync::HeapListMutex& heap_list_lock();
std::uint32_t heaps_made();
void forget_other_users();

// Pages that nothing lives on, of heaps that are left alone: `at_once` of all whose lock is free. Returns how many
// slabs those were.
int purge_heaps(bool at_once);

// Gives back the empty slabs of heaps whose lock is free, and the addresses that destroyed heaps leave behind in
// tier:hardened. For the moment before memory is refused.
void reclaim_heaps();

// --- a heap's slabs and blocks (slots/user_heap.cpp) --------------------------------------------------------------

// An object of the class for a thread whose current heap it is; its stand-in gets those beside it. As allocate_in().
void* allocate_through(StandIn& stand_in, UserHeap& heap, ClassId size_class, HeapAnswer* answer);

// The stand-in holds nothing of the heap any more. Takes the heap's lock.
void return_all(StandIn& stand_in, UserHeap& heap);

// Objects that stand-ins hold: free, but counted as live. Caller holds the heap's lock.
struct Held {
  std::uint64_t objects;
  std::size_t bytes;
};
Held held_by_stand_ins(UserHeap& heap);

// An object of the class. nullptr: see *answer. Takes the heap's lock.
void* allocate_in(UserHeap& heap, HeapHandle handle, ClassId size_class, HeapAnswer* answer);

// Frees object `index` of the slab, a heap's. Reports a double free, or a heap that is closed.
void free_in_heap(Slab* slab, std::uint64_t index);

// The same in a signal handler that interrupted a slow path.
void free_in_heap_nested(Slab* slab, std::uint64_t index);

// Counts a large block of `bytes` that is about to be made; uncharge() takes it back.
HeapAnswer charge(UserHeap& heap, HeapHandle handle, std::size_t bytes);
void uncharge(UserHeap& heap, std::size_t bytes);

// The charged block is the heap's.
void adopt_block(UserHeap& heap, Run* run);

// The block, whose life the caller has ended, leaves its heap, and its bytes are no longer counted. Reports a closed
// heap.
[[nodiscard]] bool leave_heap(Run* run);

// For a claimed block of a heap when its lock can't be waited for: the heap's next use frees it.
void leave_heap_later(Run* run);

// The live block leaves its heap to become `bytes` long, which are counted now in place of its own. false: the limit
// forbids it, or it is not there any more. It comes back, perhaps as another, by adopt_block(), or as it was.
bool take_for_resize(UserHeap& heap, Run* run, std::size_t bytes);
void restore_block(UserHeap& heap, Run* run, std::size_t counted_bytes, std::size_t bytes);

// Frees all that a closed heap holds. Time by the number of slabs and blocks.
void bury(UserHeap& heap);

// Gives back empty slabs and free pages of the others, of up to `budget` slabs that were left alone, or, `at_once`, of
// any. Returns how many slabs those were. Caller holds the heap's lock.
int purge_heap(UserHeap& heap, int budget, bool at_once);
void release_empty_slabs(UserHeap& heap);

// In tier:hardened destroyed slabs and blocks keep their addresses for a while. Gives all of them up.
void end_quarantine();

// The number of the heap that a slab or block is of; 0: of none.
inline std::uint32_t heap_number(const Slab* slab) {
  // relaxed: constant while an object of the slab lives
  return slab->owner.load(std::memory_order_relaxed) == kOwnerHeap ? slab->last_owner.load(std::memory_order_relaxed)
                                                                   : 0;
}
inline std::uint32_t heap_number(const Run* run) {
  return run->last_owner.load(std::memory_order_relaxed);  // relaxed: constant while the block lives
}

}  // namespace brimful::slots
