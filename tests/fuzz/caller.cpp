// SPDX-License-Identifier: MIT
//
// caller.h.
#include "caller.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>

#include "brimful/brimful.h"

// Of src/abi/jemalloc.cpp, which no header of ours declares.
extern "C" {
void* mallocx(std::size_t bytes, int flags);
void* rallocx(void* pointer, std::size_t bytes, int flags);
std::size_t xallocx(void* pointer, std::size_t bytes, std::size_t extra, int flags);
std::size_t sallocx(const void* pointer, int flags);
std::size_t nallocx(std::size_t bytes, int flags);
void dallocx(void* pointer, int flags);
void sdallocx(void* pointer, std::size_t bytes, int flags);
}

namespace brimful::fuzz {
namespace {

constexpr int kErrnoBefore = 12345;
constexpr std::size_t kSurelyThere = 64 << 10;  // a request of up to this must not fail

// Calls, and checks errno. jemalloc's own calls promise nothing of it where they return nothing.
enum class Refusal : bool { kSaysWhy, kIsSilent };

template <class Call>
auto call(Call function, Refusal refusal = Refusal::kSaysWhy) {
  errno = kErrnoBefore;
  auto* const result = function();
  const bool is_free = result == nullptr && refusal == Refusal::kIsSilent;
  expect(is_free || errno == (result != nullptr ? kErrnoBefore : ENOMEM),
         "errno is kept, and ENOMEM where nothing is returned", result);
  return result;
}

template <class Call>
void call_void(Call function) {
  errno = kErrnoBefore;
  function();
  expect(errno == kErrnoBefore, "errno is kept");
}

// Whether the run was given an option by which any request may fail.
bool is_limited() {
  static const bool limited = [] {
    const char* const options = std::getenv("BRIMFUL_CONF");
    return options != nullptr &&
           (std::strstr(options, "limit") != nullptr || std::strstr(options, "reserve") != nullptr ||
            std::strstr(options, "on_exhaustion") != nullptr);
  }();
  return limited;
}

}  // namespace

void Caller::add(void* start, std::size_t asked, std::size_t alignment, const void* owner, bool may_fail) {
  if (start == nullptr) {
    expect(may_fail || asked > kSurelyThere || alignment > kSurelyThere || is_limited(),
           "a small request does not fail");
    return;
  }
  Block block;
  block.start = static_cast<char*>(start);
  block.asked = asked;
  block.usable = brimful_usable_size(start);
  block.alignment = alignment;
  block.owner = brimful_heap_of(start);
  expect(block.owner == owner, "a block is of the heap that it was asked of", start);
  oracle_.add(block);
}

std::size_t Caller::any_block(Input& input) const { return input.below(oracle_.count()); }

void Caller::step(Input& input) {
  const std::uint8_t what = input.byte();
  const bool is_full = oracle_.count() >= kMostBlocks || oracle_.bytes() >= kMostBytes;
  if (what < 100) {
    if (!is_full) allocate(input);
  } else if (what < 180) {
    if (oracle_.count() != 0) free_one(any_block(input), input.byte());
  } else if (what < 210) {
    if (!is_full) resize(input);
  } else if (what < 232) {
    if (!is_full) use_heap(input);
  } else if (what < 246) {
    exchange(input);
  } else {
    ask(input);
  }
}

void Caller::allocate(Input& input) {
  const std::uint8_t way = input.byte() % 8;
  const std::size_t bytes = input.request_bytes();
  brimful_heap* const current = brimful_heap_current();
  const bool has_limit = current != nullptr;
  switch (way) {
    case 0:
    case 1:
      return add(call([&] { return brimful_malloc(bytes); }), bytes, 0, current, has_limit);
    case 2: {
      const std::size_t count = input.below(9);
      void* const start = call([&] { return brimful_calloc(count, bytes); });
      if (start != nullptr) expect_zeros(static_cast<const char*>(start), count * bytes);
      return add(start, start == nullptr ? ~std::size_t{0} : count * bytes, 0, current, has_limit);
    }
    case 3: {
      const std::size_t alignment = std::size_t{1} << input.below(24);
      return add(call([&] { return brimful_aligned_alloc(alignment, bytes); }), bytes, alignment, current, has_limit);
    }
    case 4: {
      const std::size_t wanted = input.number(2);
      void* const start = call([&] { return brimful_memalign(wanted, bytes); });
      const std::size_t alignment = std::bit_ceil(wanted);  // 1 of 0
      expect(reinterpret_cast<std::uintptr_t>(start) % alignment == 0, "memalign aligns", start);
      return add(start, bytes, 0, current, has_limit);
    }
    case 5: {
      const std::size_t alignment = std::size_t{8} << input.below(20);
      void* start = nullptr;
      errno = kErrnoBefore;
      const int fault = brimful_posix_memalign(&start, alignment, bytes);
      expect((fault == 0) == (start != nullptr), "posix_memalign returns a block or says why not");
      expect(errno == (fault == 0 ? kErrnoBefore : ENOMEM),
             "posix_memalign keeps errno, and says ENOMEM as glibc does");
      if (start != nullptr)
        expect(reinterpret_cast<std::uintptr_t>(start) % alignment == 0, "posix_memalign aligns", start);
      return add(start, bytes, 0, current, has_limit || alignment > kSurelyThere);
    }
    default: {
      const std::size_t wanted = std::max<std::size_t>(bytes, 1);
      const int flags = static_cast<int>(input.below(20)) | (input.flag() ? 0x40 : 0);
      const std::size_t promised = nallocx(wanted, flags);
      void* const start = call([&] { return mallocx(wanted, flags); }, Refusal::kIsSilent);
      add(start, wanted, 0, current, has_limit || (flags & 0x3f) > 16);
      if (start == nullptr) return;
      expect(promised >= wanted, "nallocx says at least what is asked for");
      if ((flags & 0x40) != 0) return;
      expect(sallocx(start, 0) == xallocx(start, wanted, 0, 0), "sallocx and xallocx agree", start);
    }
  }
}

void Caller::free_one(std::size_t number, std::uint8_t way) {
  const Block block = oracle_.take(number);
  expect(brimful_usable_size(block.start) == block.usable, "a usable size does not change", block.start);
  if (way % 4 == 1) {
    call_void([&] {
      if (block.alignment != 0) {
        brimful_free_aligned_sized(block.start, block.alignment, block.asked);
      } else {
        brimful_free(block.start);
      }
    });
  } else if (way % 4 == 2) {
    call_void([&] { dallocx(block.start, 0); });
  } else if (way % 4 == 3) {
    call_void([&] { sdallocx(block.start, std::max<std::size_t>(block.asked, 1), 0); });
  } else {
    call_void([&] { brimful_free(block.start); });
  }
}

void Caller::resize(Input& input) {
  const std::uint8_t way = input.byte() % 4;
  const std::size_t bytes = input.request_bytes();
  if (oracle_.count() == 0 || input.below(16) == 0) {
    if (bytes == 0) return;
    return add(call([&] { return brimful_realloc(nullptr, bytes); }), bytes, 0, brimful_heap_current(),
               brimful_heap_current() != nullptr);
  }
  const std::size_t number = any_block(input);
  const Block before = oracle_.take(number);
  std::size_t wanted = bytes;
  void* owner = before.owner;
  errno = kErrnoBefore;
  void* after = nullptr;
  bool is_silent = false;
  if (way == 0) {
    const std::size_t count = input.below(5);
    after = brimful_reallocarray(before.start, count, bytes);
    if (__builtin_mul_overflow(count, bytes, &wanted)) wanted = ~std::size_t{0};
  } else if (way == 1 && bytes != 0) {
    is_silent = true;
    after = rallocx(before.start, bytes, static_cast<int>(input.below(14)));
    // It may have moved because of its alignment, and then it is where this thread allocates.
    if (after != nullptr) owner = brimful_heap_of(after);
  } else if (way == 2 && heaps_[0].handle != nullptr) {
    after = brimful_heap_realloc(heaps_[0].handle, before.start, bytes);
    owner = heaps_[0].handle;
  } else {
    after = brimful_realloc(before.start, bytes);
  }
  if (after == nullptr && wanted == 0) return;  // freed
  if (after == nullptr) {
    expect(is_silent || errno == ENOMEM, "a realloc that fails says ENOMEM");
    expect_painted(before, before.usable);
    Block same = before;
    oracle_.add(same);
    return;
  }
  expect(errno == kErrnoBefore, "realloc keeps errno", after);
  Block moved = before;
  moved.start = static_cast<char*>(after);
  moved.usable = brimful_usable_size(after);
  // What of it lies behind the whole-painted part is at other offsets in the new block.
  const std::size_t kept =
      std::min({before.asked, wanted, before.usable <= 65536 && moved.usable <= 65536 ? wanted : 4096});
  for (std::size_t n = 0; n < kept; ++n) {
    expect(moved.start[n] == static_cast<char>(before.colour + n * 7), "realloc keeps what was written",
           moved.start + n);
  }
  moved.asked = wanted;
  moved.alignment = 0;
  expect(brimful_heap_of(after) == owner, "realloc leaves a block in its heap", after);
  moved.owner = owner;
  oracle_.add(moved);
}

void Caller::destroy_heap(std::size_t number) {
  Heap& heap = heaps_[number];
  if (brimful_heap_current() == heap.handle) {
    expect(brimful_heap_destroy(heap.handle) == EBUSY, "a heap in use is not destroyed", heap.handle);
    expect(brimful_heap_set_current(nullptr) == 0, "there may be no current heap");
  }
  oracle_.drop(heap.handle);
  expect(brimful_heap_destroy(heap.handle) == 0, "a heap is destroyed", heap.handle);
  heap = {};
}

void Caller::use_heap(Input& input) {
  const std::uint8_t what = input.byte() % 8;
  const std::size_t number = input.below(kMostHeaps);
  Heap& heap = heaps_[number];
  if (heap.handle == nullptr) {
    heap.limit = input.below(4) == 0 ? input.number(3) : 0;
    heap.handle = brimful_heap_create(heap.limit);
    expect(heap.handle != nullptr || is_limited(), "a heap is created");
    return;
  }
  const std::size_t bytes = what < 4 ? input.request_bytes() : 0;
  switch (what) {
    case 0:
    case 1:
      return add(call([&] { return brimful_heap_malloc(heap.handle, bytes); }), bytes, 0, heap.handle, heap.limit != 0);
    case 2: {
      const std::size_t count = input.below(5);
      void* const start = call([&] { return brimful_heap_calloc(heap.handle, count, bytes); });
      if (start != nullptr) expect_zeros(static_cast<const char*>(start), count * bytes);
      return add(start, start == nullptr ? ~std::size_t{0} : count * bytes, 0, heap.handle, heap.limit != 0);
    }
    case 3: {
      const std::size_t alignment = std::size_t{1} << input.below(20);
      return add(call([&] { return brimful_heap_aligned_alloc(heap.handle, alignment, bytes); }), bytes, alignment,
                 heap.handle, heap.limit != 0);
    }
    case 4:
      expect(brimful_heap_set_current(input.flag() ? heap.handle : nullptr) == 0, "a heap becomes current");
      return;
    case 5: {
      brimful_heap_stats stats = {};
      stats.size = sizeof stats;
      expect(brimful_heap_get_stats(heap.handle, &stats) == 0, "a heap has statistics");
      expect(stats.limit_bytes == heap.limit, "a heap has the limit that was set", heap.handle);
      std::size_t live = 0;
      for (std::size_t n = 0; n < oracle_.count(); ++n)
        live += oracle_.at(n).owner == heap.handle ? oracle_.at(n).usable : 0;
      expect(mailbox_ != nullptr || stats.live_bytes == live, "a heap counts its live bytes", heap.handle);
      return;
    }
    case 6:
      heap.limit = input.number(3);
      expect(brimful_heap_set_limit(heap.handle, heap.limit) == 0, "a limit is set");
      return;
    default:
      if (input.below(4) == 0) destroy_heap(number);
  }
}

void Caller::exchange(Input& input) {
  if (mailbox_ == nullptr) return oracle_.expect_all();
  std::atomic<Block*>& slot = mailbox_->slots[input.below(Mailbox::kSlots)];
  Block* mine = nullptr;
  if (oracle_.count() != 0 && input.flag()) {
    const std::size_t number = any_block(input);
    // A heap is destroyed by its own caller, who would not know of blocks that others hold.
    if (oracle_.at(number).owner == nullptr) mine = new Block(oracle_.take(number));
  }
  // Whoever takes it sees the block as it was when it was left there.
  Block* const found = slot.exchange(mine, std::memory_order_acq_rel);  // pairs with: itself (the block's bytes)
  if (found == nullptr) return;
  expect_painted(*found, found->usable);
  brimful_free(found->start);
  delete found;
}

void Caller::ask(Input& input) {
  static const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  std::int64_t number = 0;
  std::size_t size = sizeof number;
  switch (input.byte() % 8) {
    case 0:
    case 1:
      expect(brimful_set("arena.0.purge", nullptr, 0) == 0, "memory is given back");
      return;
    case 2: {
      std::uint64_t epoch = 1;
      expect(brimful_set("epoch", &epoch, sizeof epoch) == 0, "numbers are taken");
      return;
    }
    case 3: {
      brimful_memory_stats stats = {};
      stats.size = sizeof stats;
      stats.class_size = sizeof(brimful_class_memory);
      expect(brimful_get_memory_stats(&stats, nullptr, 0) == 0, "memory is counted");
      return;
    }
    case 4:
      expect(brimful_print_stats(nowhere, input.flag() ? BRIMFUL_FORMAT_JSON : BRIMFUL_FORMAT_TEXT) == 0,
             "statistics are printed");
      return;
    case 5:
      number = static_cast<std::int64_t>(input.below(3)) - 1;
      expect(brimful_set("brimful.purge_delay_ms", &number, size) == 0, "a delay is set");
      return;
    case 6:
      number = static_cast<std::int64_t>(input.below(2));
      brimful_set("brimful.purge", &number, size);
      return;
    default: {
      brimful_lock_stats stats = {};
      stats.size = sizeof stats;
      expect(brimful_get_lock_stats(BRIMFUL_LOCK_CENTRAL, input.number(2) % 32768, &stats) == 0, "locks are counted");
    }
  }
}

void Caller::finish() {
  brimful_heap_set_current(nullptr);
  for (std::size_t n = 0; n < kMostHeaps; ++n) {
    if (heaps_[n].handle != nullptr) destroy_heap(n);
  }
  while (oracle_.count() != 0) free_one(oracle_.count() - 1, 0);
}

}  // namespace brimful::fuzz
