// SPDX-License-Identifier: MIT
//
// slots/run_stacks.h.
#include "slots/run_stacks.h"

#include <atomic>

#include "arch/sequences.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/purger.h"
#include "pages/run_cache.h"
#include "slots/sampling.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

std::uint32_t count_of(pages::RunStack& stack) {
  return std::atomic_ref(stack.count).load(std::memory_order_relaxed);  // relaxed: a hint; the sequences decide
}

// The blocks of a stack lie in the order in which they were freed. What is read may be about to be taken: headers are never
// unmapped.
bool may_hold_older(pages::RunStack& stack, std::uint64_t cutoff_ms) {
  if (count_of(stack) == 0) return false;
  Run* oldest = std::atomic_ref(stack.runs[0]).load(std::memory_order_relaxed);           // relaxed: as count_of()
  return std::atomic_ref(oldest->stamp_ms).load(std::memory_order_relaxed) <= cutoff_ms;  // relaxed: a rough age
}

void flush_stack(Context* context, std::size_t granules, std::uint64_t cutoff_ms) {
  Run* taken[pages::RunStack::kRoom];
  const arch::Answer answer = arch::brimful_seq_runs_take(context, granules, taken);
  if (answer.outcome != arch::Outcome::kDone) return;  // this thread runs elsewhere now, or was interrupted: next time
  for (std::uint64_t i = 0; i < answer.value; ++i) {
    Run* run = taken[i];
    const std::uint64_t stamp_ms = run->stamp_ms;
    if (stamp_ms > cutoff_ms && pages::keep_run(context->id, run, stamp_ms)) continue;
    pages::free_large_run(run, stamp_ms);
  }
}

}  // namespace

void note_run_look(std::uint64_t now_ms) {
  Context* context = context_of(current_id());
  if (context == nullptr) return;
  pages::note_look(context->run_stacks, now_ms);
  notice_run_interval(context);
}

void flush_own_runs(std::uint64_t cutoff_ms) {
  Context* context = context_of(current_id());
  if (context == nullptr) return;
  for (std::size_t granules = 1; granules <= BRIMFUL_RUN_STACK_MOST; ++granules) {
    if (may_hold_older(context->run_stacks.of(granules), cutoff_ms)) flush_stack(context, granules, cutoff_ms);
  }
}

void flush_old_runs(std::uint64_t now_ms) {
  Context* context = context_of(current_id());
  if (context == nullptr || !holds_runs(context) || !pages::heap.lock.try_lock()) return;
  const std::uint64_t cutoff_ms = pages::purge_cutoff_ms(now_ms);
  if (cutoff_ms != 0) flush_own_runs(cutoff_ms);
  pages::heap.lock.unlock();
}

void empty_run_stacks(Context* context) {
  if (!holds_runs(context)) return;
  const sync::MutexLock guard(pages::heap.lock);
  for (pages::RunStack& stack : context->run_stacks.stacks) {
    for (; stack.count != 0; --stack.count) {
      Run* run = stack.runs[stack.count - 1];
      pages::free_large_run(run, run->stamp_ms);
    }
  }
}

bool holds_runs(Context* context) {
  for (pages::RunStack& stack : context->run_stacks.stacks) {
    if (count_of(stack) != 0) return true;
  }
  return false;
}

}  // namespace brimful::slots
