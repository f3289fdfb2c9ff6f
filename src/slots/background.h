// SPDX-License-Identifier: MIT
//
// The background thread (background_thread:1): gives memory back while the program rests.
//
//   slow path: tick ──▶ keep_background_thread() ──starts──▶  every 10 … 250 ms: what the curve has let go of, idle
//                                                             contexts, pages inside slabs
//                                              3 s of rest ──▶ all of it once more, and the thread ends
//
// It does not wait for work: when the program has rested for three seconds and nothing is dirty, it ends, and the next tick
// that finds some MiB in use starts another. So a process at rest has no thread of ours: nothing wakes up, a program whose
// main thread ends by pthread_exit() ends when its last thread does, and a fork most often copies none. Starting a
// thread takes some 50 us. Rejected: a thread that sleeps on a futex. It has all of these to be solved one by one.
//
// What is known of the thread lies in a page that fork clears (MADV_WIPEONFORK), so that a child, however it was made,
// finds none and starts its own; the child of vfork(), which shares its parent's memory, has another process id than the
// page says, and starts nothing.
#pragma once

#include <cstdint>

namespace brimful::slots {

// Starts the thread if it is wanted and not there. Called on slow paths, with no lock held and nothing half done: starting
// a thread allocates. Cheap when there is nothing to do.
void keep_background_thread(std::uint64_t now_ms);

// The thread is there, and purges.
bool has_background_thread();

}  // namespace brimful::slots
