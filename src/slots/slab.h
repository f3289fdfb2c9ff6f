// SPDX-License-Identifier: MIT
//
// What a slab's words say, and making and unmaking slabs.
#pragma once

#include <cstdint>

#include "base/bits.h"
#include "base/compiler.h"
#include "meta/header.h"

namespace brimful::slots {

inline Listed listed(const Slab* slab) {
  return slab->listed.load(std::memory_order_relaxed);  // relaxed: exact for holders of the list's lock
}
inline void set_listed(Slab* slab, Listed where) {
  slab->listed.store(where, std::memory_order_relaxed);  // relaxed: the list's lock orders it
}

inline constexpr std::uint64_t kAllFree = ~std::uint64_t{0};

// How many groups of objects of so many bytes lie in a page, at least 1: the step in which a fresh slab is opened.
constexpr unsigned groups_of_a_page(std::uint32_t bytes) {
  constexpr std::uint32_t kStepBytes = 4096;
  const std::uint32_t groups = kStepBytes / (bytes * kGroupObjects);
  return groups > 0 ? groups : 1;
}

enum class Expected { kFew, kMany };

// A new slab of the class, every object free, owned by `owner`, listed nowhere; nullptr when there is no memory. How many
// objects of it are expected to live decides how much of its memory malloc goes to at once. Takes the heap lock.
Slab* make_slab(ClassId size_class, std::uint32_t owner, Expected expected = Expected::kMany);

// Free objects that make a group worth offering, at most: a quarter of what is offered at a time.
inline std::uint8_t most_wanted(const Slab* slab) {
  return static_cast<std::uint8_t>((kGroupObjects - slab->batch + 3) / 4);
}

// A slab that nobody can reach becomes free granules. Caller holds the heap lock.
void unmake_slab(Slab* slab, std::uint64_t now_ms);

// Gives a slab back whose objects are all free and that no list and no slot leads to. Takes the heap lock.
void release_slab(Slab* slab);

// Whether objects of a slab may be handed out meanwhile.
enum class InUse : bool { kNo, kYes };

// Gives back the pages of the slab that hold nothing but free objects. In use: objects that are free by its words and not
// offered, and the caller sees to it that none of them is offered meanwhile (slots/free_pages.cpp). System calls: one for
// each run of free pages.
void purge_slab(Slab* slab, InUse in_use);

// Enough has been freed since the slab was last purged. Notes it: the caller, who holds the list's lock, purges.
bool has_news(Slab* slab);

// Bits of the group that its owner knows to be free: a snapshot. Who acts on it holds the lock that makes it exact, or only
// decides what to look at.
inline std::uint64_t owner_bits(Slab* slab, unsigned group) {
  // pairs with: the owner's free (the object's last use). The offered word last: bits move from the word to it.
  const std::uint64_t word = slab->word(group).load(std::memory_order_acquire);
  return word | slab->offered(group).load(std::memory_order_acquire);  // pairs with: as above
}

// Bits of the group free by any account. Exact when nobody allocates from or frees to the group.
inline std::uint64_t free_bits(Slab* slab, unsigned group) {
  // pairs with: tell_owner() (the objects' last use)
  return owner_bits(slab, group) | slab->remote(group).load(std::memory_order_acquire);
}

// The context that owns a slab, without the mark; specials stay what they are.
inline std::uint32_t owner_id(std::uint32_t owner) {
  return owner < kFirstSpecialOwner ? owner & ~kOwnerHasRemote : owner;
}

// Tells the context that owns the slab that it should collect remote masks before it frees again. Harmless on any
// header, so the slab may be gone already.
inline void mark_remote(Slab* slab) {
  std::uint32_t owner = slab->owner.load(std::memory_order_seq_cst);  // pairs with: collect_all() (our bits)
  while (owner < kOwnerHasRemote) {
    // pairs with: collect_all() (our bits)
    if (slab->owner.compare_exchange_weak(owner, owner | kOwnerHasRemote, std::memory_order_seq_cst)) return;
  }
}

inline bool is_all_free(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    if (free_bits(slab, g) != kAllFree) return false;
  }
  return true;
}

inline bool has_free(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    if (free_bits(slab, g) != 0) return true;
  }
  return false;
}

inline unsigned free_objects(Slab* slab) {
  unsigned count = 0;
  for (unsigned g = 0; g < slab->groups; ++g) count += count_ones(free_bits(slab, g));
  return count;
}

// How many groups are not all free: the events still to come before the slab is empty. At least 1.
inline std::int32_t busy_groups(Slab* slab) {
  std::int32_t count = 0;
  for (unsigned g = 0; g < slab->groups; ++g) {
    // relaxed: an estimate that only times a later look
    if (slab->word(g).load(std::memory_order_relaxed) != kAllFree) ++count;
  }
  return count > 0 ? count : 1;
}

// Objects of the group (a mask) are free already and were freed again: a report for each, behind which they are free once.
BRIMFUL_COLD void report_twice(Slab* slab, unsigned group, std::uint64_t mask);

// `mask` are objects that the caller holds between two places: taken from a magazine or the remote mask, not yet put
// anywhere. The owner's words must not hold them. One that they do was freed twice, by its owner and by another at about the
// same moment, and neither could see it. No false alarm: when malloc handed the object out, its bit was in neither word
// (also after an aborted offer: a slot leads to a group only when the offer is complete, which ends with each bit in
// one word), and since then it has been freed once, by which we hold it.
// Returns the mask without them, which is what still has to find a place.
[[nodiscard]] inline std::uint64_t without_twice(Slab* slab, unsigned group, std::uint64_t mask) {
  const std::uint64_t twice = mask & owner_bits(slab, group);
  if (BRIMFUL_LIKELY(twice == 0)) return mask;
  report_twice(slab, group, twice);
  return mask & ~twice;
}

// The same for a slab whose owner's words nobody else writes now (its context is taken apart, or it is given back): of two
// such frees one is still in the remote masks, and is taken out of them.
inline void check_uncollected(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    // pairs with: tell_owner() (a report's only interest is the bit)
    const std::uint64_t told = slab->remote(g).load(std::memory_order_acquire);
    const std::uint64_t kept = without_twice(slab, g, told);
    // relaxed: the objects stay free by the owner's words
    if (BRIMFUL_UNLIKELY(kept != told)) slab->remote(g).fetch_and(~(told & ~kept), std::memory_order_relaxed);
  }
}

// Takes the bits that other contexts freed in the group. The caller must give them a place: the word, or back.
inline std::uint64_t collect_remote(Slab* slab, unsigned group) {
  // relaxed: an empty mask needs no order; a full one is taken by the exchange below
  if (slab->remote(group).load(std::memory_order_relaxed) == 0) return 0;
  // pairs with: tell_owner() (what the freeing threads did with the objects before)
  return slab->remote(group).exchange(0, std::memory_order_acquire);
}

// Returns bits taken by collect_remote() that found no place. Always legal.
inline void return_remote(Slab* slab, unsigned group, std::uint64_t mask) {
  // pairs with: collect_remote() (the objects' last use)
  slab->remote(group).fetch_or(mask, std::memory_order_release);
}

}  // namespace brimful::slots
