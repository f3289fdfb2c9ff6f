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
#include "slots/thread.h"

namespace brimful::alloc {
namespace {

// From here on moving page tables beats copying (a page: 20–50 ns against 400 ns and a fault). Each move can leave the
// kernel with one mapping more, so there are only so many.
constexpr std::size_t kMovePagesFrom = std::size_t{1} << 20;
constexpr unsigned kMostMoves = 512;
constinit unsigned moves = 0;  // guarded by the heap lock

// Blocks freed by nested signal handlers, linked through `next`, and addresses of which a handler could not know whether
// they are huge blocks.
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

Run* allocate_run(std::size_t usable, std::size_t alignment) {
  pages::Heap& heap = pages::heap;
  auto* run = static_cast<Run*>(heap.arena.allocate(sizeof(Run)));
  if (run == nullptr) return nullptr;
  const GranuleCount granules = GranuleCount::covering(usable);
  run->start = heap.pages.allocate(granules, alignment);
  if (run->start == 0) {
    heap.arena.free(run, sizeof(Run));
    return nullptr;
  }
  run->multiplier = 1;
  run->owner.store(kOwnerReleased, std::memory_order_relaxed);  // relaxed: guarded by the heap lock
  run->kind = Kind::kLarge;
  run->size_class = kNoClass;
  run->bytes = usable;
  run->granules = granules;
  heap.table.set(heap.table.id_of(run->start), run);
  return run;
}

// A block of either kind; nullptr when there is no memory.
Run* allocate_block(std::size_t usable, std::size_t alignment) {
  pages::Heap& heap = pages::heap;
  const bool may_map = config::on_exhaustion() == config::Exhaustion::kGrow;
  const bool fits =
      usable <= GranuleCount(UINT32_MAX >> 1).bytes() && alignment <= GranuleCount(UINT32_MAX >> 2).bytes();
  const std::size_t most = heap.pages.most_bytes();
  Run* run = nullptr;
  // The first request of all finds no window yet, so no limit either.
  if (fits && (most == 0 || !may_map || (usable <= most && alignment <= most))) run = allocate_run(usable, alignment);
  if (run != nullptr || !may_map) return run;
  run = heap.huge.allocate(usable, alignment);
  if (run != nullptr) heap.pages.backing().prepare_mapping(run->start, run->bytes);
  return run;
}

void free_run(Run* run, std::uint64_t now_ms) {
  pages::Heap& heap = pages::heap;
  const std::uint64_t start = run->start;
  const GranuleCount granules = run->granules;
  heap.table.clear(heap.table.id_of(start));
  run->kind = Kind::kNone;
  heap.arena.free(run, sizeof(Run));
  heap.pages.free(start, granules, now_ms);
}

void free_block(Run* run, std::uint64_t now_ms) {
  if (run->kind != Kind::kHuge) return free_run(run, now_ms);
  pages::heap.pages.backing().forget(run->start);
  pages::heap.huge.free(run);
}

Run* huge_at(std::uint64_t start) {
  Run* huge = pages::heap.huge.find(start);
  return huge != nullptr && huge->start == start ? huge : nullptr;
}

// The block that starts at `start`, or nullptr. What a caller found without the lock may be another's by now. The table
// answers for addresses outside of the windows, too, with the header of some other block.
Run* block_at(std::uint64_t start) {
  Header* header = pages::heap.table.look_up(start);
  if (header->kind == Kind::kLarge && header->start == start) return static_cast<Run*>(header);
  return huge_at(start);
}

void free_deferred_unknown(std::uint64_t now_ms) {
  Unknown* unknown = deferred_unknown.exchange(nullptr, std::memory_order_acquire);  // pairs with: push() (the nodes)
  while (unknown != nullptr) {
    Unknown* next = unknown->next;
    Run* run = block_at(unknown->start);
    if (run == nullptr) {
      meta::report_bad_pointer("free", unknown->start, pages::heap.pages.was_used(unknown->start), nullptr);
    }
    free_block(run, now_ms);
    arch::brimful_free(unknown);  // of the handlers' reserve: nothing but a bit, no lock
    unknown = next;
  }
}

void free_deferred(std::uint64_t now_ms) {
  // relaxed: an empty list needs no order
  if (BRIMFUL_UNLIKELY(deferred_unknown.load(std::memory_order_relaxed) != nullptr)) free_deferred_unknown(now_ms);
  // relaxed: as above
  if (BRIMFUL_LIKELY(deferred.load(std::memory_order_relaxed) == nullptr)) return;
  Run* run = deferred.exchange(nullptr, std::memory_order_acquire);  // pairs with: push() (the links)
  while (run != nullptr) {
    Run* next = run->next;
    free_block(run, now_ms);
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
    if (!heap.pages.extend(run->start + run->granules.bytes(), granules - run->granules)) return false;
  }
  run->granules = granules;
  run->bytes = usable;
  return true;
}

// Another run of `usable` bytes that gets the pages of this one.
Run* resize_by_moving(Run* run, std::size_t usable, std::uint64_t now_ms) {
  if (run->bytes < kMovePagesFrom || moves >= kMostMoves) return nullptr;
  Run* moved = allocate_run(usable, kHugepageBytes);
  if (moved == nullptr) return nullptr;
  const std::size_t bytes = run->bytes < usable ? run->bytes : usable;
  if (!os::calls.move_pages(run->start, round_up(bytes, os::page_bytes()), moved->start)) {
    free_run(moved, now_ms);
    return nullptr;
  }
  ++moves;
  free_run(run, now_ms);
  return moved;
}

}  // namespace

void* allocate_large(std::size_t bytes, std::size_t alignment) {
  if (bytes > kMostBytes || alignment > kMostBytes) return nullptr;
  const std::size_t usable = round_up(bytes != 0 ? bytes : 1, os::page_bytes());
  const std::uint64_t now_ms = os::calls.now_ms();
  pages::tick(now_ms);
  pages::Heap& heap = pages::heap;
  pages::MemoryRange populate = {};
  Run* run = nullptr;
  {
    const sync::MutexLock guard(heap.lock);
    free_deferred(now_ms);
    run = allocate_block(usable, alignment);
    if (run != nullptr) populate = heap.pages.backing().take_populate();
  }
  pages::populate(populate);
  return run != nullptr ? reinterpret_cast<void*>(run->start) : nullptr;
}

void clear_large(void* pointer, std::size_t bytes) {
  const auto start = reinterpret_cast<std::uint64_t>(pointer);
  pages::Heap& heap = pages::heap;
  bool in_window = false;
  {
    const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
    const sync::MutexLock guard(heap.lock);
    const Header* header = heap.table.look_up(start);
    in_window = header->kind == Kind::kLarge && header->start == start;
  }
  // Without the lock: the flags are of granules that only the caller owns. A mapping of its own is zero as it comes.
  if (in_window) heap.pages.clear(start, bytes);
}

bool free_large(std::uint64_t start) {
  const std::uint64_t now_ms = os::calls.now_ms();
  {
    const sync::MutexLock guard(pages::heap.lock);
    free_deferred(now_ms);
    Run* run = block_at(start);
    if (BRIMFUL_UNLIKELY(run == nullptr)) return false;
    free_block(run, now_ms);
  }
  pages::tick(now_ms);
  return true;
}

bool free_large_nested(Run* run) {
  // relaxed: only whether it was in the list before counts; the link is published below
  if (run->owner.exchange(kOwnerDetached, std::memory_order_relaxed) == kOwnerDetached) return false;
  push(deferred, run);
  return true;
}

void free_huge_nested(std::uint64_t start) {
  auto* unknown = static_cast<Unknown*>(allocate_emergency(sizeof(Unknown), alignof(Unknown)));
  if (unknown == nullptr) return;
  unknown->start = start;
  push(deferred_unknown, unknown);
}

void* resize_large(std::uint64_t start, std::size_t bytes) {
  if (bytes > kMostBytes) return nullptr;
  const std::size_t usable = round_up(bytes, os::page_bytes());
  const std::uint64_t now_ms = os::calls.now_ms();
  const sync::MutexLock guard(pages::heap.lock);
  Run* run = block_at(start);
  if (BRIMFUL_UNLIKELY(run == nullptr)) return nullptr;  // freed meanwhile: the free() that follows reports it
  if (run->bytes == usable) return reinterpret_cast<void*>(run->start);
  if (run->kind == Kind::kHuge) {
    return pages::heap.huge.resize(run, usable) ? reinterpret_cast<void*>(run->start) : nullptr;
  }
  if (usable > GranuleCount(UINT32_MAX >> 1).bytes()) return nullptr;
  if (resize_in_place(run, usable, now_ms)) return reinterpret_cast<void*>(run->start);
  Run* moved = resize_by_moving(run, usable, now_ms);
  return moved != nullptr ? reinterpret_cast<void*>(moved->start) : nullptr;
}

Run* find_huge(std::uint64_t start) {
  const sync::MutexLock guard(pages::heap.lock);
  return huge_at(start);
}

}  // namespace brimful::alloc
