// SPDX-License-Identifier: MIT
//
// machine.h.
#include "machine.h"

#include <cstdlib>

#include "os/numa.h"
#include "pages/heap.h"
#include "pages/purger.h"
#include "slots/front_end.h"
#include "slots/thread.h"
#include "traffic.h"

namespace brimful::topology {
namespace {

// reclaim_idle() closes a context a second after its last slow path, and one without slow paths a second after it was
// first seen to hold objects in magazines.
constexpr std::uint64_t kLooks = 2;
constexpr std::uint64_t kLongIdleMs = 2000;

}  // namespace

Machine::Machine(unsigned cpus, unsigned nodes) : ids_(cpus), nodes_(nodes) {
  const slots::SlowScope scope;
  slots::prepare();
  own_id_ = arch::brimful_thread.context_id;
  own_cs_ = arch::brimful_thread.rseq_cs;
  // Numbers that the allocator has not given to a thread: this process has no other.
  const std::uint32_t first = slots::all_contexts() != nullptr ? slots::all_contexts()->id + 1 : 0;
  for (unsigned cpu = 0; cpu < cpus; ++cpu) ids_[cpu] = first + cpu;
  // The last first: making a context lets all numbers below it lead to the empty one, as start-up does for CPUs.
  run_on(cpus - 1);
  if (slots::current_context() == nullptr) std::abort();
  leave();
}

Machine::~Machine() { leave(); }

void Machine::run_on(unsigned cpu) {
  // An area that the kernel does not know: nothing is ever aborted.
  arch::brimful_thread.rseq_cs = &no_rseq_;
  arch::brimful_thread.context_id = &ids_[cpu];
  os_.node = nodes_are_hidden_ ? 0 : node_of(cpu) % os::kMaxNodes;
  traffic::watch(cpu);
}

void Machine::leave() {
  traffic::stop_watching();
  arch::brimful_thread.context_id = own_id_;
  arch::brimful_thread.rseq_cs = own_cs_;
}

Context* Machine::context(unsigned cpu) const { return slots::context_of(ids_[cpu]); }

void Machine::go_idle() {
  const slots::SlowScope scope;
  if (slots::is_per_cpu()) {
    for (std::uint64_t look = 0; look < kLooks + cpus() / 4; ++look) {
      pass_ms(kLongIdleMs);
      run_on(0);
      slots::tick();
    }
  } else {
    for (unsigned cpu = 0; cpu < cpus(); ++cpu) empty(cpu);
  }
  leave();
}

void Machine::shut_down() {
  const slots::SlowScope scope;
  if (slots::is_per_cpu()) empty(0);
  leave();
  slots::reclaim_all();
  pages::trim();
}

// What a thread's end does with its context.
void Machine::empty(unsigned cpu) {
  Context* emptied = context(cpu);
  if (emptied == nullptr) return;
  run_on(cpu);
  emptied->lock.lock();
  slots::release_context(emptied);
  emptied->lock.unlock();
}

}  // namespace brimful::topology
