// SPDX-License-Identifier: MIT
//
// Where a thread is, written down without unwinding: registers, return addresses by frame pointers, and a copy of the
// stack's top, from which another program unwinds later by the tables of the program and its libraries.
//
// Nothing in here takes a lock, allocates, or calls code that might (the unwinder of the C library asks the loader, whose
// lock the program may hold: in dlopen(), in a callback of dl_iterate_phdr()). Nothing is read that could fault: a page
// is asked about before its first byte is read (os/probe.h), because a signal handler's stack, a coroutine's or one of
// another library's making ends somewhere that nobody can name. Needs 200 bytes of stack.
#pragma once

#include "meta/sample_record.h"

namespace brimful::slots {

// Writes down the calling thread's stack, from this very function's frame on. Its top goes to slot + into.stack_offset,
// which the caller has set; at most `most` bytes, a multiple of 64. true: the stack goes on behind the copy. 4 system calls.
[[gnu::noinline]] bool copy_stack(meta::SampleStack& into, char* slot, std::size_t most = meta::kSampleStackBytes);

}  // namespace brimful::slots
