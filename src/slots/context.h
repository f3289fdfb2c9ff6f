// SPDX-License-Identifier: MIT
//
// A context: a number that at most one *running* thread holds at a time (a CPU's, or a thread's own), and what the
// allocator keeps for it.
//
//   slots[class]  {word ●, base}   the current group: malloc takes bits from *word              fast paths, sequences
//   pending[16]   {key, mask}      frees of other contexts' objects, up to 64 to an entry        sequences
//   ───────────────────────────────────────────────────────────────────────────────────────────────────────────────
//   queues[class] current slab, FIFO of partial slabs it owns                                    under `lock`
//   inbox         slabs adopted for this context by a thread that could not take `lock`           lock-free push
//
// Two kinds of state, two rules. What the fast paths write (group words, slots, pending entries, the owner of a slab)
// changes only in restartable sequences that verify the context. Lists change only under `lock`, which is only ever
// tried on allocation paths: a busy lock (its holder was preempted) means "use the central index", never waiting. A
// holder that migrated may finish its list work but can't install a group: the sequence refuses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "arch/layout.h"
#include "arch/sequences.h"
#include "base/list.h"
#include "meta/header.h"
#include "slots/events.h"
#include "sync/mutex.h"

namespace brimful {

struct Slot {
  std::uint64_t* word;  // never nullptr: an empty slot leads to arch::brimful_zero_word
  std::uint64_t base;   // address of the group's first object
};

struct PendingEntry {
  std::uint64_t key;   // slab address | group number; changes only while mask is 0
  std::uint64_t mask;  // objects of the group freed here, not yet told
};

struct ClassQueue {
  Slab* current;       // its groups fill the slot one after another
  List<Slab> partial;  // slabs this context owns, with free objects
  std::uint32_t scan;  // 1 + the group of `current` last offered: 1 … groups
};

inline constexpr std::size_t kPendingEntries = 16;
// Groups taken (up to 64 mallocs each) or emptied in a current slab until somebody looks whether time has passed.
inline constexpr std::int32_t kHeartbeat = 8;

struct alignas(64) Context {
  Slot slots[kClassCount];
  PendingEntry pending[kPendingEntries];
  std::uint32_t active_id;  // its id while sequences may run in it, else kNoContext. Written under `lock`
  std::uint32_t id;         // constant

  sync::ContextMutex lock;
  std::int32_t heartbeat;  // groups that malloc may still take without a look at the clock; lossy by design
  bool taken;              // a thread context that a thread holds; heap lock
  bool orphaned;           // its thread did not survive a fork; heap lock

  std::atomic<Slab*> inbox;
  std::atomic<std::uint64_t> active_ms;  // last slow path, for idle reclaim
  std::uint64_t swept_ms;                // last look for idle current slabs
  Context* next_free;                    // thread contexts that wait for a thread; heap lock
  Context* next_all;                     // every context there is; constant
  alignas(64) ClassQueue queues[kClassCount];
  slots::Events events;  // what slow paths did here; written by who runs here, read by reports
};

static_assert(sizeof(Slot) == 16 && offsetof(Context, slots) == 0);
static_assert(offsetof(Context, pending) == BRIMFUL_CONTEXT_PENDING);
static_assert(offsetof(Context, active_id) == BRIMFUL_CONTEXT_ACTIVE_ID);
static_assert(offsetof(Context, lock) == BRIMFUL_CONTEXT_LOCK && std::is_standard_layout_v<sync::ContextMutex>);
static_assert(offsetof(Context, heartbeat) == BRIMFUL_CONTEXT_HEARTBEAT);
static_assert(offsetof(Context, queues) == BRIMFUL_CONTEXT_QUEUES && sizeof(ClassQueue) == 32);
static_assert(offsetof(ClassQueue, current) == BRIMFUL_QUEUE_CURRENT &&
              offsetof(ClassQueue, scan) == BRIMFUL_QUEUE_SCAN);

}  // namespace brimful
