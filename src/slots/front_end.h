// SPDX-License-Identifier: MIT
//
// The front end: objects up to 32 KiB. The hits are in arch/; this is where they go when they miss.
#pragma once

#include <cstdint>

#include "meta/header.h"
#include "slots/context.h"

namespace brimful::slots {

// An object of the class from the running context's current group: malloc's hit in C++. nullptr: a miss. Any moment.
void* take(ClassId size_class);

struct Allocation {
  void* object;
  // Not 0: there is no object yet, the request is a sample of this interval (slots/samples.h). Said once for it.
  std::uint64_t sample_interval;
  bool is_guarded;  // likewise: there is no object yet, it is to be a guarded one (slots/guards.h)
};

// An object of the class; nullptr when there is no memory. Refills the context's current group, or takes from a shared
// slab. Called inside a SlowScope that is not nested, after prepare().
Allocation allocate(ClassId size_class);

// An object for a request that was chosen, and can't be. Same conditions.
void* allocate_unsampled(ClassId size_class);

// Frees object `index` of the slab, whoever owns it. Same conditions.
void free(Slab* slab, std::uint64_t index);

// As free(), without a lock, for a caller that is in no slow path, or in one that a signal interrupted: objects of the
// running context's own slabs that others freed to, and those that go into a magazine. false: it has to be free().
bool free_lightly(Slab* slab, std::uint64_t index);

// As free(), from a signal handler that interrupted a slow path: takes no lock, releases nothing.
void free_nested(Slab* slab, std::uint64_t index);

// A slab's countdown ran out: release it if it is empty, and let time pass.
void on_countdown(Slab* slab);

// Time passes: purging, idle contexts, empty current slabs. Cheap when nothing is due.
void tick();

// As tick(), for slow paths of large blocks, which know the time and need no context. Nothing but a comparison when
// nothing is due.
void tick(std::uint64_t now_ms);

// Gives back the free pages of every slab that can be locked without waiting, and that no other thread is using. Returns
// how many slabs those were. For malloc_trim().
int purge_all_pages();

// Gives back every slab without a live object, as far as no lock has to be waited for: the running context's, those of
// other CPUs (whose threads go on from the central index), and the index's. For the moment before memory is refused.
void reclaim_all();

// --- between the parts of the front end -------------------------------------------------------------------------

// Objects of `group` (a mask) have been freed by a context that does not own the slab: makes it known.
void tell_owner(Slab* slab, unsigned group, std::uint64_t mask);

// Frees an object of a slab that the running context does not own.
void free_remote(Slab* slab, std::uint64_t index);

// Moves what others freed to the words of a slab of the running context. If there is nothing, it takes off the mark
// kOwnerHasRemote: taken off each time, and put on again by the next remote free, it would drag the header from CPU to
// CPU. false: the thread runs elsewhere now; what was not placed is back in the masks, and the mark is up. Caller holds
// context->lock.
bool collect_all(Slab* slab, Context* context);

// Puts a slab the context owns at the end of its queue. Caller holds context->lock.
void enqueue(Context* context, Slab* slab);

// Moves slabs from the inbox to their queues. Caller holds context->lock.
void drain_inbox(Context* context);

// Empties a context in which no sequence can run (its thread exits, is dead, or it is gated): slabs go to the central
// index or back. Caller holds context->lock.
void release_context(Context* context);

// Releases slabs of the running context that fill slots and have had no live object for more than `ticks` looks. Caller
// holds context->lock.
void release_empty_currents(Context* context, unsigned ticks);

// Gives back pages of the running context's slabs that hold free objects only, where they have been left alone for some
// looks: of at most `budget` partial slabs. There may be more while has_slabs_left_over(), which the next call goes on
// with. Caller holds context->lock.
void purge_free_pages(Context* context, int budget);

// The same for slabs of the central index, and of other threads' contexts. At most four times a second. 128 slabs of each
// class, and more of them for `most_ns` of the processor's time.
void purge_idle_pages(std::uint64_t now_ms, std::uint64_t most_ns);

// Releases one context whose thread did not survive a fork. Cheap when there is none.
void reclaim_orphans();

// Empties contexts that have been idle for a second. At most twice a second.
void reclaim_idle(std::uint64_t now_ms);

}  // namespace brimful::slots
