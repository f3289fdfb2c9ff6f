// SPDX-License-Identifier: MIT
//
// Start-up, and the globals the fast paths read.
//
// Before start-up every thread's id leads to the empty context, and the granule table has one entry. The first call of
// the process therefore misses, and starts the allocator under the heap lock. Nothing in here may allocate, and little
// may be assumed: the caller can be the dynamic linker.
#include "slots/start.h"

#include <atomic>

#include "config/build.h"
#include "config/options.h"
#include "meta/block.h"
#include "os/calls.h"
#include "os/report.h"
#include "pages/heap.h"
#include "pages/limit.h"
#include "slots/guards.h"
#include "slots/object_checks.h"
#include "slots/sampling.h"
#include "slots/thread.h"

namespace brimful {
namespace arch {
extern "C" {
constinit std::uint64_t brimful_zero_word = 0;
}
}  // namespace arch

namespace slots {

constinit std::uint32_t no_context_id = arch::kNoContext;
BRIMFUL_TLS ThreadState thread_state = {};
constinit std::atomic<std::uint32_t> first_stand_in{kMaxContexts};

namespace {

constinit Header* const kFirstTable[1] = {&meta::none};
constinit std::uint64_t no_rseq_cs = 0;
constinit std::atomic<bool> started{false};

void describe() {
  Line line;
  line << config::kVersion << " ";
  describe_mode(line);
  line << ", tier " << (config::is_hardened() ? "hardened" : "default");
  if (pages::limits.hard != 0) line << ", limit " << pages::limits.hard;
  if (pages::limits.soft != 0) line << ", soft limit " << pages::limits.soft;
  os::report(line);
}

// What each shell command pays before its first object: no file is read here, and nothing done that can wait
// (docs/design/0030).
void start() {
  const sync::MutexLock guard(pages::heap.lock);
  if (started.load(std::memory_order_relaxed)) return;  // relaxed: the lock orders it
  arch::set_page_bytes(os::page_bytes);
  pages::heap.begin();
  config::load();
  pages::choose_limits();
  choose_mode();
  set_sample_interval(static_cast<std::uint64_t>(config::options.prof));
  begin_object_checks();
  begin_guards(static_cast<std::uint64_t>(config::options.guards));
  if (config::options.verbose != 0) describe();
  started.store(true, std::memory_order_release);  // pairs with: prepare() (all of the above)
}

}  // namespace

void prepare() {
  // pairs with: start() (options and mode)
  if (BRIMFUL_UNLIKELY(!started.load(std::memory_order_acquire))) start();
  if (BRIMFUL_UNLIKELY(!thread_state.attached) && !thread_state.gone) attach();
}

}  // namespace slots

namespace arch {
extern "C" {
constinit brimful_hot_globals brimful_hot = {slots::kFirstTable, 0};
constinit Block brimful_block(&slots::empty_context);
BRIMFUL_TLS ThreadArea brimful_thread = first_thread_area(brimful_block, &slots::no_context_id, &slots::no_rseq_cs);
}
}  // namespace arch
}  // namespace brimful
