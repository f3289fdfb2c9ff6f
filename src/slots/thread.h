// SPDX-License-Identifier: MIT
//
// Threads and contexts: how a thread finds the context it runs in.
//
// Every thread starts at the dummies (arch/sequences.h), so its first call goes the slow way and is attached here: to the
// CPU's contexts when the process runs per-CPU and the kernel keeps this thread's rseq area, else to a context of its own.
// Per-CPU threads leave nothing behind when they exit; a thread context is emptied by a pthread key's destructor.
// A thread that allocates after that (later destructors) stays at the dummies and is served by the shared slabs.
#pragma once

#include <atomic>
#include <cstdint>

#include "arch/sequences.h"
#include "base/compiler.h"
#include "slots/context.h"

namespace brimful::slots {

struct UserHeap;
struct StandIn;

struct ThreadState {
  std::uint32_t own_id;  // target of the id pointer in thread mode
  std::uint64_t own_cs;  // target of the cs pointer where there is no rseq area
  std::uint32_t depth;   // slow-path scopes this thread is in: above 1, a signal handler interrupted one
  bool attached;
  bool gone;        // the exit hook ran
  bool is_in_hook;  // of the program, which a report of misuse has called
  Context* own_context;
  UserHeap* heap;     // the thread's current heap (slots/user_heap.h), nullptr: none, or in an OutsideHeap
  StandIn* stand_in;  // where malloc's hits find that heap's objects (slots/stand_in.h); nullptr: it has no hits
  const std::uint32_t* own_id_pointer;  // with a heap: where the id pointer leads otherwise
};
extern BRIMFUL_TLS ThreadState thread_state;

// Marks a slow path. A signal handler that lands inside one and allocates is `nested`: it must take no lock.
class SlowScope {
 public:
  SlowScope() {
    ++thread_state.depth;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a handler on this thread (locks come later)
  }
  ~SlowScope() {
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a handler on this thread (locks went before)
    --thread_state.depth;
  }
  SlowScope(const SlowScope&) = delete;
  SlowScope& operator=(const SlowScope&) = delete;
  [[nodiscard]] bool nested() const { return thread_state.depth > 1; }
};

// Starts the allocator if need be and attaches the calling thread if need be.
void prepare();

// The context this thread runs in at this moment, made if need be. nullptr: none (or no memory for it).
Context* current_context();

// Ids from here on are stand-ins' (slots/stand_in.h), not contexts'. Falls under the heap lock.
extern std::atomic<std::uint32_t> first_stand_in;

// A context's id, neither none nor a stand-in's.
inline bool is_context_id(std::uint32_t id) {
  return id < first_stand_in.load(std::memory_order_relaxed);  // relaxed: a thread knows of its own stand-in
}

// Ids of contexts are below this. Caller holds the heap lock.
std::uint32_t contexts_covered();

// The context of an id, or nullptr.
Context* context_of(std::uint32_t id);

// Threads' contexts rely on barriers: registering for them has to be done again in the child of a fork.
bool has_barrier();

// Head of the list of every context.
Context* all_contexts();
extern std::atomic<Context*> every_context;

// A barrier aborts the sequences that run in the context: it may be closed from outside (slots/reclaim.cpp).
bool is_closable(const Context* context);

// Written once, at start-up.
extern bool per_cpu;

// true: threads share the contexts of CPUs.
inline bool is_per_cpu() { return per_cpu; }

inline std::uint32_t current_id() {
  return std::atomic_ref(*const_cast<std::uint32_t*>(arch::brimful_thread.context_id))
      .load(std::memory_order_relaxed);  // relaxed: a hint; sequences verify it
}

// Returns a thread context to the pool; it must be empty. Takes the heap lock.
void recycle_context(Context* context);

// In the child of a fork: contexts of threads that are not there any more are marked for reclaim().
void orphan_other_threads();

}  // namespace brimful::slots
