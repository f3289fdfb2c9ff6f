// SPDX-License-Identifier: MIT
//
// The sequences in C++ for builds where a context belongs to one thread: sanitizers, which must see each access, and CPUs
// without assembly. Nothing here restarts, so contexts are never shared (kRestartable is false) and an interrupted
// sequence is only a problem for a signal handler that allocates. The steps and their order are those of
// arch/x86_64/sequences.S; words are relaxed atomics because other threads read them.
#include "arch/sequences.h"

#include <atomic>
#include <bit>

#include "meta/block.h"
#include "meta/header.h"
#include "slots/context.h"

namespace brimful::arch {
namespace {

// relaxed: the id belongs to this thread
std::uint32_t context_id() {
  return std::atomic_ref(*const_cast<std::uint32_t*>(brimful_thread.context_id)).load(std::memory_order_relaxed);
}

std::uint64_t load(std::uint64_t& word) {
  return std::atomic_ref(word).load(std::memory_order_relaxed);  // relaxed: one context writes the word
}

void store(std::uint64_t& word, std::uint64_t value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);  // relaxed: others only look
}

bool runs_in(Context* context) {
  // relaxed: written by the context's own thread
  return std::atomic_ref(context->active_id).load(std::memory_order_relaxed) == context_id();
}

void* take(std::uint64_t doubled_class) {
  const Block& tables = brimful_block;
  // pairs with: make_context() (the context)
  Context* context = tables.contexts[1 + static_cast<std::int32_t>(context_id())].load(std::memory_order_acquire);
  Slot& slot = context->slots[doubled_class / 2];
  std::uint64_t* word = std::atomic_ref(slot.word).load(std::memory_order_relaxed);  // relaxed: our own slot
  const std::uint64_t bits = load(*word);
  if (bits == 0) return nullptr;
  store(*word, bits & (bits - 1));
  return reinterpret_cast<void*>(slot.base + static_cast<unsigned>(std::countr_zero(bits)) *
                                                 tables.sizes[doubled_class / 2]);
}

Header* header_of(std::uint64_t address) {
  // relaxed: whoever has a pointer got it after its granule was covered
  const std::uint64_t mask = std::atomic_ref(brimful_hot.granule_mask).load(std::memory_order_relaxed);
  return brimful_hot.table[(address >> 16) & mask];
}

}  // namespace

const bool kRestartable = false;

extern "C" {

void* brimful_malloc(std::size_t bytes) {
  const Block& tables = brimful_block;
  if (bytes > BRIMFUL_MEDIUM_MAX) return brimful_malloc_slow(bytes);
  const std::size_t step = (bytes + (1U << BRIMFUL_MEDIUM_SHIFT) - 1) >> BRIMFUL_MEDIUM_SHIFT;
  void* object = take(bytes <= BRIMFUL_SMALL_MAX ? tables.small[bytes] : tables.medium[step]);
  return object != nullptr ? object : brimful_malloc_slow(bytes);
}

void brimful_free(void* pointer) {
  const auto address = reinterpret_cast<std::uint64_t>(pointer);
  Header* header = header_of(address);
  const std::uint64_t index =
      std::rotr((address - header->start) * header->multiplier, BRIMFUL_DIVISION_SHIFT);
  if (index >= header->count) return brimful_free_other(header, index);
  auto* slab = static_cast<Slab*>(header);
  switch (brimful_seq_free(slab, index)) {
    case Outcome::kDone:
      return;
    case Outcome::kAlreadySet:
      return brimful_free_twice(slab, index);
    case Outcome::kGroupFree:
      // relaxed: lossy by design
      if (slab->countdown.fetch_sub(1, std::memory_order_relaxed) <= 1) brimful_free_event(slab);
      return;
    default:
      return brimful_free_slow(slab, index);
  }
}

void brimful_free_sized(void* pointer, std::size_t bytes) {
  const Header* header = header_of(reinterpret_cast<std::uint64_t>(pointer));
  if (bytes <= BRIMFUL_SMALL_MAX && brimful_block.small[bytes] / 2 == header->size_class) return brimful_free(pointer);
  brimful_free_sized_slow(pointer, bytes);
}

void* brimful_seq_take(std::uint64_t doubled_class) { return take(doubled_class); }

Outcome brimful_seq_free(Header* header, std::uint64_t index) {
  auto* slab = static_cast<Slab*>(header);
  // pairs with: who gave this context the slab
  if (slab->owner.load(std::memory_order_acquire) != context_id()) return Outcome::kOtherContext;
  std::uint64_t& word = slab->words()[index / 64];
  const std::uint64_t before = load(word);
  const std::uint64_t bit = std::uint64_t{1} << (index % 64);
  // relaxed: this context's malloc writes it
  if (((before | slab->offered(index / 64).load(std::memory_order_relaxed)) & bit) != 0) return Outcome::kAlreadySet;
  store(word, before | bit);
  return (before | bit) == ~std::uint64_t{0} ? Outcome::kGroupFree : Outcome::kDone;
}

Outcome brimful_seq_store32(Context* context, std::uint32_t* address, std::uint32_t value) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  // pairs with: acquire of the owner in free (the words as we leave them)
  std::atomic_ref(*address).store(value, std::memory_order_release);
  return Outcome::kDone;
}

