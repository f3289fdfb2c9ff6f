// SPDX-License-Identifier: MIT
//
// Scenarios: contexts, tables, lists, locks, caches of large blocks, guards, samples, heaps, the background thread.
#include <cstdlib>
#include <cstring>
#include <new>

#include "alloc/emergency.h"
#include "alloc/large.h"
#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "config/options.h"
#include "meta/granule_table.h"
#include "meta/live_map.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/run_cache.h"
#include "pages/run_stacks.h"
#include "slots/background.h"
#include "slots/freed_slots.h"
#include "slots/front_end.h"
#include "slots/guards.h"
#include "slots/samples.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots/user_heap.h"
#include "world.h"

namespace brimful::weak {
namespace {

using namespace brimful::slots;

// --- contexts are found by number and by the list

void start_library(unsigned) { brimful::slots::prepare(); }
void attach_first(unsigned thread) { thread == 0 ? attach(thread) : set_calls(thread); }
void make_and_find_context(unsigned thread) {
  if (thread == 1) return start_library(1);
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    if (context->id > 10) fail("a context is found that is not made yet");
  }
  const Context* other = context_of(contexts[0]->id + 1);
  if (other != nullptr && other->id != contexts[0]->id + 1) fail("as above, by its number");
}

// --- the table of granules: a header is found by an address

std::uint64_t next_start = 0;
void slab_to_come(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  Slab* next = make_slab(kClass, kOwnerMoving);
  next_start = next->start;
  release_slab(next);
}
void make_and_look_up(unsigned thread) {
  if (thread == 0) {
    make_slab(kClass, kOwnerMoving);
  } else {
    const Header* header = pages::heap.table.look_up(next_start);
    if (header->kind == Kind::kSlab && header->start != next_start) fail("a header that is not filled yet");
  }
}

// --- lists of freed slots

struct Freed {
  std::uint32_t next;
  std::uint32_t value;
};
Freed freed_records[4];
Freed* freed_record(std::uint32_t slot) { return &freed_records[slot - 1]; }
FreedSlots<freed_record>* freed_slots = nullptr;
alignas(FreedSlots<freed_record>) unsigned char freed_slots_memory[sizeof(FreedSlots<freed_record>)];
void begin_freed(unsigned thread) {
  if (thread == 0) freed_slots = new (freed_slots_memory) FreedSlots<freed_record>;
}
void push_and_collect(unsigned thread) {
  if (thread < 2) {
    freed_records[thread].value = 7;
    freed_slots->push(thread + 1);
  } else {
    freed_slots->collect([](std::uint32_t slot) {
      if (freed_record(slot)->value != 7) fail("a record that is not written yet");
    });
  }
}
void check_freed() {
  freed_slots->collect([](std::uint32_t) {});
  if (freed_slots->count() != 2) fail("a slot is lost");
}

// --- locks

sync::Mutex<sync::Rank::kHeap> mutex;
unsigned counter = 0;
void count_under_lock(unsigned) {
  mutex.lock();
  ++counter;
  mutex.unlock();
}
void try_under_lock(unsigned) {
  if (!mutex.try_lock()) return;
  ++counter;
  mutex.unlock();
}
void check_count() {
  if (counter != 2) fail("a count is lost");
}

void add_up_stacks(unsigned thread) {
  if (thread == 1) return start_library(1);
  pages::stacked_run_bytes();
}

// The table grows: who sees the longer mask finds its entries filled.
std::uint64_t first_uncovered = 0;
void fill_table(unsigned thread) {
  fill(thread);
  first_uncovered = pages::heap.table.covered();
}
void grow_and_look_up(unsigned thread) {
  meta::GranuleTable& table = pages::heap.table;
  if (thread == 0) {
    const sync::MutexLock guard(pages::heap.lock);
    table.cover(GranuleId(2 * table.covered()));
  } else {
    meta::header_of(first_uncovered << kGranuleShift);
  }
}

// --- the map of live objects

meta::LiveMap live_map;
constexpr std::uint64_t kWindow = std::uint64_t{1} << 32;
void add_and_find(unsigned thread) {
  if (thread == 0) {
    live_map.add_window(kWindow, std::size_t{8} << 20);
    live_map.cover(kWindow + 4096);
    live_map.set(kWindow);
  } else {
    (void)live_map.is_set(kWindow);
  }
}

// --- guarded objects

void* guarded = nullptr;
// The first comes when time has passed, and the next some ms later.
void* guard_another() {
  void* object = nullptr;
  while (object == nullptr) {
    pass_time(10);
    object = allocate_guarded(64);
  }
  return object;
}
void guard_one(unsigned thread) {
  attach(thread);
  if (thread == 0) guarded = guard_another();
}
void make_pool_and_ask(unsigned thread) {
  if (thread == 0) {
    guard_another();
  } else {
    if (is_guarded(1)) fail("an address of nobody's is guarded");
    guarded_use();
  }
}
void guard_and_count(unsigned thread) {
  if (thread == 0) {
    use(guard_another());
  } else {
    guarded_use();
  }
}
void free_guarded_and_look(unsigned thread) {
  const auto address = reinterpret_cast<std::uint64_t>(guarded);
  if (thread == 0) {
    use(guarded);
    free_guarded(address, "free");
  } else {
    const meta::GuardRecord* record = nearest_guarded(address);
    if (record == nullptr || state_of(*record) != meta::GuardState::kFreed) return;
    if (record->release.stack_bytes > meta::kGuardStackBytes) fail("a record that is not written yet");
    use(guarded);
  }
}

// --- sampled objects

void* sampled = nullptr;
void sample_one(unsigned thread) {
  attach(thread);
  if (thread == 0) sampled = allocate_sampled(kClass, 1000, 100000);
}
void sample_again(unsigned thread) {
  const auto* header = meta::header_of(reinterpret_cast<std::uint64_t>(sampled));
  if (thread == 0) {
    use(sampled);
    free_sampled(static_cast<Slab*>(const_cast<Header*>(header)), 0, false);
  } else {
    void* object = allocate_sampled(kClass, 1000, 100000);
    use(object);
  }
}

// --- caches of large blocks

Run* run = nullptr;
Run* other_run = nullptr;
Run* make_run(std::size_t bytes) {
  auto* made = static_cast<Run*>(meta::header_of(reinterpret_cast<std::uint64_t>(brimful_malloc(bytes))));
  if (!pages::claim(made)) std::abort();
  return made;
}
void make_runs(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  run = make_run(200000);
  other_run = make_run(200000);
}
void make_runs_and_keep_one(unsigned thread) {
  make_runs(thread);
  if (thread == 0) pages::keep_run(0, other_run, 5);
}
void keep_one(Run* one) {
  one->dirty = true;
  pages::keep_run(0, one, 5);
}
void flush_runs() {
  const sync::MutexLock guard(pages::heap.lock);
  pages::flush_cached_runs(UINT64_MAX);
}
void keep_and_flush(unsigned thread) { thread == 0 ? keep_one(run) : flush_runs(); }
void keep_and_take(unsigned thread) {
  if (thread == 0) return keep_one(run);
  Run* taken = pages::take_cached_run(0, run->granules);
  if (taken != nullptr) taken->dirty = false;
}
void check_flushed() {
  flush_runs();
  if (pages::cached_run_bytes() != 0) fail("a block stays in a cache that is taken for empty");
}

// --- the reserve of signal handlers

void* reserved = nullptr;
void prepare_reserve(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  alloc::prepare_emergency();
  const auto* header = meta::header_of(reinterpret_cast<std::uint64_t>(alloc::allocate_emergency(64, 16)));
  while (auto* object = alloc::allocate_emergency(64, 16)) {
    if (meta::header_of(reinterpret_cast<std::uint64_t>(object)) != header) break;
    reserved = object;
  }
}
void reserve_and_take(unsigned thread) {
  if (thread == 0) return alloc::prepare_emergency();
  void* object = alloc::allocate_emergency(64, 16);
  if (object != nullptr) use(object);
}
void free_and_take_reserved(unsigned thread) {
  if (thread == 0) {
    use(reserved);
    auto* of = static_cast<Slab*>(meta::header_of(reinterpret_cast<std::uint64_t>(reserved)));
    free_nested(of, of->index_of(reinterpret_cast<std::uint64_t>(reserved)));
  } else {
    void* object = alloc::allocate_emergency(64, 16);
    if (object == reserved) use(object);
  }
}

// --- large blocks that a handler freed while the heap lock was held

Run* live = nullptr;
void make_blocks(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  alloc::prepare_emergency();
  run = make_run(200000);
  other_run = static_cast<Run*>(meta::header_of(reinterpret_cast<std::uint64_t>(brimful_malloc(200000))));
  live = static_cast<Run*>(meta::header_of(reinterpret_cast<std::uint64_t>(brimful_malloc(200000))));
}
void defer_and_free(unsigned thread) {
  if (thread == 0) {
    run->dirty = true;
    alloc::free_large_nested(run);
  } else {
    alloc::free_huge(live->start);
  }
}
void defer_unknown_and_free(unsigned thread) {
  if (thread == 0) {
    alloc::free_huge_nested(other_run->start);
  } else {
    alloc::free_huge(live->start);
  }
}

// --- the background thread ends while the program relies on it

bool was_refused = false;
void start_background(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  config::options.background_thread = 1;
  brimful_malloc(std::size_t{8} << 20);
  keep_background_thread(1000);
  start_background_thread(reinterpret_cast<const void*>(&start_background), Call::kMalloc);
  pass_time(99000);
}
void end_and_rely(unsigned thread) {
  if (thread == 0) {
    run_started_thread();  // nothing to do for long, so it ends
  } else {
    thread_tries.store(0, std::memory_order_relaxed);
    keep_background_thread(100000);
    was_refused = thread_tries.load(std::memory_order_relaxed) == 0;
  }
}
void check_relied() {
  if (has_ended_thread && was_refused) fail("the thread has ended, and nobody starts another");
}

// --- a program's heaps

void open_and_find(unsigned thread) {
  if (thread == 0) {
    open_heap(0);
  } else if (const UserHeap* heap = heap_of_number(1)) {
    if (heap->number != 1) fail("a heap that is not filled yet");
  }
}
UserHeap* heap = nullptr;
void fill_heap(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  brimful_heap* handle = brimful_heap_create(0);
  heap = heap_of_number(1);
  for (auto*& object : objects) object = static_cast<std::uint64_t*>(brimful_heap_malloc(handle, kBytes));
  slab = static_cast<Slab*>(meta::header_of(reinterpret_cast<std::uint64_t>(objects[0])));
  run = static_cast<Run*>(meta::header_of(reinterpret_cast<std::uint64_t>(brimful_heap_malloc(handle, 200000))));
  if (!pages::claim(run)) std::abort();
}
void free_nested_and_take_over(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    free_in_heap_nested(slab, slab->index_of(reinterpret_cast<std::uint64_t>(objects[0])));
    run->dirty = true;
    leave_heap_later(run);
  } else {
    heap->lock.lock();
    take_over_nested(*heap);
    const bool is_free = (owner_bits(slab, 0) & std::uint64_t{1} << slab->index_of(reinterpret_cast<std::uint64_t>(objects[0]))) != 0;
    if (is_free) use(objects[0]);
    heap->lock.unlock();
  }
}
void check_taken_over() {
  heap->lock.lock();
  take_over_nested(*heap);
  if (heap->nested_blocks.load() != nullptr) fail("a block of a heap is lost");
  heap->lock.unlock();
}

