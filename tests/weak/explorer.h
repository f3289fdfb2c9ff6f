// SPDX-License-Identifier: MIT
//
// Runs a few threads of the library's own code on a weak memory (memory.h), in every order of steps and with every value
// that a load may read, within bounds.
//
// The code is compiled with -fsanitize=thread, which makes a call of each access to memory; hooks.cpp answers these calls in
// place of the sanitizer's run time. So what is explored is src/ as it is, not a copy that has to be kept in step, and an
// order that is missing there is missing here.
//
// A thread is a fiber. Atomic accesses to locations that more than one thread comes to, one of them writing, are the points
// where another fiber may go on and where a load may have a choice; which locations these are is learned from the runs, and
// a scenario is explored anew until there are no more of them. All other steps belong to the step before. After each run what
// it wrote is put back, and the next one repeats it up to a choice that has an alternative. Two prefixes that lead to the same
// state (the same reads from the same writes in the same orders, whichever order of steps it was) are continued once.
//
// Bounds: how often a thread that could go on is left for another (Musuvathi and Qadeer, "Iterative context bounding", PLDI
// 2007), and how often a load reads another than the last write, or a store is not the last. Within them the exploration is
// exhaustive.
#pragma once

#include <cstdint>
#include <string>

#include "memory.h"

namespace brimful::weak {

struct Bounds {
  unsigned preemptions;
  unsigned stale;
};
inline constexpr Bounds kUnbounded = {1000, 1000};

struct Scenario {
  const char* name;
  unsigned threads;              // 1 … kMostThreads
  void (*prepare)(unsigned);     // once for each thread, one after another, in its thread-local memory; or nullptr
  void (*run)(unsigned);         // the thread
  void (*check)();               // after each run, on the memory as it is then; or nullptr
  Bounds bounds;
};

struct Result {
  bool is_complete;  // every run within the bounds was tried
  std::uint64_t runs;
  std::uint64_t states;
  std::string fault;  // empty: none found
};

// Explores. Once per process for a scenario with `prepare`, whose effects stay.
Result explore(const Scenario& scenario, Bounds bounds, std::uint64_t most_runs);

// For scenarios: the run is wrong.
void fail(const char* what);
// For scenarios' check(): an outcome of this run, kept although all that the run wrote is put back.
void record(const char* outcome);
// The outcomes of the last exploration, in order, with a space between them.
std::string outcomes();
// For scenarios: this thread waits, the others go on.
void yield();

// The access at this address of code (where its call returns to) is done with another order; a relaxed fence is none.
void weaken(std::uintptr_t site, Order order);
// Prints each place of an atomic access that was come to: address, kind, order.
void print_sites();
// Prints the steps of a run that goes wrong.
void trace_faults();
void print_trace();

}  // namespace brimful::weak
