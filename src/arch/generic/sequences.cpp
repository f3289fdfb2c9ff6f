// SPDX-License-Identifier: MIT
//
// The sequences in C++ for builds where a context belongs to one thread: sanitizers, which must see each access, and CPUs
// without assembly. Nothing here restarts, so contexts are never shared (kRestartable is false) and an interrupted
// sequence is only a problem for a signal handler that allocates. The steps and their order are those of
// arch/x86_64/sequences.S; words are relaxed atomics because other threads read them.
#include "arch/sequences.h"

#include <atomic>
#include <bit>

namespace brimful::arch {
namespace {

// This layer knows the structures by arch/layout.h alone, as the assembly does.
template <class T>
std::atomic_ref<T> at(void* base, std::size_t offset) {
  return std::atomic_ref(*reinterpret_cast<T*>(static_cast<char*>(base) + offset));
}

// relaxed: the id belongs to this thread
std::uint32_t context_id() {
  auto* id = const_cast<std::uint32_t*>(brimful_thread.context_id);
  return std::atomic_ref(*id).load(std::memory_order_relaxed);  // relaxed: as above
}

// NOLINTNEXTLINE(readability-non-const-parameter): atomic_ref takes no const
std::uint64_t load(std::uint64_t* word) {
  return std::atomic_ref(*word).load(std::memory_order_relaxed);  // relaxed: one context writes the word
}

// NOLINTNEXTLINE(readability-non-const-parameter): atomic_ref takes no const
void store(std::uint64_t* word, std::uint64_t value) {
  // pairs with: owner_bits() (the last use of an object whose bit is set)
  std::atomic_ref(*word).store(value, std::memory_order_release);
}

std::uint8_t* block() { return reinterpret_cast<std::uint8_t*>(&brimful_block); }

bool runs_in(Context* context) {
  // relaxed: written by the context's own thread
  return at<std::uint32_t>(context, BRIMFUL_CONTEXT_ACTIVE_ID).load(std::memory_order_relaxed) == context_id();
}

std::uint64_t* word_of(Header* slab, std::uint64_t index, std::size_t words) {
  return reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(slab) + words) + index / 64;
}

std::uint64_t* magazine_of(void* context, std::uint64_t size_class) {
  return reinterpret_cast<std::uint64_t*>(static_cast<char*>(context) + BRIMFUL_CONTEXT_MAGAZINES +
                                          (size_class << BRIMFUL_MAGAZINE_SHIFT));
}

std::uint32_t load_count(void* context, std::uint64_t size_class) {
  // relaxed: one context writes the count
  return at<std::uint32_t>(context, BRIMFUL_CONTEXT_COUNTS + 4 * size_class).load(std::memory_order_relaxed);
}

void store_count(void* context, std::uint64_t size_class, std::uint32_t count) {
  // relaxed: read in the same context
  at<std::uint32_t>(context, BRIMFUL_CONTEXT_COUNTS + 4 * size_class).store(count, std::memory_order_relaxed);
}

Context* block_context() {
  const auto entry = static_cast<std::size_t>(1 + static_cast<std::int64_t>(static_cast<std::int32_t>(context_id())));
  // pairs with: make_context() (the context)
  return at<Context*>(block(), BRIMFUL_BLOCK_CONTEXTS + 8 * entry).load(std::memory_order_acquire);
}

void* take(Context* context, std::uint64_t doubled_class) {
  char* slot = reinterpret_cast<char*>(context) + 8 * doubled_class;
  // relaxed: our own slot
  std::uint64_t* word = at<std::uint64_t*>(slot, 0).load(std::memory_order_relaxed);
  const std::uint64_t bits = load(word);
  if (bits == 0) return nullptr;
  store(word, bits & (bits - 1));
  // relaxed: our own slot, and a constant
  const std::uint64_t base = at<std::uint64_t>(slot, 8).load(std::memory_order_relaxed);
  const std::uint64_t size = at<std::uint64_t>(block(), BRIMFUL_BLOCK_SIZES + 4 * doubled_class)
                                 .load(std::memory_order_relaxed);  // relaxed: ^
  return reinterpret_cast<void*>(base + static_cast<unsigned>(std::countr_zero(bits)) * size);
}

Header* header_of(std::uint64_t address) {
  // pairs with: GranuleTable::cover() (the table that goes with the mask)
  const std::uint64_t mask = std::atomic_ref(brimful_hot.granule_mask).load(std::memory_order_acquire);
  // relaxed: ordered by the mask
  return std::atomic_ref(brimful_hot.table).load(std::memory_order_relaxed)[(address >> 16) & mask];
}

std::uint64_t plain(Header* header, std::size_t offset) {
  return at<std::uint64_t>(header, offset).load(std::memory_order_relaxed);  // relaxed: constant for the header's life
}

std::uint64_t index_in(Header* header, std::uint64_t address) {
  const std::uint64_t scaled =
      (address - plain(header, BRIMFUL_HEADER_START)) * plain(header, BRIMFUL_HEADER_MULTIPLIER);
  return std::rotr(scaled, BRIMFUL_DIVISION_SHIFT);
}

}  // namespace

