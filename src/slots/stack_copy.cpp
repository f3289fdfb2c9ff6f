// SPDX-License-Identifier: MIT
//
// slots/stack_copy.h.
#include "slots/stack_copy.h"

#include "arch/stack.h"
#include "base/units.h"
#include "os/calls.h"
#include "os/probe.h"

namespace brimful::slots {
namespace {

// How far the stack can be read from `sp` on, at most `most` bytes.
std::size_t readable_bytes(std::uint64_t sp, std::size_t most) {
  const std::size_t page = os::page_bytes();
  std::uint64_t end = round_down(sp, page) + page;  // we run on this page
  while (end < sp + most && os::is_readable(end)) end += page;
  return end < sp + most ? end - sp : most;
}

// Return addresses by the chain of frame pointers, as long as it leads upwards inside what may be read.
unsigned walk_frames(std::uint64_t fp, std::uint64_t low, std::uint64_t high, std::uint64_t* into) {
  constexpr std::uint64_t kFirstAddress = 4096;
  unsigned count = 0;
  while (count < meta::kSampleFrames && fp >= low && fp % sizeof(std::uint64_t) == 0 && fp + 16 <= high) {
    const std::uint64_t address = arch::return_address(arch::word_at(fp + 8));
    if (address < kFirstAddress || address >= arch::kEndOfAddresses) break;
    into[count++] = address;
    low = fp + 16;
    fp = arch::word_at(fp);
  }
  return count;
}

}  // namespace

bool copy_stack(meta::SampleStack& into, char* slot) {
  arch::read_registers(into.registers);
  into.tid = os::thread_id();
  const std::uint64_t sp = into.registers[meta::kSampleSp];
  const std::size_t bytes = readable_bytes(sp, meta::kSampleStackBytes);
  arch::copy_words(sp, reinterpret_cast<std::uint64_t>(slot) + into.stack_offset, bytes);
  into.stack_bytes = static_cast<std::uint32_t>(bytes);
  into.frames = walk_frames(into.registers[meta::kSampleBp], sp, sp + bytes, into.addresses);
  return bytes == meta::kSampleStackBytes;
}

}  // namespace brimful::slots
