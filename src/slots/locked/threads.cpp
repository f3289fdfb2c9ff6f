// SPDX-License-Identifier: MIT
//
// Threads under the middle layers for study: there are no contexts, so no thread has one. Every thread's id stays at the
// dummy; malloc finds no object in the empty context, free finds a slab of another owner, and both go the slow way.
#include "config/build.h"
#include "slots/start.h"
#include "slots/thread.h"

namespace brimful::slots {

constinit bool per_cpu = false;
constinit std::atomic<Context*> every_context{nullptr};

void choose_mode() {}

void describe_mode(Line& description) {
  description << "front end none (" << (config::kMiddle == config::Middle::kGlobalLock ? "global lock" : "class mutex")
              << ")";
}

// The fast paths announce their sections although these find nothing. At the dummy, all threads would store to one cache
// line, and that would be measured instead of the lock.
void attach() {
  arch::brimful_thread.rseq_cs = &thread_state.own_cs;
  thread_state.attached = true;
}

std::uint32_t contexts_covered() { return 0; }
Context* context_of(std::uint32_t) { return nullptr; }
Context* current_context() { return nullptr; }
Context* all_contexts() { return nullptr; }
bool is_closable(const Context*) { return false; }
bool has_barrier() { return false; }
void orphan_other_threads() {}

}  // namespace brimful::slots
