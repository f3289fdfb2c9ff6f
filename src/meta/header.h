// SPDX-License-Identifier: MIT
//
// Headers: what the granule table points at. They live in the metadata arena, never beside user memory, and their
// memory is never unmapped, so a stale pointer to one reads old data, not a fault.
//
//   granule table             header (64 bytes)        behind a slab's header
//   … │ ● │ ● │ … ──────────▶ start, multiplier, …     words[groups]    1 = freed here      written by the owner's free
//                                                      (all ones up to 64: no such objects)
//                                                      offered[groups]  1 = malloc may take  written by its malloc
//                                                      masks[groups]    1 = freed elsewhere  written by others' frees
//
// An object is free if any of the three bits says so (only an offer that was aborted leaves two of them set, until it is
// done again), or while it lies in a magazine of another context. malloc takes from the offered word of the
// current group and free sets bits in the group's other word, so that neither waits for the other's store: on this one
// chain through memory a pair took 12 cycles (docs/design/0003). free() reads both words, so a double free is seen
// whichever holds the first one. When the offered word is used up, what was freed meanwhile is offered.
//
// Exact division. With size = odd · 2^k, an offset inside the slab is scaled by inverse(odd) · 2^(16−k) and rotated
// right by 16: for offset = i · size that gives i; for any other offset (misaligned, interior, before or behind the slab,
// a foreign address up to 2^52 away) it gives something not below the object count, because multiplication by an odd
// number permutes the residues. So ONE comparison proves that free() got the start of an object. Source: Granlund &
// Montgomery 1994, §9 (exact division and divisibility by the inverse).
// Rejected: the reciprocal with a shift (Lemire) needs three comparisons for the same proof.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "base/units.h"
#include "classes/size_classes.h"
#include "config/options.h"