const bool kRestartable = false;

bool has_fast_advance() { return true; }

extern "C" {

void* brimful_malloc(std::size_t bytes) {
  if (bytes > BRIMFUL_MEDIUM_MAX) return brimful_malloc_slow(bytes);
  const std::size_t step = (bytes + (1U << BRIMFUL_MEDIUM_SHIFT) - 1) >> BRIMFUL_MEDIUM_SHIFT;
  const std::size_t entry = bytes <= BRIMFUL_SMALL_MAX ? BRIMFUL_BLOCK_SMALL + bytes : BRIMFUL_BLOCK_MEDIUM + step;
  void* object = take(block_context(), block()[entry]);
  return object != nullptr ? object : brimful_malloc_slow(bytes);
}

void* brimful_aligned_alloc(std::size_t alignment, std::size_t bytes) {
  const std::size_t less_one = (bytes - 1) | (alignment - 1);
  if ((alignment & (alignment - 1)) != 0 || less_one >= BRIMFUL_MEDIUM_MAX) {
    return brimful_aligned_alloc_slow(alignment, bytes);
  }
  return brimful_malloc(less_one + 1);
}

// The checks of arguments are not worth a second form.
void* brimful_memalign(std::size_t alignment, std::size_t bytes) { return brimful_memalign_slow(alignment, bytes); }

int brimful_posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  return brimful_posix_memalign_slow(result, alignment, bytes);
}

void* brimful_calloc(std::size_t count, std::size_t bytes) { return brimful_calloc_slow(count, bytes); }

void brimful_free(void* pointer) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  Header* header = header_of(address);
  const std::uint64_t index = index_in(header, address);
  if (index >= BRIMFUL_MAX_OBJECTS) return brimful_free_slow(pointer);
  switch (brimful_seq_free(header, index, 0)) {
    case Outcome::kDone:
      return;
    case Outcome::kAlreadySet:
      return brimful_free_twice(pointer);
    case Outcome::kGroupFree:
      // relaxed: lossy by design
      if (at<std::int32_t>(header, BRIMFUL_HEADER_COUNTDOWN).fetch_sub(1, std::memory_order_relaxed) <= 1) {
        brimful_free_event(header);
      }
      return;
    default:
      return brimful_free_slow(pointer);
  }
}

void brimful_free_sized(void* pointer, std::size_t bytes) {
  Header* header = header_of(reinterpret_cast<std::uint64_t>(pointer));
  // relaxed: constant for the header's life
  const std::uint8_t size_class = at<std::uint8_t>(header, BRIMFUL_HEADER_CLASS).load(std::memory_order_relaxed);
  if (bytes <= BRIMFUL_SMALL_MAX && block()[BRIMFUL_BLOCK_SMALL + bytes] / 2 == size_class)
    return brimful_free(pointer);
  brimful_free_sized_slow(pointer, bytes);
}

