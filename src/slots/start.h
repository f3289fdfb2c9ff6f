// SPDX-License-Identifier: MIT
//
// Start-up, and what it asks of the middle layer: the one with contexts (slots/thread.cpp), or one of those for study
// (slots/locked/). The build compiles one of them (docs/design/0010).
#pragma once

#include <cstdint>

#include "arch/sequences.h"
#include "base/line.h"
#include "slots/context.h"

namespace brimful::slots {

// The context of threads that have none: its slots lead to a word without bits. Its definition ends before the magazines,
// into which such a thread puts nothing: 23 KiB less of the library's file.
BRIMFUL_HIDDEN extern Context empty_context asm("brimful_empty_context");

// What the id pointer of such a thread leads to.
extern std::uint32_t no_context_id;

// Decides how this process's threads find memory. Called once, with the options read, under the heap lock.
void choose_mode();

// What was chosen and why, for `verbose:1`.
void describe_mode(Line& description);

// Attaches the calling thread. Called on slow paths until thread_state.attached is set.
void attach();

}  // namespace brimful::slots