namespace brimful {

enum class Kind : std::uint8_t {
  kNone,   // a granule that is not in use
  kSlab,   // objects of one class
  kLarge,  // one block of whole granules in a window
  kHuge,   // one block mapped on its own
};

// Special owners; a context's id is below all of them. 0xFFFFFFFF is arch::kNoContext, which owns nothing.
inline constexpr std::uint32_t kOwnerDetached = BRIMFUL_OWNER_DETACHED;  // full when it was let go, in no list
inline constexpr std::uint32_t kOwnerCentral = 0xFFFFFFF1U;              // in the central index of its class
inline constexpr std::uint32_t kOwnerShared = BRIMFUL_OWNER_SHARED;  // served under the central lock, object by object
inline constexpr std::uint32_t kOwnerReleased = 0xFFFFFFF3U;         // not a slab any more
inline constexpr std::uint32_t kOwnerMoving = 0xFFFFFFF4U;           // between a reclaimed context and its next state
inline constexpr std::uint32_t kOwnerHeap = 0xFFFFFFF7U;  // a program's heap (slots/user_heap.h) that last_owner names
// Sampled objects live in slabs of it (slots/samples.h): the free() of one leaves the fast path, where owners are compared.
inline constexpr std::uint32_t kOwnerSampled = 0xFFFFFFF9U;

// Of large and huge blocks; no slab has these.
inline constexpr std::uint32_t kOwnerLive = BRIMFUL_OWNER_LIVE;  // in use
// Freed, or on its way to another size (pages/large_run.h).
inline constexpr std::uint32_t kOwnerCached = BRIMFUL_OWNER_CACHED;

// Of slabs and large blocks of a destroyed heap, kept in tier:hardened so that late frees are known.
inline constexpr std::uint32_t kOwnerDestroyed = 0xFFFFFFF8U;

// Added to a context's id: others have freed objects of the slab, or may have. The owner's fast path then takes the slab
// for somebody else's and goes where they are collected first, so that a second free of such an object is found.
inline constexpr std::uint32_t kOwnerHasRemote = BRIMFUL_OWNER_HAS_REMOTE;
inline constexpr std::uint32_t kFirstSpecialOwner = kOwnerDetached;

// The class of headers that are no slab's: no request has it.
inline constexpr ClassId kNoClass = 0xFF;

// A large block is an object by itself: its start is number 0, and no other address that a program can have gives a
// number below kMaxObjects. The addresses that would be numbers n = 1 … 4095 lie n · (2^35 + 1) granules away, which is
// further than the 2^48 bytes of an address space, whichever way round it is counted. The table leads there from other
// addresses than its own: it is indexed by a few bits.
inline constexpr std::uint64_t kRunMultiplier = classes_detail::inverse((std::uint64_t{1} << 35) + 1);

struct Header {
  std::uint64_t start;       // address of the first byte
  std::uint64_t multiplier;  // slabs: of the class; large and huge blocks: kRunMultiplier
  // That may be used: slabs: of each object, with its canary, if it has one; large and huge blocks: from start on; else 0.
  std::uint64_t bytes;
  // A context's id or kOwner…; changed by its owner, by a CAS from an ownerless state, or under the list's lock.
  std::atomic<std::uint32_t> owner;
  // Who detached it; written before owner becomes kOwnerDetached. Of a heap's slabs and blocks: the heap's number (else 0).
  std::atomic<std::uint32_t> last_owner;
  // Groups still to become all free before somebody looks; lossy by design. Of a heap's slabs: live objects, its lock.
  std::atomic<std::int32_t> countdown;
  Kind kind;
  ClassId size_class;
  std::uint16_t groups;
};

// What is written down of the objects of a group when offers are chosen (slots/offer_book.h), by who may offer them.
struct GroupBook {
  std::uint64_t used;     // were offered since the slab was made
  std::uint64_t ripe;     // of the free ones: have waited long enough
  std::uint64_t waiting;  // were free at the last turn of the quarantine, and not ripe
};
struct OfferBook {
  std::uint64_t random;  // state of the slab's random numbers
  std::uint64_t offers;  // since the last turn
  bool is_sealed;        // its end, or all of it, can't be accessed (slots/slab_guard.h)
};

// Where a slab is linked. Guarded by the lock of that list (its owner's context lock, or the central lock).
enum class Listed : std::uint8_t { kNowhere, kCurrent, kQueue, kInbox, kCentral };

struct Slab : Header {
  Slab* next;
  Slab* prev;
  std::atomic<Listed> listed;
  std::uint8_t idle_ticks;  // looks since it was queued, or that found it current and all free; its context's lock
  std::uint8_t batch;       // 64 less the objects of a group that are offered at a time; its context's lock guards it
  std::uint8_t least;       // free objects that malloc wants of a group; its context's lock guards it
  std::uint8_t opened;      // groups, from the first, that malloc goes to: 1 … groups; its context's lock guards it
  // Current: low bits of `scan` at the last look, looks that found the same; as above. Of a heap's slabs: no group below it
  // has a free object; its lock.
  std::uint8_t rest;
  std::uint16_t purged_at : 13;  // free objects when its free pages went back, 0 after it was in use; the list's lock
  std::uint16_t node : 3;        // the NUMA node its memory was taken for; as above

  std::uint64_t* words() { return reinterpret_cast<std::uint64_t*>(this + 1); }
  std::uint64_t* offered_words() { return words() + BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t); }
  std::atomic_ref<std::uint64_t> word(unsigned group) { return std::atomic_ref(words()[group]); }
  std::atomic_ref<std::uint64_t> offered(unsigned group) { return std::atomic_ref(offered_words()[group]); }

  // All objects are free; also behind the last group: see free in arch/. Word by word, as the arena clears it (meta/arena.cpp):
  // whoever told the last owner of a slab that lay here may still look at them.
  void free_all() {
    constexpr unsigned kWords = BRIMFUL_OFFERED_BEHIND / sizeof(std::uint64_t);
    for (unsigned i = 0; i < kWords; ++i) {
      word(i).store(~std::uint64_t{0}, std::memory_order_relaxed);  // relaxed: late readers take any value
    }
  }