std::size_t brimful_usable_size(const void* pointer) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  Header* header = header_of(address);
  if (index_in(header, address) >= BRIMFUL_MAX_OBJECTS) return brimful_usable_size_slow(pointer);
  return plain(header, BRIMFUL_HEADER_BYTES);
}

void* brimful_realloc(void* pointer, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  Header* header = header_of(address);
  const std::uint64_t index = index_in(header, address);
  if (index >= BRIMFUL_MAX_OBJECTS) return brimful_realloc_slow(pointer, bytes);
  // pairs with: who gave this context the slab
  const std::uint32_t owner = at<std::uint32_t>(header, BRIMFUL_HEADER_OWNER).load(std::memory_order_acquire);
  if ((owner & BRIMFUL_OWNER_HAS_REMOTE) != 0) return brimful_realloc_slow(pointer, bytes);
  const std::uint64_t free =
      load(word_of(header, index, BRIMFUL_HEADER_WORDS)) | load(word_of(header, index, BRIMFUL_HEADER_OFFERED));
  const std::uint64_t usable = plain(header, BRIMFUL_HEADER_BYTES);
  const bool may_stay = bytes <= usable && usable - bytes < bytes;
  return (free >> (index % 64) & 1) == 0 && may_stay ? pointer : brimful_realloc_slow(pointer, bytes);
}

void* brimful_seq_take(Context* context, std::uint64_t doubled_class) {
  return runs_in(context) ? take(context, doubled_class) : nullptr;
}

// Without COARSE: here malloc offers all there is.
void* brimful_seq_take_freed(Context*, std::uint64_t) { return nullptr; }

Outcome brimful_seq_free(Header* slab, std::uint64_t index, std::uint32_t mark) {
  // pairs with: who gave this context the slab
  if (at<std::uint32_t>(slab, BRIMFUL_HEADER_OWNER).load(std::memory_order_acquire) != (context_id() | mark)) {
    return Outcome::kOtherContext;
  }
  std::uint64_t* word = word_of(slab, index, BRIMFUL_HEADER_WORDS);
  const std::uint64_t before = load(word);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  if (((before | load(word_of(slab, index, BRIMFUL_HEADER_OFFERED))) & bit) != 0) return Outcome::kAlreadySet;
  store(word, before | bit);
  return (before | bit) == ~std::uint64_t{0} ? Outcome::kGroupFree : Outcome::kDone;
}

// NOLINTNEXTLINE(readability-non-const-parameter): atomic_ref takes no const
Outcome brimful_seq_store32(Context* context, std::uint32_t* address, std::uint32_t value) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  // pairs with: acquire of the owner in free (the words as we leave them)
  std::atomic_ref(*address).store(value, std::memory_order_release);
  return Outcome::kDone;
}

Outcome brimful_seq_or(Context* context, std::uint64_t* word, std::uint64_t mask) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  if ((load(word) & mask) != 0) return Outcome::kAlreadySet;
  store(word, load(word) | mask);
  return Outcome::kDone;
}

Outcome brimful_seq_install(Context* context, void* slot, std::uint64_t* word, std::uint64_t base,
                            std::uint64_t places) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  std::uint64_t* offered = word + BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t);
  at<std::uint64_t*>(slot, 0).store(&brimful_zero_word, std::memory_order_relaxed);  // relaxed: our own slot
  at<std::uint64_t>(slot, 8).store(base, std::memory_order_relaxed);                 // relaxed: as above
  const std::uint64_t all = load(word) & ~load(offered);
  store(offered, load(offered) | (all & places));
  store(word, all & ~places);
  at<std::uint64_t*>(slot, 0).store(offered, std::memory_order_relaxed);  // relaxed: as above
  return Outcome::kDone;
}

Outcome brimful_seq_empty(Context* context, void* slot) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  at<std::uint64_t*>(slot, 0).store(&brimful_zero_word, std::memory_order_relaxed);  // relaxed: our own slot
  return Outcome::kDone;
}

