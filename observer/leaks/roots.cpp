// SPDX-License-Identifier: MIT
//
// What of a process's mappings is searched for pointers.
//
// A thread of the C library has its descriptor at the upper end of its stack; the descriptor holds its own address twice
// (the first and the third word: tcbhead_t in glibc's sysdeps/x86_64/nptl/tls.h), so that stacks which no thread uses are
// known by that. Its second word leads 16 bytes into the block with the table of thread-local storage (dtv): an inner
// pointer, and the only one.
#include "leaks/roots.h"

#include <algorithm>

namespace brimful::observer::leaks {
namespace {

constexpr std::uint64_t kRedZone = 128;  // System V ABI for AMD64, 3.2.2
constexpr std::uint64_t kMostDescriptor =
    16384;  // a descriptor and static thread-local storage behind it lie so near the end
constexpr std::uint64_t kDescriptorStep = 64;

bool is_special(const std::string& path) {
  return path == "[vvar]" || path == "[vdso]" || path == "[vsyscall]" || path == "[vvar_vclock]";
}

// The parts of [start, end) that lie in none of `ours`, which is sorted.
std::vector<memory::Range> without(memory::Range range, const std::vector<memory::Range>& ours) {
  std::vector<memory::Range> rest;
  for (const memory::Range& hole : ours) {
    if (hole.end <= range.start) continue;
    if (hole.start >= range.end) break;
    if (hole.start > range.start) rest.push_back({range.start, hole.start});
    range.start = std::max(range.start, hole.end);
  }
  if (range.start < range.end) rest.push_back(range);
  return rest;
}

// The thread descriptor near the end of a stack, or 0.
std::uint64_t descriptor_in(const memory::Mapping& mapping, const ReadWord& read_word) {
  const std::uint64_t least = std::max(mapping.start, mapping.end - std::min(mapping.end, kMostDescriptor));
  for (std::uint64_t at = (mapping.end - 1) / kDescriptorStep * kDescriptorStep; at >= least && at != 0;
       at -= kDescriptorStep) {
    std::uint64_t self = 0;
    if (read_word(at, self) && self == at && read_word(at + 16, self) && self == at) return at;
  }
  return 0;
}

void add_table_owner(std::uint64_t descriptor, const ReadWord& read_word, Roots& into) {
  std::uint64_t table = 0;
  if (descriptor != 0 && read_word(descriptor + 8, table)) into.owners.push_back(table - 16);
}

}  // namespace

Roots find_roots(const std::vector<memory::Mapping>& mappings, std::vector<memory::Range> ours,
                 const std::vector<memory::ThreadState>& threads, const ReadWord& read_word) {
  std::sort(ours.begin(), ours.end(), [](const memory::Range& a, const memory::Range& b) { return a.start < b.start; });
  Roots roots;
  for (const memory::ThreadState& thread : threads) add_table_owner(thread.thread_pointer, read_word, roots);
  for (const memory::Mapping& mapping : mappings) {
    if (!mapping.is_readable || is_special(mapping.path)) continue;
    if (mapping.is_shared && !mapping.is_writable) continue;
    std::vector<memory::Range> ranges;
    bool is_stack = false;
    for (const memory::ThreadState& thread : threads) {
      const std::uint64_t from = thread.stack_pointer - kRedZone;
      if (thread.stack_pointer < mapping.start || thread.stack_pointer >= mapping.end) continue;
      // Stacks that lie in one mapping without a guard between them: from the lowest pointer on.
      if (is_stack && ranges[0].start <= from) continue;
      ranges = {{std::max(mapping.start, from / 8 * 8), mapping.end}};
      is_stack = true;
    }
    if (!is_stack) {
      std::uint64_t from = mapping.start;
      const bool is_anonymous = mapping.path.empty() || mapping.path.compare(0, 6, "[anon:") == 0;
      if (is_anonymous && mapping.is_writable && !mapping.is_shared) {
        const std::uint64_t descriptor = descriptor_in(mapping, read_word);
        const bool is_used = std::any_of(threads.begin(), threads.end(),
                                         [&](const memory::ThreadState& t) { return t.thread_pointer == descriptor; });
        if (descriptor != 0 && !is_used) {
          add_table_owner(descriptor, read_word, roots);
          from = mapping.end;
        }
      }
      if (from < mapping.end) ranges = {{from, mapping.end}};
    }
    for (const memory::Range& range : ranges) {
      for (const memory::Range& part : without(range, ours)) {
        // Machine code holds addresses at any place.
        const unsigned step = mapping.is_executable ? 1 : sizeof(std::uint64_t);
        roots.memory.push_back({part, mapping.is_shared ? memory::Pages::kTouched : memory::Pages::kPrivate, step});
      }
    }
  }
  return roots;
}

}  // namespace brimful::observer::leaks
