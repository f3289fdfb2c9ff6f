// SPDX-License-Identifier: MIT
//
// alloc/large.h.
#include "alloc/large.h"

#include <string.h>

#include <atomic>

#include "alloc/emergency.h"
#include "arch/sequences.h"
#include "base/compiler.h"
#include "config/options.h"
#include "meta/misuse.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/limit.h"
#include "pages/purger.h"
#include "pages/run_cache.h"
#include "pages/run_stacks.h"
#include "slots/front_end.h"
#include "slots/run_stacks.h"
#include "slots/samples.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::alloc {
namespace {

// From here on moving page tables beats copying (a page: 20–50 ns against 400 ns and a fault). Each move can leave the
// kernel with one mapping more, so there are only so many.
constexpr std::size_t kMovePagesFrom = std::size_t{1} << 20;
constexpr unsigned kMostMoves = 512;
constinit unsigned moves = 0;  // guarded by the heap lock

// A request from here on that its own cache can't serve looks through all caches: fresh pages would cost more.
constexpr std::size_t kFlushAllFrom = 4 * kGranuleBytes;

// Blocks freed by nested signal handlers, linked through `next`, and addresses of which a handler could not know
// whether they are huge blocks.
struct Unknown {
  Unknown* next;
  std::uint64_t start;
};
constinit std::atomic<Run*> deferred{nullptr};
constinit std::atomic<Unknown*> deferred_unknown{nullptr};

template <class Node>
void push(std::atomic<Node*>& list, Node* node) {
  Node* head = list.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  do {
    node->next = head;
    // pairs with: free_deferred() (the node)
  } while (!list.compare_exchange_weak(head, node, std::memory_order_release,
                                       std::memory_order_relaxed));  // relaxed: tried again
}

Run* huge_at(std::uint64_t start) {
  Run* huge = pages::heap.huge.find(start);
  return huge != nullptr && huge->start == start ? huge : nullptr;
}

// Claims the block that starts at `start`; nullptr when there is none. The table answers for addresses outside of the
// windows, too, with the header of some other block.
Run* claim_at(std::uint64_t start) {
  Header* header = pages::heap.table.look_up(start);
  const bool is_large = header->kind == Kind::kLarge && header->start == start;
  Run* run = is_large ? static_cast<Run*>(header) : huge_at(start);
  return run != nullptr && claim_large(run, start) ? run : nullptr;
}

// The claimed block is free; one of a heap, whose lock comes before the one that is held here, is so when the heap is
// used next.
void free_or_leave(Run* run, std::uint64_t now_ms) {
  slots::heap_number(run) != 0 ? slots::leave_heap_later(run) : pages::free_block(run, now_ms);
}

void free_deferred_unknown(std::uint64_t now_ms) {
  Unknown* unknown = deferred_unknown.exchange(nullptr, std::memory_order_acquire);  // pairs with: push() (the nodes)
  while (unknown != nullptr) {
    Unknown* next = unknown->next;
    Run* run = claim_at(unknown->start);
    if (run != nullptr) {
      slots::end_sample(run, meta::kSampleFreeInHandler);
      clear_freed(run, run->start, run->start + run->bytes);
      free_or_leave(run, now_ms);
    } else {
      meta::report_bad_pointer("free", unknown->start, pages::heap.pages.was_used(unknown->start), nullptr);
    }
    arch::brimful_free(unknown);  // of the handlers' reserve: nothing but a bit, no lock
    unknown = next;
  }
}

bool has_deferred() {
  // relaxed: an empty list needs no order
  return deferred_unknown.load(std::memory_order_relaxed) != nullptr ||
         deferred.load(std::memory_order_relaxed) != nullptr;  // relaxed: as above
}

void free_deferred(std::uint64_t now_ms) {
  // relaxed: an empty list needs no order
  if (BRIMFUL_UNLIKELY(deferred_unknown.load(std::memory_order_relaxed) != nullptr)) free_deferred_unknown(now_ms);
  // relaxed: as above
  if (BRIMFUL_LIKELY(deferred.load(std::memory_order_relaxed) == nullptr)) return;
  Run* run = deferred.exchange(nullptr, std::memory_order_acquire);  // pairs with: push() (the links)
  while (run != nullptr) {
    Run* next = run->next;
    pages::free_block(run, now_ms);
    run = next;
  }
}

// In place, as far as the run's granules and free ones behind them go.
bool resize_in_place(Run* run, std::size_t usable, std::uint64_t now_ms) {
  pages::Heap& heap = pages::heap;
  const GranuleCount granules = GranuleCount::covering(usable);
  if (granules < run->granules) {
    const std::uint64_t keep_end = run->start + granules.bytes();
    heap.pages.free(keep_end, run->granules - granules, now_ms);
  } else if (granules > run->granules) {
    if (!pages::may_grow((granules - run->granules).bytes())) return false;
    const std::uint64_t end = run->start + run->granules.bytes();
    if (!heap.pages.extend(end, granules - run->granules)) {
      slots::flush_own_runs(UINT64_MAX);  // perhaps what is in the way is free
      pages::flush_cached_runs(UINT64_MAX);
      if (!heap.pages.extend(end, granules - run->granules)) return false;
    }
  }
  pages::set_length(run, granules);
  run->bytes = usable;
  return true;
}

// Another run of `usable` bytes that gets the pages of this one.
Run* resize_by_moving(Run* run, std::size_t usable, std::uint64_t now_ms) {
  if (run->bytes < kMovePagesFrom || moves >= kMostMoves) return nullptr;
  // The pages move, so what grows is the difference.
  if (usable > run->bytes && !pages::may_grow(usable - run->bytes)) return nullptr;
  Run* moved = pages::allocate_large_run(usable, kHugepageBytes);
  if (moved == nullptr) return nullptr;
  const std::size_t bytes = run->bytes < usable ? run->bytes : usable;
  if (!os::calls.move_pages(run->start, round_up(bytes, os::page_bytes()), moved->start)) {
    pages::free_large_run(moved, now_ms);
    return nullptr;
  }
  ++moves;
  pages::free_large_run(run, now_ms);
  return moved;
}

// A block of either kind; nullptr when there is no memory. Caller holds the heap lock.
Run* allocate_block(std::size_t usable, std::size_t alignment) {
  pages::Heap& heap = pages::heap;
  const bool may_map = config::on_exhaustion() == config::Exhaustion::kGrow;
  const bool fits =
      usable <= GranuleCount(UINT32_MAX >> 1).bytes() && alignment <= GranuleCount(UINT32_MAX >> 2).bytes();
  const std::size_t most = heap.pages.most_bytes();
  Run* run = nullptr;
  // The first request of all finds no window yet, so no limit either.
  if (fits && (most == 0 || !may_map || (usable <= most && alignment <= most))) {
    run = pages::allocate_large_run(usable, alignment);
  }
  if (run != nullptr || !may_map) return run;
  run = heap.huge.allocate(usable, alignment);
  if (run != nullptr) heap.pages.backing().prepare_mapping(run->start, run->bytes);
  return run;
}

// The claimed block waits in the running context's cache, where it is not too large for that.
void keep(Run* run, std::uint64_t now_ms) {
  const std::uint32_t id = slots::current_id();
  if (!has_deferred() && pages::keep_run(id, run, now_ms)) return;
  const sync::MutexLock guard(pages::heap.lock);
  free_deferred(now_ms);
  if (run->granules.bytes() <= pages::kMostCapacity) pages::flush_cached_runs_of(id);
  if (pages::keep_run(id, run, now_ms)) return;
  pages::free_large_run(run, now_ms);
}

void* resize_huge(std::uint64_t start, std::size_t usable) {
  const sync::MutexLock guard(pages::heap.lock);
  Run* run = huge_at(start);
  if (BRIMFUL_UNLIKELY(run == nullptr)) return nullptr;  // freed meanwhile: the free() that follows reports it
  if (usable > run->bytes && !pages::may_grow(usable - run->bytes)) return nullptr;
  return pages::heap.huge.resize(run, usable) ? reinterpret_cast<void*>(run->start) : nullptr;
}

}  // namespace