Outcome brimful_seq_magazine_push(Context* context, std::uint64_t size_class, std::uint64_t object) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  const std::uint32_t count = load_count(context, size_class);
  std::uint64_t* magazine = magazine_of(context, size_class);
  for (std::uint32_t i = 0; i < count; ++i) {
    if (load(&magazine[i]) == object) return Outcome::kAlreadySet;
  }
  // relaxed: changes with the number of contexts
  if (count >= at<std::uint8_t>(block(), BRIMFUL_BLOCK_LIMITS + size_class).load(std::memory_order_relaxed)) {
    return Outcome::kRefused;
  }
  store(&magazine[count], object);
  store_count(context, size_class, count + 1);
  return Outcome::kDone;
}

Answer brimful_seq_magazine_take(Context* context, std::uint64_t size_class, std::uint64_t* into) {
  if (!runs_in(context)) return {Outcome::kOtherContext, 0};
  const std::uint32_t count = load_count(context, size_class);
  for (std::uint32_t i = 0; i < count; ++i) into[i] = load(&magazine_of(context, size_class)[i]);
  store_count(context, size_class, 0);
  return {Outcome::kDone, count};
}

// Large blocks wait in the run caches only.
Answer brimful_seq_runs_take(Context*, std::uint64_t, Run**) { return {Outcome::kOtherContext, 0}; }
void* brimful_take_run(std::size_t) { return nullptr; }

// Here push compares with all objects and needs no filter.
Outcome brimful_seq_magazine_forget(Context*, std::uint64_t) { return Outcome::kDone; }

#if defined(BRIMFUL_INTERPOSE) && BRIMFUL_INTERPOSE
// The standard names of the fast paths (as the labels at the end of x86_64/sequences.S).
#define BRIMFUL_ALIAS(type, name, target, ...) \
  __attribute__((visibility("default"), alias(#target))) type name(__VA_ARGS__)
void* brimful_new(std::size_t bytes) {
  void* object = brimful_malloc(bytes);
  return object != nullptr ? object : brimful_new_slow(bytes);
}
void* brimful_new_aligned(std::size_t bytes, std::size_t alignment) {
  return brimful_new_aligned_slow(bytes, alignment);
}
BRIMFUL_ALIAS(void*, malloc, brimful_malloc, std::size_t);
BRIMFUL_ALIAS(void*, __libc_malloc, brimful_malloc, std::size_t);
BRIMFUL_ALIAS(void*, _Znwm, brimful_new, std::size_t);
BRIMFUL_ALIAS(void*, _Znam, brimful_new, std::size_t);
BRIMFUL_ALIAS(void, free, brimful_free, void*);
BRIMFUL_ALIAS(void, cfree, brimful_free, void*);
BRIMFUL_ALIAS(void, __libc_free, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdlPv, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdaPv, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdlPvRKSt9nothrow_t, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdaPvRKSt9nothrow_t, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdlPvSt11align_val_t, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdaPvSt11align_val_t, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, brimful_free, void*);
BRIMFUL_ALIAS(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, brimful_free, void*);
BRIMFUL_ALIAS(void, free_sized, brimful_free_sized, void*, std::size_t);
BRIMFUL_ALIAS(std::size_t, malloc_usable_size, brimful_usable_size, void*);
BRIMFUL_ALIAS(void*, calloc, brimful_calloc, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, __libc_calloc, brimful_calloc, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, aligned_alloc, brimful_aligned_alloc, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, memalign, brimful_memalign, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, __libc_memalign, brimful_memalign, std::size_t, std::size_t);
BRIMFUL_ALIAS(int, posix_memalign, brimful_posix_memalign, void**, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, _ZnwmSt11align_val_t, brimful_new_aligned, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, _ZnamSt11align_val_t, brimful_new_aligned, std::size_t, std::size_t);
BRIMFUL_ALIAS(void*, realloc, brimful_realloc, void*, std::size_t);
BRIMFUL_ALIAS(void*, __libc_realloc, brimful_realloc, void*, std::size_t);
BRIMFUL_ALIAS(void, _ZdlPvm, brimful_free_sized, void*, std::size_t);
BRIMFUL_ALIAS(void, _ZdaPvm, brimful_free_sized, void*, std::size_t);
#endif

}  // extern "C"
}  // namespace brimful::arch
