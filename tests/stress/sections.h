// SPDX-License-Identifier: MIT
//
// The allocator's restartable sections as they lie in this process, instruction by instruction.
//
// The library keeps its rseq descriptors in one array between the symbols brimful_rseq_sections_begin and
// _end, which are local in the static library. So they are looked up in the symbol table of /proc/self/exe
// rather than by the linker, and so are the descriptors' names (brimful_section_…), which are the sections'. Where
// instructions differ in length, `objdump` says where each begins; it is there wherever a compiler is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::stress {

struct Section {
  static constexpr size_t kMaxInstructions = 128;

  uintptr_t start;  // first instruction of the section
  uintptr_t end;    // right behind the commit
  uintptr_t abort;  // where the kernel sends an interrupted thread
  char name[64];    // as sequences.S calls it
  size_t count;     // instructions in [start, end)
  uintptr_t instructions[kMaxInstructions];

  bool contains(uintptr_t address) const { return start <= address && address < end; }
};

struct SectionTable {
  static constexpr size_t kMaxSections = 64;

  size_t count = 0;
  Section sections[kMaxSections];
};

// Fills the table. Returns nullptr, or why it can't: no sections in this build, no objdump, no symbol table.
const char* read_sections(SectionTable* table);

}  // namespace brimful::stress