const Scenario kScenarios[] = {
    {"make_and_find_context", 2, attach_first, make_and_find_context, nullptr, {1, 1}},
    {"make_and_look_up", 2, slab_to_come, make_and_look_up, nullptr, {1, 1}},
    {"add_up_stacks", 2, attach_first, add_up_stacks, nullptr, {1, 1}},
    {"grow_and_look_up", 2, fill_table, grow_and_look_up, nullptr, {2, 1}},
    {"add_and_find", 2, attach, add_and_find, nullptr, {2, 2}},
    {"make_pool_and_ask", 2, attach, make_pool_and_ask, nullptr, {1, 1}},
    {"guard_and_count", 2, guard_one, guard_and_count, nullptr, {1, 1}},
    {"free_guarded_and_look", 2, guard_one, free_guarded_and_look, nullptr, {2, 1}},
    {"sample_again", 2, sample_one, sample_again, nullptr, {2, 1}},
    {"keep_and_flush", 2, make_runs, keep_and_flush, check_flushed, {2, 1}},
    {"keep_another_and_flush", 2, make_runs_and_keep_one, keep_and_flush, check_flushed, {2, 1}},
    {"keep_and_take", 2, make_runs, keep_and_take, nullptr, {2, 1}},
    {"defer_and_free", 2, make_blocks, defer_and_free, nullptr, {2, 1}},
    {"defer_unknown_and_free", 2, make_blocks, defer_unknown_and_free, nullptr, {2, 1}},
    {"end_and_rely", 2, start_background, end_and_rely, check_relied, {3, 2}},
    {"start_at_once", 2, set_calls, start_library, nullptr, {1, 1}},
    {"reserve_and_take", 2, attach, reserve_and_take, nullptr, {1, 1}},
    {"free_and_take_reserved", 2, prepare_reserve, free_and_take_reserved, nullptr, {2, 1}},
    {"open_and_find", 2, attach, open_and_find, nullptr, {1, 2}},
    {"free_nested_and_take_over", 2, fill_heap, free_nested_and_take_over, check_taken_over, {2, 1}},
    {"push_and_collect", 3, begin_freed, push_and_collect, check_freed, {3, 2}},
    {"count_under_lock", 2, nullptr, count_under_lock, check_count, {2, 1}},
    {"try_under_lock", 2, nullptr, try_under_lock, nullptr, {2, 1}},
};

}  // namespace

std::span<const Scenario> other_scenarios() { return kScenarios; }

}  // namespace brimful::weak
