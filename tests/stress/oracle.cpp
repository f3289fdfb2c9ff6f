// SPDX-License-Identifier: MIT
//
// The checking allocation calls; see oracle.h for what is checked and why there is no false alarm.
#include "oracle.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "shadow.h"
#include "subject.h"

namespace brimful::stress {
namespace {

constexpr size_t kLarge = 32 << 10;
constexpr size_t kMinimumAlignment = 16;
constexpr int kErrnoMark = 77;

// Live bytes in objects above 32 KiB; beyond this workers ask for smaller ones. Bounds the memory of a run.
constexpr size_t kLargeLimit = size_t{512} << 20;
size_t largest = kMaxSize;

thread_local Oracle* current = nullptr;

// A size at, one below or one above the upper end of one of brimful's size classes.
size_t class_edge(Random& random) {
  size_t edge;
  if (random.one_in(2)) {
    edge = 16 * random.between(1, 16);
  } else {
    const size_t doubling = size_t{256} << random.below(7);
    edge = doubling + doubling / 8 * random.between(1, 8);
  }
  return edge + random.between(0, 2) - 1;
}

}  // namespace

Totals totals;

void set_largest(size_t bytes) { largest = bytes; }

void set_current_oracle(Oracle* oracle) { current = oracle; }

const History* current_history() { return current == nullptr ? nullptr : &current->history(); }

void Oracle::initialize(unsigned index, uint64_t stream, uint64_t seed) {
  index_ = index;
  next_id_ = stream << 36;
  random_ = Random(seed, stream);
  register_history(index, &history_);
}

size_t Oracle::draw_size() {
  const uint64_t die = random_.below(10'000);
  size_t size;
  if (die < 4000) {
    size = random_.between(1, 128);
  } else if (die < 6500) {
    size = random_.between(129, 1024);
  } else if (die < 8000) {
    size = class_edge(random_);
  } else if (die < 9300) {
    size = random_.between(1025, kLarge);
  } else if (die < 9400) {
    size = 0;
  } else if (die < 9930) {
    size = random_.between(kLarge, 256 << 10);
  } else if (die < 9995) {
    size = random_.between(256 << 10, 2 << 20);
  } else {
    size = random_.between(2 << 20, kMaxSize);
  }
  if (size > largest) size %= largest;
  // relaxed: a soft limit; two threads may both just fit.
  if (size > kLarge && totals.large_bytes.load(std::memory_order_relaxed) + size > kLargeLimit) size %= kLarge;
  return size;
}

Object Oracle::adopt(void* pointer, size_t size, size_t alignment, Operation operation) {
  Object object{static_cast<std::byte*>(pointer), size, 0, ++next_id_, alignment};
  history_.note(operation, pointer, size, object.id);
  if (pointer == nullptr) {
    fail(nullptr, 0, "thread %u: NULL (errno %d) for %zu bytes aligned to %zu", index_, errno, size, alignment);
  }
  const uintptr_t address = reinterpret_cast<uintptr_t>(pointer);
  const size_t wanted = std::max(alignment, kMinimumAlignment);
  if (address % wanted != 0) fail(pointer, size, "thread %u: %p is not aligned to %zu", index_, pointer, wanted);
  object.usable = subject::usable_size(pointer);
  if (object.usable < size) {
    fail(pointer, size, "thread %u: usable size %zu of %p is below the %zu bytes asked for", index_, object.usable,
         pointer, size);
  }
  const uintptr_t overlap = Shadow::claim(address, object.usable);
  if (overlap != 0) {
    fail(pointer, object.usable, "thread %u: %p (%zu bytes, %zu usable) overlaps a live object at %#zx", index_,
         pointer, size, object.usable, overlap);
  }
  // relaxed: a soft limit.
  if (size > kLarge) totals.large_bytes.fetch_add(size, std::memory_order_relaxed);
  count(allocated_);
  return object;
}

void Oracle::disown(const Object& object) {
  const size_t usable = subject::usable_size(object.address);
  if (usable != object.usable) {
    fail(object.address, object.size, "thread %u: usable size of %p changed from %zu to %zu", index_,
         static_cast<void*>(object.address), object.usable, usable);
  }
  const uintptr_t missing = Shadow::release(reinterpret_cast<uintptr_t>(object.address), object.usable);
  if (missing != 0) {
    fail(object.address, object.size, "thread %u: the oracle's own shadow lost %#zx of a live object", index_, missing);
  }
  // relaxed: a soft limit.
  if (object.size > kLarge) totals.large_bytes.fetch_sub(object.size, std::memory_order_relaxed);
  count(released_);
}

void Oracle::check(const Object& object, const char* when) {
  const size_t offset = find_damage(object.address, object, object.size);
  if (offset != SIZE_MAX) {
    fail(object.address, object.size, "thread %u: byte %zu of %p (%zu bytes, id %llu) was overwritten; seen %s", index_,
         offset, static_cast<void*>(object.address), object.size, static_cast<unsigned long long>(object.id), when);
  }
}

Object Oracle::allocate(size_t size) {
  count(operations_);
  Object object;
  const uint64_t die = random_.below(100);
  if (die < 60) {
    object = adopt(subject::allocate(size), size, 0, Operation::kMalloc);
  } else if (die < 70) {
    object = adopt(subject::allocate_new(size), size, 0, Operation::kNew);
  } else if (die < 85) {
    const size_t count = size % 8 == 0 ? 8 : 1;
    object = adopt(subject::allocate_zeroed(count, size / count), size, 0, Operation::kCalloc);
    const size_t dirty = find_nonzero(object.address, size, object.id);
    if (dirty != SIZE_MAX) {
      fail(object.address, size, "thread %u: byte %zu of calloc's %p (%zu bytes) is not zero", index_, dirty,
           static_cast<void*>(object.address), size);
    }
  } else {
    // Alignments of 8 bytes to 64 KiB, now and then to 4 MiB.
    const size_t alignment = size_t{8} << random_.below(random_.one_in(50) ? 20 : 14);
    if (die < 90) {
      object = adopt(subject::allocate_aligned(alignment, size), size, alignment, Operation::kAlignedAlloc);
    } else if (die < 95) {
      object = adopt(subject::allocate_memalign(alignment, size), size, alignment, Operation::kMemalign);
    } else {
      void* pointer = nullptr;
      const int error = subject::allocate_posix(&pointer, alignment, size);
      if (error != 0) {
        fail(nullptr, 0, "thread %u: posix_memalign(%zu, %zu) failed with %d", index_, alignment, size, error);
      }
      object = adopt(pointer, size, alignment, Operation::kPosixMemalign);
    }
  }
  stamp(object);
  return object;
}

void Oracle::release(const Object& object) {
  count(operations_);
  check(object, "at its free");
  disown(object);
  const bool sized = random_.one_in(4);
  const bool by_realloc = !sized && object.alignment == 0 && random_.one_in(64);
  history_.note(by_realloc ? Operation::kReallocFree
                : sized    ? Operation::kFreeSized
                           : Operation::kFree,
                object.address, object.usable, object.id);
  if (by_realloc) {
    if (subject::reallocate(object.address, 0) != nullptr) {
      fail(object.address, object.size, "thread %u: realloc(%p, 0) did not return NULL", index_,
           static_cast<void*>(object.address));
    }
    return;
  }
  errno = kErrnoMark;
  if (!sized) {
    subject::release(object.address);
  } else if (object.alignment == 0) {
    subject::release_sized(object.address, object.size);
  } else {
    subject::release_aligned_sized(object.address, object.alignment, object.size);
  }
  if (errno != kErrnoMark) {
    fail(object.address, object.size, "thread %u: free(%p) left errno %d", index_, static_cast<void*>(object.address),
         errno);
  }
}

Object Oracle::resize(const Object& object, size_t size) {
  count(operations_);
  size = std::max<size_t>(size, 1);  // realloc to 0 frees; release() does that now and then
  check(object, "at its realloc");
  disown(object);
  history_.note(Operation::kReallocFrom, object.address, object.usable, object.id);
  const bool array = size % 4 == 0 && random_.one_in(2);
  void* moved =
      array ? subject::reallocate_array(object.address, size / 4, 4) : subject::reallocate(object.address, size);
  const Object resized = adopt(moved, size, 0, array ? Operation::kReallocArray : Operation::kRealloc);
  const size_t offset = find_damage(resized.address, object, size);
  if (offset != SIZE_MAX) {
    fail(resized.address, size, "thread %u: realloc(%p, %zu) from %zu bytes lost byte %zu; now at %p", index_,
         static_cast<void*>(object.address), size, object.size, offset, moved);
  }
  stamp(resized);
  return resized;
}

}  // namespace brimful::stress
