// SPDX-License-Identifier: MIT
//
// When the run stacks of contexts (pages/run_stacks.h) give up what they hold.
#pragma once

#include <cstdint>

#include "slots/context.h"

namespace brimful::slots {

// A free looked at the clock. No lock, any moment.
void note_run_look(std::uint64_t now_ms);

// The running context's stacks give the page heap what was freed at `cutoff_ms` or before (UINT64_MAX: all), and the run
// cache what else lies in those of the same length. Caller holds the heap lock.
void flush_own_runs(std::uint64_t cutoff_ms);

// The same for what has waited for longer than the purge delay, if the heap lock is free. In a slow path.
void flush_old_runs(std::uint64_t now_ms);

// All blocks in the stacks of a context in which no sequence can run. Caller holds context->lock.
void empty_run_stacks(Context* context);

// Its stacks hold something. Any moment.
bool holds_runs(Context* context);

}  // namespace brimful::slots
