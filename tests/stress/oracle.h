// SPDX-License-Identifier: MIT
//
// The oracle: allocation calls that check everything a caller may rely on, for one worker thread.
//
// Checked at every call: alignment, usable size (at least the request, and the same for the object's whole
// life), that no other live object shares a byte (shadow.h), that calloc's memory is zero, that realloc kept
// the content, that the content is untouched until the free, that free leaves errno alone, and that a request
// of reasonable size succeeds. At quiescence: every object that was allocated has been freed, and the shadow
// is empty.
//
// Shadow rule: claim after the call that allocates, release before the call that frees. So between the two
// nobody else can be given these bytes without a collision, and there is no false alarm: the allocator can't
// hand the memory out again before it was called to free it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "object.h"
#include "random.h"
#include "report.h"

namespace brimful::stress {

inline constexpr size_t kMaxSize = size_t{64} << 20;

// Shared by all workers. Counts are relaxed sums, read for progress and at quiescence.
struct Totals {
  alignas(64) std::atomic<uint64_t> large_bytes;  // live, objects above 32 KiB only
  alignas(64) std::atomic<bool> stop;
};
extern Totals totals;

// The largest size that draw_size() gives; kMaxSize unless set.
void set_largest(size_t bytes);

class Oracle {
 public:
  // For memory that came zeroed from map_zeroed. `index` names the worker in reports; `stream` must differ
  // from every other initialisation's: it makes ids unique and picks the random numbers. May be called again
  // for a new thread.
  void initialize(unsigned index, uint64_t stream, uint64_t seed);

  // Allocates `size` bytes by a call drawn at random (malloc, calloc, aligned_alloc, …).
  Object allocate(size_t size);

  // Checks the content and frees by a call drawn at random among those that fit.
  void release(const Object& object);

  // Checks, resizes, checks again.
  Object resize(const Object& object, size_t size);

  // Checks the content only.
  void check(const Object& object, const char* when);

  // A size: mostly small, often at the edge of a size class, now and then up to 64 MiB.
  size_t draw_size();

  Random& random() { return random_; }
  History& history() { return history_; }
  unsigned index() const { return index_; }

  // Read by others for progress and by the final balance. Written by the owner only.
  uint64_t operations() const { return operations_.load(std::memory_order_relaxed); }  // relaxed: a statistic.
  uint64_t allocated() const { return allocated_.load(std::memory_order_relaxed); }    // relaxed: read after join.
  uint64_t released() const { return released_.load(std::memory_order_relaxed); }      // relaxed: read after join.

 private:
  Object adopt(void* pointer, size_t size, size_t alignment, Operation operation);
  void disown(const Object& object);
  static void count(std::atomic<uint64_t>& counter) {
    // relaxed: written by one thread only, so load and store make an increment without a locked instruction.
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  unsigned index_;
  uint64_t next_id_;
  Random random_;
  std::atomic<uint64_t> operations_;
  std::atomic<uint64_t> allocated_;
  std::atomic<uint64_t> released_;
  History history_;
};

// Makes `oracle` the calling thread's, for the crash report.
void set_current_oracle(Oracle* oracle);
const History* current_history();

}  // namespace brimful::stress
