// SPDX-License-Identifier: MIT
//
// A context: a number that at most one *running* thread holds at a time (a CPU's, or a thread's own), and what the
// allocator keeps for it.
//
//   slots[class]  {word ●, base}   the current group: malloc takes bits from *word              fast paths, sequences
//   magazines     addresses        objects of others that were freed here, by class             sequences
//   run_stacks    headers          large blocks that were freed here, by length                 sequences
//   ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   queues[class] current slab, FIFO of partial slabs it owns                                    under `lock`
//   inbox         slabs adopted for this context by a thread that could not take `lock`           lock-free push
//
// Two kinds of state, two rules. What the fast paths write (group words, slots, magazines, the owner of a slab)
// changes only in restartable sequences that verify the context. Lists change only under `lock`, which is only ever
// tried on allocation paths: a busy lock (its holder was preempted) means "let others run, once, then use the central
// index", never waiting for it. A holder that migrated may finish its list work but can't install a group: the sequence refuses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arch/layout.h"
#include "arch/sequences.h"
#include "base/list.h"
#include "meta/header.h"
#include "pages/run_stacks.h"
#include "slots/events.h"
#include "slots/requests.h"
#include "slots/sample_point.h"
#include "sync/mutex.h"

namespace brimful {

struct Slot {
  std::uint64_t* word;  // never nullptr: an empty slot leads to arch::brimful_zero_word
  std::uint64_t base;   // address of the group's first object
};

struct ClassQueue {
  Slab* current;       // its groups fill the slot one after another
  List<Slab> partial;  // slabs this context owns, with free objects
  std::uint32_t scan;  // 1 + the group of `current` last offered: 1 … groups
  bool needs_many;     // the class had a slab here before, or is asked for more than others
};

inline constexpr std::size_t kMagazineObjects = (std::size_t{1} << BRIMFUL_MAGAZINE_SHIFT) / sizeof(std::uint64_t);
// Groups taken (up to 64 mallocs each) or emptied in a current slab until somebody looks whether time has passed.
inline constexpr std::int32_t kHeartbeat = 8;

struct alignas(64) Context {
  Slot slots[kClassCount];
  std::uint32_t counts[kClassCount];  // of the objects in each magazine
  std::uint32_t active_id;            // its id while sequences may run in it, else kNoContext. Written under `lock`
  std::uint32_t id;                   // constant

  sync::ContextMutex lock;
  // Until malloc looks at the clock: 8 for each group that it takes, 1 for each object of a coarse class; lossy by design.
  // C++ goes by beats_of() (slots/offers.h).
  std::int32_t heartbeat;
  std::int32_t until_look;  // objects that may go into magazines before one takes the slow path; lossy by design
  bool taken;               // a thread context that a thread holds; heap lock
  bool orphaned;            // its thread did not survive a fork; heap lock
  // Barriers abort what runs here, so another may take it apart. Written when it is taken.
  std::atomic<bool> is_closable;
  ClassId hot_class;  // whose malloc last found the heartbeat used up, and how often in a row; `lock`
  std::uint8_t hot_visits;
  std::uint8_t offer_step;  // how little malloc is offered, so that it comes by soon (slots/offers.h); lossy by design
  std::atomic<bool> is_sweeping;  // the last look for free pages has left some slabs over; written under `lock`

  std::int32_t slow_heartbeat;  // where `heartbeat` stays at 0: config::offers_by_hand()

  std::atomic<Slab*> inbox;
  std::atomic<std::uint64_t> active_ms;  // last slow path, for idle reclaim
  std::uint64_t swept_ms;                // last look for idle current slabs
  Context* next_free;                    // thread contexts that wait for a thread; heap lock
  Context* next_all;                     // every context there is; constant
  alignas(64) ClassQueue queues[kClassCount];
  slots::Events events;         // what slow paths did here; written by who runs here, read by reports
  slots::Requests requests;     // what was asked for on slow paths; likewise
  pages::RunStacks run_stacks;  // sequences
  // The empty context ends here (slots/start.h).
  alignas(64) slots::Sampling sampling;  // sequences, and who holds `lock` and runs here (slots/sampling.h)
  // Of the objects in a magazine: which values their hashes have. May name more, never fewer.
  alignas(64) std::uint64_t filters[kClassCount][8];
  // Addresses of objects freed here of slabs owned elsewhere: free, but their slabs don't know yet.
  std::uint64_t magazines[kClassCount][kMagazineObjects];

  [[nodiscard]] bool has_slabs_left_over() const {
    return is_sweeping.load(std::memory_order_relaxed);  // relaxed: says how soon to look again
  }
};

static_assert(sizeof(Slot) == 16 && offsetof(Context, slots) == 0);
static_assert(offsetof(Context, counts) == BRIMFUL_CONTEXT_COUNTS);
static_assert(offsetof(Context, run_stacks) == BRIMFUL_CONTEXT_RUN_STACKS);
static_assert(offsetof(Context, sampling) == BRIMFUL_CONTEXT_SAMPLES);
static_assert(offsetof(Context, filters) == BRIMFUL_CONTEXT_FILTERS && sizeof Context::filters[0] == 64);
static_assert(offsetof(Context, magazines) == BRIMFUL_CONTEXT_MAGAZINES);
static_assert(offsetof(Context, active_id) == BRIMFUL_CONTEXT_ACTIVE_ID);
static_assert(offsetof(Context, lock) == BRIMFUL_CONTEXT_LOCK && std::is_standard_layout_v<sync::ContextMutex>);
static_assert(offsetof(Context, heartbeat) == BRIMFUL_CONTEXT_HEARTBEAT);
static_assert(offsetof(Context, until_look) == BRIMFUL_CONTEXT_UNTIL_LOOK);
static_assert(offsetof(Context, queues) == BRIMFUL_CONTEXT_QUEUES && sizeof(ClassQueue) == 32);
static_assert(offsetof(ClassQueue, current) == BRIMFUL_QUEUE_CURRENT &&
              offsetof(ClassQueue, scan) == BRIMFUL_QUEUE_SCAN);

}  // namespace brimful
