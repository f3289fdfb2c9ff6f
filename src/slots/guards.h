// SPDX-License-Identifier: MIT
//
// Guarded objects: a few small objects, chosen at random, each on a page of its own between pages without access. An access
// past such an object's end faults, and so does one after it was freed; both end in a report that says what was accessed,
// by whom, and who allocated and freed the object (slots/guard_report.cpp). Idea: Electric Fence (Perens 1987) for some of
// the objects, GWP-ASan (Serebryany et al. 2018).
//
//   no access │ ··········[object]│ no access │[object]·········· │ no access │ …        · a pattern, looked at by free()
//              at the page's end: overflows     at its start, one in four: underflows
//
// Which: the same points that choose samples (slots/sampling.h); so a hit of malloc knows nothing of it. The pool lies
// outside of all windows, where no table leads, so free() and its like come to their slow paths, as for huge blocks.
//
// A slot is unused, then its object lives, is freed, and waits without access; the one that waits longest is taken again.
// Who changes what:
//
//   take      under guard_lock: an unused slot, or the first that waits. It is its taker's until its state says it lives
//   free      without a lock, at any moment, also in signal handlers: who changes the state from kLive to kEnding is the one
//             that frees; every other finds another state, and is a double free. The slot is pushed on a list
//   collect   who takes a slot next puts the list behind those that wait
//
// How often, by `guards:N`: one in N small objects. N of 1000 and more also keeps guards below 1 % of the time, whatever the
// program does: one at most in 4 ms, for about 10 us, and none in the first. Below 1000 somebody hunts: no such limit, and room
// for 8192 objects in place of 64. A freed object's page keeps its memory: to give it back and to fault it in again takes
// twice as long as all the rest, and a core has what the object held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "classes/size_classes.h"
#include "meta/guard_record.h"
#include "sync/mutex.h"

namespace brimful::slots {

extern sync::SampleMutex guard_lock;

inline constexpr std::size_t kMostGuardedBytes = 4096;

// Sets the rate: one in `objects`; 0: none. Before the first object.
void begin_guards(std::uint64_t objects);

// Guarded objects per object of the class: the rate of an exponential wait. 0: none.
extern double guard_rate;
inline double guard_rate_of(ClassId size_class) {
  return kSizeClasses[size_class].bytes <= kMostGuardedBytes ? guard_rate : 0;
}

// A guarded object for a request of so many bytes, at most kMostGuardedBytes; nullptr: it goes without. Inside a SlowScope that
// is not nested. Four system calls, of which one changes a page's access.
void* allocate_guarded(std::size_t requested);

// Whether the address lies among guarded objects. Any address, any moment.
inline bool is_guarded(std::uint64_t address) {
  // pairs with: make_pool() (the start)
  const std::uint64_t bytes = meta::guard_pool.bytes.load(std::memory_order_acquire);
  // relaxed: ordered by the bytes; with 0 of them any start will do
  return address - std::atomic_ref(meta::guard_pool.start).load(std::memory_order_relaxed) < bytes;
}

// The record of the live object that starts at the address, which is_guarded(); nullptr: anything else, which has been
// reported as misuse by `call`.
meta::GuardRecord* guarded_at(std::uint64_t address, const char* call);

// The object's free(). Takes no lock. Any moment. Reports what is none, and what was written beside the object.
void free_guarded(std::uint64_t address, const char* call);

// Objects that live, and the bytes that were asked for. O(slots).
struct GuardedUse {
  std::uint64_t objects;
  std::uint64_t bytes;
};
GuardedUse guarded_use();

// --- between the parts ------------------------------------------------------------------------------------------

// The record of slot n, and the first byte of its page.
meta::GuardRecord& guard_record(std::uint32_t slot);
std::uint64_t guard_page(std::uint32_t slot);

// Lets the program access the page of an address that is_guarded(). One system call. Any moment.
bool open_guard_page(std::uint64_t address);

// What a fault at this address is about: the record that is nearest, or nullptr where none was ever used.
meta::GuardRecord* nearest_guarded(std::uint64_t address);

inline meta::GuardState state_of(const meta::GuardRecord& record) {
  // pairs with: allocate_guarded(), free_guarded() (what the state says is written)
  return static_cast<meta::GuardState>(record.state.load(std::memory_order_acquire));
}

}  // namespace brimful::slots