  // What others freed of the group.
  std::atomic<std::uint64_t>& remote(unsigned group) { return remote(group, groups); }
  // The same for those who know how many groups there were, when the slab may be gone by now.
  std::atomic<std::uint64_t>& remote(unsigned group, unsigned of_groups) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(reinterpret_cast<char*>(this) +
                                                         remote_offset(of_groups))[group];
  }

  [[nodiscard]] const SizeClass& shape() const { return kSizeClasses[size_class]; }
  // Objects, live or free.
  [[nodiscard]] std::uint64_t count() const { return std::uint64_t{groups} * kGroupObjects; }
  [[nodiscard]] std::uint64_t object(std::uint64_t index) const { return start + index * shape().bytes; }
  // The number of the object that starts at `address`; anything else gives a number not below count().
  [[nodiscard]] std::uint64_t index_of(std::uint64_t address) const {
    return std::rotr((address - start) * multiplier, BRIMFUL_DIVISION_SHIFT);
  }

  static constexpr std::size_t bytes_without_book(unsigned groups) {
    return remote_offset(groups) + round_up(groups * sizeof(std::uint64_t), 64);
  }
  // What the header takes of the arena: with its book, where slabs have one.
  static std::size_t bytes_for(unsigned groups) {
    return bytes_without_book(groups) + (config::checks.books ? sizeof(OfferBook) + groups * sizeof(GroupBook) : 0);
  }
  // Of a slab with a book only.
  OfferBook& book() {
    return *reinterpret_cast<OfferBook*>(reinterpret_cast<char*>(this) + bytes_without_book(groups));
  }
  GroupBook& book(unsigned group) { return reinterpret_cast<GroupBook*>(&book() + 1)[group]; }

 private:
  // Behind the offered words, on cache lines of their own.
  static constexpr std::size_t remote_offset(unsigned groups) {
    return BRIMFUL_HEADER_OFFERED + round_up(groups * sizeof(std::uint64_t), 64);
  }
};

// A large (kLarge) or a huge block (kHuge).
struct Run : Header {
  Run* left;  // tree of huge blocks
  Run* right;
  Run* next;  // blocks whose free() waits for the heap lock; huge blocks that are kept
  Run* prev;
  std::uint64_t stamp_ms;  // kept huge blocks, and blocks in a stack (pages/run_stacks.h): when it was freed
  GranuleCount granules;
  bool dirty;                  // was another block before, so it holds anything
  std::uint16_t stack_offset;  // of the stack for blocks of this length; 0: none
  Run* heap_next;              // blocks of one heap; its lock
  Run* heap_prev;
  std::uint32_t sample;  // of a sampled block: its record's slot + 1 (slots/samples.h), and no stack takes it; else 0

  // `bytes`, changed by who has the block, without a lock, and read for statistics by anybody.
  void set_usable(std::uint64_t usable) {
    std::atomic_ref(bytes).store(usable, std::memory_order_relaxed);  // relaxed: a number by itself
  }
  [[nodiscard]] std::uint64_t usable() const {
    return std::atomic_ref(const_cast<std::uint64_t&>(bytes)).load(std::memory_order_relaxed);  // relaxed: as above
  }
};

static_assert(offsetof(Header, start) == BRIMFUL_HEADER_START);
static_assert(offsetof(Header, multiplier) == BRIMFUL_HEADER_MULTIPLIER);
static_assert(offsetof(Header, bytes) == BRIMFUL_HEADER_BYTES);
static_assert(offsetof(Header, owner) == BRIMFUL_HEADER_OWNER &&
              offsetof(Header, last_owner) == BRIMFUL_HEADER_LAST_OWNER);
static_assert(offsetof(Header, countdown) == BRIMFUL_HEADER_COUNTDOWN);
static_assert(offsetof(Header, size_class) == BRIMFUL_HEADER_CLASS);
static_assert(offsetof(Header, groups) == BRIMFUL_HEADER_GROUPS);
#pragma GCC diagnostic push
// A base class makes it "conditionally supported": gcc and clang do.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(offsetof(Slab, batch) == BRIMFUL_HEADER_BATCH && offsetof(Slab, least) == BRIMFUL_HEADER_LEAST &&
              offsetof(Slab, opened) == BRIMFUL_HEADER_OPENED);
static_assert(offsetof(Run, stamp_ms) == BRIMFUL_RUN_STAMP && offsetof(Run, dirty) == BRIMFUL_RUN_DIRTY &&
              offsetof(Run, stack_offset) == BRIMFUL_RUN_STACK);
#pragma GCC diagnostic pop
static_assert(sizeof(Header) == 40 && sizeof(Slab) == BRIMFUL_HEADER_WORDS);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace brimful
