// SPDX-License-Identifier: MIT
//
// The restartable sequences: every change of a word that the fast paths write happens in one of these.
//
// A sequence begins by storing its descriptor in the thread's rseq_cs, reads which context it runs in, verifies what
// it must, and ends with ONE store, the commit. If the thread is preempted, migrated or signalled in between, the
// kernel sends it to the abort handler and nothing has happened. So within one context sequences are atomic to each
// other, without a locked instruction. Stores before the commit are allowed only where every prefix of them is a legal
// state (install). Sources: rseq(2); Desnoyers, "Restartable sequences", LWN 697979; kernel/rseq.c.
//
// The same code serves threads that own a context alone: their id pointer leads to a number of their own, and their
// cs pointer still leads to the real rseq area where there is one, so that a signal handler that allocates aborts the
// sequence it interrupts.
//
// x86_64/ and aarch64/ hold the assembly, generic/ the same in C++ for threads-only builds (sanitizers, other CPUs).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "arch/layout.h"
#include "base/compiler.h"

namespace brimful {
struct Header;
struct Context;
struct Block;
struct Run;

namespace arch {

// true when sequences are restartable, so that contexts may be shared by the threads of a CPU.
extern const bool kRestartable;

// true when this CPU has what malloc needs to go on to the next group by itself; else contexts' heartbeats stay at 0.
bool has_fast_advance();

// Reached by the fast paths through the thread pointer. Both pointers start at dummies, so that a thread's first call goes
// the slow way without a test for it.
struct ThreadArea {
  const std::uint32_t* context_id;  // read in every sequence; the kernel or this thread writes it
  std::uint64_t* rseq_cs;           // written by every sequence
#if BRIMFUL_THREAD_TABLES
  // The same for every thread, and constant: docs/design/0041.
  const void* block;
  const void* contexts;  // the entry of id 0
  const void* sizes;
  const void* section;  // the descriptor of malloc's section; others are found from it
  const void* hot;
  const void* free_section;
#endif
};

// The id of no context: a thread that has not been attached, or can't be. Its table entry is the empty context.
inline constexpr std::uint32_t kNoContext = 0xFFFFFFFFU;

// What a sequence answered.
enum class Outcome : std::uint64_t {
  kDone = 0,
  kOtherContext = 1,  // this thread does not run in the context (or not in the owner's) any more
  kAborted = 2,       // interrupted before the commit: nothing happened
  kRefused = 3,       // no room
  kAlreadySet = 4,    // the object was free before: a double free
  kGroupFree = 5,     // done, and the group's 64 objects are now all free
};

struct Answer {
  Outcome outcome;
  std::uint64_t value;
};

extern "C" {

// The granule table, for free. Written by start-up and table growth only.
struct alignas(64) brimful_hot_globals {
  Header* const* table;
  std::uint64_t granule_mask;
  // Multiples of an alignment up to which its requests are malloc's: the first of 1-byte steps, the second of all classes. 0
  // until the options are known, and where the classes of requests leave room for canaries (meta/request_class.h).
  std::uint64_t aligned_small = 0;
  std::uint64_t aligned_most = 0;
#if BRIMFUL_THREAD_TABLES
  std::uint64_t page_less_one = 0;  // the system's page size, less one
#endif
};
static_assert(offsetof(brimful_hot_globals, table) == BRIMFUL_HOT_TABLE);
static_assert(offsetof(brimful_hot_globals, granule_mask) == BRIMFUL_HOT_MASK);
static_assert(offsetof(brimful_hot_globals, aligned_small) == BRIMFUL_HOT_ALIGNED_SMALL &&
              offsetof(brimful_hot_globals, aligned_most) == BRIMFUL_HOT_ALIGNED_MOST);
BRIMFUL_HIDDEN extern brimful_hot_globals brimful_hot;
BRIMFUL_HIDDEN extern Block brimful_block;
BRIMFUL_HIDDEN extern BRIMFUL_TLS ThreadArea brimful_thread;

// The public fast paths; meta/block.h and slots/ describe what they do in words.
void* brimful_malloc(std::size_t bytes);
void brimful_free(void* pointer);
// free() that first checks that `bytes` names the object's class.
void brimful_free_sized(void* pointer, std::size_t bytes);
// Nothing but loads: the header, and the words for realloc(), which stays where it is while at least half is used.
std::size_t brimful_usable_size(const void* pointer);
void* brimful_realloc(void* pointer, std::size_t bytes);
// Objects on multiples of `alignment`, a power of two: malloc() of a little more.
void* brimful_aligned_alloc(std::size_t alignment, std::size_t bytes);
void* brimful_memalign(std::size_t alignment, std::size_t bytes);
int brimful_posix_memalign(void** result, std::size_t alignment, std::size_t bytes);
// malloc(), and memset() where the program may have written.
void* brimful_calloc(std::size_t count, std::size_t bytes);
// operator new: as malloc, but a failure goes to the new-handler and bad_alloc.
BRIMFUL_HIDDEN void* brimful_new(std::size_t bytes);
BRIMFUL_HIDDEN void* brimful_new_aligned(std::size_t bytes, std::size_t alignment);

// Where the fast paths go when they can't commit, or when the arguments are not those of an object of a class. Defined in
// alloc/ and, where C has rules about arguments and errno, in abi/.
BRIMFUL_HIDDEN void* brimful_malloc_slow(std::size_t bytes);
BRIMFUL_HIDDEN void* brimful_new_slow(std::size_t bytes);
BRIMFUL_HIDDEN void* brimful_new_aligned_slow(std::size_t bytes, std::size_t alignment);
BRIMFUL_HIDDEN void* brimful_aligned_alloc_slow(std::size_t alignment, std::size_t bytes);
BRIMFUL_HIDDEN void* brimful_memalign_slow(std::size_t alignment, std::size_t bytes);
BRIMFUL_HIDDEN int brimful_posix_memalign_slow(void** result, std::size_t alignment, std::size_t bytes);
BRIMFUL_HIDDEN void* brimful_calloc_slow(std::size_t count, std::size_t bytes);
BRIMFUL_HIDDEN void brimful_free_sized_slow(void* pointer, std::size_t bytes);
// No object of a slab, or nullptr.
BRIMFUL_HIDDEN std::size_t brimful_usable_size_slow(const void* pointer);
// It has to move, or others free objects of its slab, or it is no slab's object, or free.
BRIMFUL_HIDDEN void* brimful_realloc_slow(void* pointer, std::size_t bytes);
// The slab has another owner or none, or it is no slab's object, or the sequence was aborted.
BRIMFUL_HIDDEN void brimful_free_slow(void* pointer);
// The block, no live one any more since a free() claimed it, waits in no stack. It may be another than the one at `pointer`.
BRIMFUL_HIDDEN void brimful_free_claimed(Run* run, void* pointer);
// The object was free before.
BRIMFUL_HIDDEN void brimful_free_twice(void* pointer);
// The slab's countdown of groups that became all free ran out.
BRIMFUL_HIDDEN void brimful_free_event(Header* slab);

// Takes an object of a class (number doubled, as in the block's tables) from the context's current group. nullptr: none
// free, aborted, or this thread does not run in the context. As malloc on a hit, but of a context that may be closed or
// another's by now.
BRIMFUL_HIDDEN void* brimful_seq_take(Context* context, std::uint64_t doubled_class);
// The same of what has been freed to the group that the context's slot leads to, and was not offered again: nobody holds the
// context's lock, and it is not the class's next sample, of which it is counted off. As malloc takes objects of coarse classes,
// where it may do so by itself. What is not done there, is nullptr.
BRIMFUL_HIDDEN void* brimful_seq_take_freed(Context* context, std::uint64_t doubled_class);
// Frees object `index` if the slab's owner is the context this thread runs in, with `mark` (0 or kOwnerHasRemote) added.
BRIMFUL_HIDDEN Outcome brimful_seq_free(Header* slab, std::uint64_t index, std::uint32_t mark);
// *address = value.
BRIMFUL_HIDDEN Outcome brimful_seq_store32(Context* context, std::uint32_t* address, std::uint32_t value);
// *word |= mask, if the two have no bit in common.
BRIMFUL_HIDDEN Outcome brimful_seq_or(Context* context, std::uint64_t* word, std::uint64_t mask);
// Offers objects of a group: moves bits from its word to its offered word and lets the slot lead there, through the
// state "empty". Five stores (slot empty, base, offered word, word, slot), each prefix of them legal: with the slot empty
// nothing is taken from the group, an object is free if either word says so, and one that both name is not offered again.
// `places`: a mask of those that may be offered.
BRIMFUL_HIDDEN Outcome brimful_seq_install(Context* context, void* slot, std::uint64_t* word, std::uint64_t base,
                                           std::uint64_t places);
// The slot leads to no group.
BRIMFUL_HIDDEN Outcome brimful_seq_empty(Context* context, void* slot);
// Puts the address of a freed object into the context's magazine of the class. kAlreadySet: it lies there already.
// kRefused: the block's limit of objects lies there.
BRIMFUL_HIDDEN Outcome brimful_seq_magazine_push(Context* context, std::uint64_t size_class, std::uint64_t object);
// Takes all objects of the magazine: the value is how many are now at `into`.
BRIMFUL_HIDDEN Answer brimful_seq_magazine_take(Context* context, std::uint64_t size_class, std::uint64_t* into);
// Clears the filter of an empty magazine. kRefused: it is not empty.
BRIMFUL_HIDDEN Outcome brimful_seq_magazine_forget(Context* context, std::uint64_t size_class);
// Takes all blocks of so many granules off the context's stack: the value is how many are now at `into`.
BRIMFUL_HIDDEN Answer brimful_seq_runs_take(Context* context, std::uint64_t granules, Run** into);
// malloc() of a large block, as far as it goes without C++. nullptr: the stack is empty, or as brimful_seq_take().
BRIMFUL_HIDDEN void* brimful_take_run(std::size_t bytes);

// The word of a group that never has a free object; the target of empty slots.
BRIMFUL_HIDDEN extern std::uint64_t brimful_zero_word;

#if BRIMFUL_THREAD_TABLES
BRIMFUL_HIDDEN extern const char brimful_section_brimful_malloc[];
BRIMFUL_HIDDEN extern const char brimful_section_free[];
#endif
}

#if BRIMFUL_THREAD_TABLES
static_assert(offsetof(brimful_hot_globals, page_less_one) == BRIMFUL_HOT_PAGE);
static_assert(offsetof(ThreadArea, context_id) == BRIMFUL_THREAD_ID &&
              offsetof(ThreadArea, rseq_cs) == BRIMFUL_THREAD_CS &&
              offsetof(ThreadArea, block) == BRIMFUL_THREAD_BLOCK &&
              offsetof(ThreadArea, contexts) == BRIMFUL_THREAD_CONTEXTS &&
              offsetof(ThreadArea, sizes) == BRIMFUL_THREAD_SIZES &&
              offsetof(ThreadArea, section) == BRIMFUL_THREAD_SECTION &&
              offsetof(ThreadArea, hot) == BRIMFUL_THREAD_HOT &&
              offsetof(ThreadArea, free_section) == BRIMFUL_THREAD_FREE_SECTION);
#endif

// What a thread's area begins with. `B` is Block, which this layer can't see.
template <class B>
constexpr ThreadArea first_thread_area([[maybe_unused]] const B& block, const std::uint32_t* id, std::uint64_t* cs) {
#if BRIMFUL_THREAD_TABLES
  return {id,
          cs,
          &block,
          &block.contexts[1],
          &block.sizes[0],
          brimful_section_brimful_malloc,
          &brimful_hot,
          brimful_section_free};
#else
  return {id, cs};
#endif
}

// Tells the sequences how large the system's pages are, where they need to know. Before any block is allocated.
inline void set_page_bytes([[maybe_unused]] std::size_t (*page_bytes)()) {
#if BRIMFUL_THREAD_TABLES
  brimful_hot.page_less_one = page_bytes() - 1;
#endif
}

}  // namespace arch
}  // namespace brimful
