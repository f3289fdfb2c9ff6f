// SPDX-License-Identifier: MIT
//
// Where a program's pointers are, outside of its heap.
//
//   writable memory of files   .data, .bss, shared mappings; and what was written to of read-only ones (.data.rel.ro)
//   anonymous memory           but the allocator's own: headers hold the address of each slab's first object
//   threads' stacks            from the stack pointer on, with the 128 bytes below it that leaf functions may use
//   stacks of ended threads    that the C library keeps for the next one: nothing but the table of its thread-local storage
//
// Below a stack pointer lies what calls have left behind: to read it as pointers would hide most of what a program lost a
// moment ago.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "memory/image.h"
#include "memory/mapping.h"
#include "memory/thread_state.h"

namespace brimful::observer::leaks {

struct Root {
  memory::Range range;
  memory::Pages pages = memory::Pages::kTouched;
  unsigned step = sizeof(std::uint64_t);
};

struct Roots {
  std::vector<Root> memory;
  // Addresses that lie inside of an object by the C library's design, and stand for all of it.
  std::vector<std::uint64_t> owners;
};

// Reads a word of the process's memory, which is held or a core. false: it is not there.
using ReadWord = std::function<bool(std::uint64_t address, std::uint64_t& word)>;

// `ours`: the allocator's memory, objects and all else, in any order.
Roots find_roots(const std::vector<memory::Mapping>& mappings, std::vector<memory::Range> ours,
                 const std::vector<memory::ThreadState>& threads, const ReadWord& read_word);

}  // namespace brimful::observer::leaks