void* allocate_large_lightly(std::size_t bytes, std::size_t alignment) {
  // What handlers freed waits for somebody who takes the lock.
  if (bytes > pages::kMostCapacity || alignment > kGranuleBytes || has_deferred()) return nullptr;
  if (void* block = arch::brimful_take_run(bytes)) return block;
  const std::size_t usable = round_up(bytes != 0 ? bytes : 1, os::page_bytes());
  Run* run = pages::take_cached_run(slots::current_id(), GranuleCount::covering(usable));
  if (run == nullptr) return nullptr;
  run->set_usable(usable);
  run->dirty = true;
  pages::revive(run);
  return reinterpret_cast<void*>(run->start);
}

void* allocate_large(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMostBytes || alignment > kMostBytes) return nullptr;
  const std::size_t usable = round_up(bytes != 0 ? bytes : 1, os::page_bytes());
  const std::uint64_t now_ms = os::calls.now_ms();
  slots::tick(now_ms);
  pages::Heap& heap = pages::heap;
  pages::MemoryRange populate = {};
  Run* run = nullptr;
  {
    const sync::MutexLock guard(heap.lock);
    free_deferred(now_ms);
    if (!pages::may_grow(round_up(usable, kGranuleBytes))) return nullptr;
    if (alignment <= kGranuleBytes && usable < kHugepageBytes) run = pages::allocate_resident_run(usable);
    if (run == nullptr) {
      // Of other lengths than the caches hold: what they hold may join to it.
      slots::flush_own_runs(UINT64_MAX);
      usable < kFlushAllFrom ? pages::flush_cached_runs_of(slots::current_id()) : pages::flush_cached_runs(UINT64_MAX);
      run = allocate_block(usable, alignment);
    }
    if (run != nullptr) populate = heap.pages.backing().take_populate();
  }
  pages::populate(populate);
  return run != nullptr ? reinterpret_cast<void*>(run->start) : nullptr;
}

