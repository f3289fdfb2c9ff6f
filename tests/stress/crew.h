// SPDX-License-Identifier: MIT
//
// The crew: the threads of a stress run and their common end.
//
// Mixers, a consumer that never allocates, a producer, and a host that starts short-lived guests (they exit
// leaving their objects in mailboxes and to a TLS destructor) and forks children that go on allocating.
// Beside them a storm thread moves everybody from CPU to CPU by sched_setaffinity, so that contexts change
// hands in the middle of slow paths. A fierce storm (Options::fierce_storm) never rests, narrows and widens the threads'
// masks, and now and then herds all of them onto one CPU, as a cpuset that changes does. Worker i takes role i of {mixer, mixer, consumer, producer, mixer,
// host}, then from the start again without a host.
//
// One crew per process: it is the state of the whole run. All of it lives in memory from mmap.
#pragma once

#include <cstdint>

#include "options.h"

namespace brimful::stress {

class Crew {
 public:
  // Maps the shared state and starts the threads. Call once.
  static void start(const Options& options);

  // Allocator calls that all threads have made since start().
  static uint64_t operations();

  // Fails the run if `operations()` has stood still for a minute of calls to this function. Call it every few
  // hundred milliseconds at least.
  static void check_progress();

  // Waits until `operations` are done or `seconds` are over, and prints now and then if it may. Returns the operations
  // done. Fails the run as check_progress() does.
  static uint64_t watch(uint64_t operations, unsigned seconds, bool print);

  // Masks that the storm has set since start().
  static uint64_t moves();

  // Stops and joins the threads, frees what is left, and fails unless every object was freed once and the
  // shadow is empty, and the allocator counts (nearly) nothing live. Then prints the line of success.
  static void finish();
};

}  // namespace brimful::stress