Outcome brimful_seq_or(Context* context, std::uint64_t* word, std::uint64_t mask) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  store(*word, load(*word) | mask);
  return Outcome::kDone;
}

Outcome brimful_seq_install(Context* context, void* slot, std::uint64_t* word, std::uint64_t base) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  auto* target = static_cast<Slot*>(slot);
  std::atomic_ref(target->word).store(&brimful_zero_word, std::memory_order_relaxed);  // relaxed: our own slot
  store(target->base, base);
  std::uint64_t& offered = word[BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t)];
  store(offered, load(offered) | load(*word));
  store(*word, 0);
  std::atomic_ref(target->word).store(&offered, std::memory_order_relaxed);  // relaxed: as above
  return Outcome::kDone;
}

Outcome brimful_seq_empty(Context* context, void* slot) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  // relaxed: our own slot
  std::atomic_ref(static_cast<Slot*>(slot)->word).store(&brimful_zero_word, std::memory_order_relaxed);
  return Outcome::kDone;
}

Answer brimful_seq_pending_add(Context* context, void* entry, std::uint64_t key, std::uint64_t bit) {
  if (!runs_in(context)) return {Outcome::kOtherContext, 0};
  auto* pending = static_cast<PendingEntry*>(entry);
  if (load(pending->key) != key) return {Outcome::kRefused, 0};
  const std::uint64_t mask = load(pending->mask);
  if ((mask & bit) != 0) return {Outcome::kAlreadySet, 0};
  store(pending->mask, mask | bit);
  return {Outcome::kDone, mask | bit};
}

Answer brimful_seq_pending_take(Context* context, void* entry, std::uint64_t key) {
  if (!runs_in(context)) return {Outcome::kOtherContext, 0};
  auto* pending = static_cast<PendingEntry*>(entry);
  if (load(pending->key) != key) return {Outcome::kRefused, 0};
  const std::uint64_t mask = load(pending->mask);
  store(pending->mask, 0);
  return {Outcome::kDone, mask};
}

Outcome brimful_seq_pending_claim(Context* context, void* entry, std::uint64_t key) {
  if (!runs_in(context)) return Outcome::kOtherContext;
  auto* pending = static_cast<PendingEntry*>(entry);
  if (load(pending->mask) != 0) return Outcome::kRefused;
  store(pending->key, key);
  return Outcome::kDone;
}

#if defined(BRIMFUL_INTERPOSE) && BRIMFUL_INTERPOSE
// The standard names of the fast paths (as the labels at the end of x86_64/sequences.S).
#define BRIMFUL_ALIAS(type, name, target, ...) \
  __attribute__((visibility("default"), alias(#target))) type name(__VA_ARGS__)
void* brimful_new(std::size_t bytes) {
  void* object = brimful_malloc(bytes);
  return object != nullptr ? object : brimful_new_slow(bytes);
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
BRIMFUL_ALIAS(void, _ZdlPvm, brimful_free_sized, void*, std::size_t);
BRIMFUL_ALIAS(void, _ZdaPvm, brimful_free_sized, void*, std::size_t);
#endif

}  // extern "C"
}  // namespace brimful::arch