void clear_large(void* pointer, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uint64_t>(pointer);
  const Header* header = meta::header_of(start);
  if (header->kind == Kind::kLarge && header->start == start) {
    // The flags are of granules that only the caller owns, but they know nothing of what a cached block was used for.
    if (static_cast<const Run*>(header)->dirty) {
      memset(pointer, 0, bytes);
    } else {
      pages::heap.pages.clear(start, bytes);
    }
    return;
  }
  const Run* huge = nullptr;
  {
    const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
    huge = find_huge(start);
  }
  // A fresh mapping is zero as it comes; a kept one is made so without touching all of it.
  if (huge == nullptr || !huge->dirty) return;
  if (!os::calls.purge(start, huge->bytes)) memset(pointer, 0, bytes);  // locked in memory (mlock)
}

bool claim_large(Run* run, std::uint64_t start) { return pages::claim(run) && holds_claim(run, start); }

bool holds_claim(Run* run, std::uint64_t start) {
  if (BRIMFUL_LIKELY(run->start == start)) return true;
  pages::revive(run);
  return false;
}

void clear_freed(const Run* run, std::uint64_t from, std::uint64_t end) {
  constexpr std::uint64_t kMostCleared = 256 << 10;
  if (BRIMFUL_LIKELY(!config::checks.zero) || from >= end) return;
  const bool is_long = end - from > kMostCleared || run->kind == Kind::kHuge;
  const std::uint64_t first_page = round_up(from, os::page_bytes());
  if (is_long && os::calls.purge(first_page, end - first_page)) end = first_page;
  memset(reinterpret_cast<void*>(from), 0, end - from);
}

bool free_large_lightly(Run* run) {
  const std::uint64_t now_ms = os::calls.now_ms();
  slots::note_run_look(now_ms);
  if (pages::is_tick_due(now_ms) || has_deferred()) return false;
  return pages::keep_run(slots::current_id(), run, now_ms);
}

void free_large(Run* run) {
  const std::uint64_t now_ms = os::calls.now_ms();
  keep(run, now_ms);
  slots::tick(now_ms);
}

void free_large_nested(Run* run) { push(deferred, run); }

void free_large_of_heap(Run* run) {
  if (!slots::leave_heap(run)) return;
  if (run->kind != Kind::kHuge) return free_large(run);
  const sync::MutexLock guard(pages::heap.lock);
  pages::free_block(run, os::calls.now_ms());
}

bool free_huge(std::uint64_t start) {
  const std::uint64_t now_ms = os::calls.now_ms();
  Run* run = nullptr;
  bool is_of_heap = false;
  {
    const sync::MutexLock guard(pages::heap.lock);
    free_deferred(now_ms);
    run = claim_at(start);
    if (run == nullptr) return false;
    slots::end_sample(run, 0);
    clear_freed(run, start, start + run->bytes);
    is_of_heap = slots::heap_number(run) != 0;
    if (!is_of_heap) pages::free_block(run, now_ms);
  }
  if (is_of_heap) free_large_of_heap(run);
  slots::tick(now_ms);
  return true;
}

void free_huge_nested(std::uint64_t start) {
  auto* unknown = static_cast<Unknown*>(allocate_emergency(sizeof(Unknown), alignof(Unknown)));
  if (unknown == nullptr) return;
  unknown->start = start;
  push(deferred_unknown, unknown);
}

void* resize_large(Run* run, std::uint64_t start, std::size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const std::size_t usable = round_up(bytes, os::page_bytes());
  if (run->kind == Kind::kHuge) return resize_huge(start, usable);
  if (usable > GranuleCount(UINT32_MAX >> 1).bytes()) return nullptr;
  // Claimed, so that a free() of another thread meanwhile is reported.
  if (BRIMFUL_UNLIKELY(!claim_large(run, start))) return nullptr;  // the free() that follows reports it
  Run* resized = run;
  clear_freed(run, start + usable, start + run->bytes);
  if (GranuleCount::covering(usable) == run->granules) {
    run->set_usable(usable);
  } else {
    const std::uint64_t now_ms = os::calls.now_ms();
    slots::tick(now_ms);
    const sync::MutexLock guard(pages::heap.lock);
    if (!resize_in_place(run, usable, now_ms)) resized = resize_by_moving(run, usable, now_ms);
  }
  if (resized == nullptr) {
    pages::revive(run);
    return nullptr;
  }
  pages::revive(resized);
  return reinterpret_cast<void*>(resized->start);
}

Run* find_huge(std::uint64_t start) {
  const sync::MutexLock guard(pages::heap.lock);
  return huge_at(start);
}

}  // namespace brimful::alloc
