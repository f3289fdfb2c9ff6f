// SPDX-License-Identifier: MIT
//
// alloc/emergency.h. One atomic word holds {pieces alive : 32, next offset : 32}, so that "the last piece was freed"
// and "start from the beginning" are one step.
#include "alloc/emergency.h"

#include <atomic>

#include "base/compiler.h"
#include "pages/heap.h"

namespace brimful::alloc {
namespace {

constexpr GranuleCount kGranules(16);
constexpr std::size_t kPrefix = 16;
constexpr std::uint64_t kOnePiece = std::uint64_t{1} << 32;
constexpr std::uint64_t kOffsetMask = kOnePiece - 1;

constinit std::atomic<Run*> reserve{nullptr};
constinit std::atomic<std::uint64_t> state{0};

std::uint64_t* size_of(std::uint64_t pointer) { return reinterpret_cast<std::uint64_t*>(pointer - kPrefix); }

}  // namespace

void prepare_emergency() {
  // relaxed: a hint; the heap lock decides
  if (BRIMFUL_LIKELY(reserve.load(std::memory_order_relaxed) != nullptr)) return;
  pages::Heap& heap = pages::heap;
  const sync::MutexLock guard(heap.lock);
  if (reserve.load(std::memory_order_relaxed) != nullptr) return;  // relaxed: under the lock
  auto* run = static_cast<Run*>(heap.arena.allocate(sizeof(Run)));
  if (run == nullptr) return;
  run->start = heap.pages.allocate(kGranules, kGranuleBytes);
  if (run->start == 0) {
    heap.arena.free(run, sizeof(Run));
    return;
  }
  run->multiplier = 1;
  run->kind = Kind::kEmergency;
  run->size_class = kNoClass;
  run->bytes = kGranules.bytes();
  heap.table.set_all(heap.table.id_of(run->start), kGranules, run);
  reserve.store(run, std::memory_order_release);  // pairs with: allocate_emergency() (the run)
}

void* allocate_emergency(std::size_t bytes, std::size_t alignment) {
  Run* run = reserve.load(std::memory_order_acquire);  // pairs with: prepare_emergency()
  if (run == nullptr || bytes > kGranules.bytes() || alignment > kGranules.bytes()) return nullptr;
  if (alignment < kObjectAlignment) alignment = kObjectAlignment;
  std::uint64_t old = state.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  for (;;) {
    const std::uint64_t offset = round_up((old & kOffsetMask) + kPrefix, alignment);
    const std::uint64_t end = round_up(offset + bytes, kObjectAlignment);
    if (end > kGranules.bytes()) return nullptr;
    const std::uint64_t updated = ((old & ~kOffsetMask) + kOnePiece) | end;
    // pairs with: free_emergency() (the last use of memory that starts anew)
    if (state.compare_exchange_weak(old, updated, std::memory_order_acquire,
                                    std::memory_order_relaxed)) {  // relaxed: tried again
      const std::uint64_t pointer = run->start + offset;
      *size_of(pointer) = end - offset;
      return reinterpret_cast<void*>(pointer);
    }
  }
}

bool free_emergency(std::uint64_t pointer) {
  if (pointer % kObjectAlignment != 0) return false;
  std::uint64_t old = state.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  for (;;) {
    if (old < kOnePiece) return false;
    const std::uint64_t fewer = old - kOnePiece;
    const std::uint64_t updated = fewer < kOnePiece ? 0 : fewer;
    // pairs with: allocate_emergency() (our last use of the piece)
    if (state.compare_exchange_weak(old, updated, std::memory_order_release,
                                    std::memory_order_relaxed)) {  // relaxed: tried again
      return true;
    }
  }
}

std::size_t emergency_bytes(std::uint64_t pointer) { return *size_of(pointer); }

}  // namespace brimful::alloc
