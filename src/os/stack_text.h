// SPDX-License-Identifier: MIT
//
// Stacks as lines of a report: `file+0xoffset`, as addr2line(1) wants it, without the loader, whose lock the program may
// hold, and without an unwinder. The words of a stack are looked through, from its top on, for those that lie in code,
// right behind a call. So none of the calls under way is missed, also in code without frame pointers; but what an earlier
// call left on the stack is among them now and then, and the reader is told so.
//
// Rejected: frame pointers alone (most distributions' programs have none, nor has the library); tables of the unwinder
// (the observer reads them, later and elsewhere).
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

struct StackWords {
  const char* title;
  std::uint64_t first;         // an address of code that is certain; 0: none
  std::uint64_t link;          // one that may be one; 0: none
  const std::uint64_t* words;  // can be read
  std::size_t count;
};

// Writes each stack's title and its calls to standard error, the innermost first, at most 12. Reads /proc/self/maps once; where it
// can't, addresses stand alone. No allocation. Between begin_stacks() and end_stacks().
void report_stacks(const StackWords* stacks, std::size_t count);

// One thread at a time writes stacks. false: after a second another thread still did, or a handler interrupted it.
[[nodiscard]] bool begin_stacks();
void end_stacks();

// The stack of the calling thread from `frame` (__builtin_frame_address(0)) on, as far as it can be read: 4 KiB at most.
StackWords own_stack(const char* title, const void* frame);

// How many words can be read from `sp` on, at most `most`. A system call for each page.
std::size_t readable_words(std::uint64_t sp, std::size_t most);

}  // namespace brimful::os
