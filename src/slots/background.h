// SPDX-License-Identifier: MIT
//
// The background thread: gives memory back while the program rests. With background_thread:1 each program that uses some
// MiB has it, by default (auto) only one that has threads of its own: programs with one thread may have to keep to that. And
// it only works then when nobody has come by for 100 ms; an active program purges itself, as without it.
//
//   slow path: tick ──▶ keep_background_thread() ──wants──▶ on the way out: start_wanted_thread()
//                                                                │
//                                                  every 10 … 250 ms: what the curve has let go of, idle
//                                                  contexts, pages inside slabs
//                                                                │
//                                                  3 s of rest: all of it once more, and the thread ends
//
// It does not wait for work: when the program has rested for three seconds and nothing is dirty, it ends, and the next tick
// that finds some MiB in use starts another. So a process at rest has no thread of ours: nothing wakes up, a program whose
// main thread ends by pthread_exit() ends when its last thread does, and a fork most often copies none. Starting a
// thread takes some 50 us. Rejected: a thread that sleeps on a futex. It has all of these to be solved one by one.
//
// Where it is started matters: pthread_create() takes locks of the C library, and that frees memory while it holds one of
// them (the list of stacks, when a thread is joined). So not where it is found wanting, but at the end of a malloc or
// free whose caller is not the C library itself; in programs where nobody can tell, only of a malloc (docs/design/0038).
//
// What is known of the thread lies in a page that fork clears (MADV_WIPEONFORK), so that a child, however it was made,
// finds none and starts its own; the child of vfork(), which shares its parent's memory, has another process id than the
// page says, and starts nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/compiler.h"

namespace brimful::slots {

// Says that the program is active, and that the thread is wanted if it is not there. Called on slow paths. Cheap when there
// is nothing to do.
void keep_background_thread(std::uint64_t now_ms);

// The end of which call a slow path is on its way to.
enum class Call : std::uint8_t { kMalloc, kFree };

// 0: the thread is not wanted; else, the ends of how many calls may yet be tried for it.
extern constinit std::atomic<std::uint32_t> thread_tries;
void start_background_thread(const void* caller, Call call);

// At the end of a malloc or free that `caller` (a return address) made, outside of every SlowScope of its own: starts the
// thread if it is wanted, and this is a place for that.
inline void start_wanted_thread(const void* caller, Call call) {
  // relaxed: who misses it leaves it to the next
  if (BRIMFUL_UNLIKELY(thread_tries.load(std::memory_order_relaxed) != 0)) start_background_thread(caller, call);
}

// The thread is there, and purges while the program is active, too: with background_thread:1.
bool has_background_thread();

}  // namespace brimful::slots
