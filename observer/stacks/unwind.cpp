// SPDX-License-Identifier: MIT
#include "stacks/unwind.h"

#include <algorithm>
#include <cstring>

namespace brimful::observer::stacks {

namespace {

constexpr std::size_t kMostFrames = 512;

// The length of FF /2, a call by a register or a word of memory, whose operand is coded by the byte behind it and perhaps one
// more (Intel's manual, volume 2, 2.1.5). 0: another instruction.
std::size_t indirect_call_length(const unsigned char* at, std::size_t count) {
  if (at[0] != 0xff || (at[1] >> 3 & 7) != 2) return 0;
  const unsigned mode = at[1] >> 6;
  const unsigned base = at[1] & 7;
  const bool has_index = mode != 3 && base == 4;
  const bool is_absolute = mode == 0 && (base == 5 || (has_index && count > 2 && (at[2] & 7) == 5));
  return 2 + (has_index ? 1 : 0) + (is_absolute || mode == 2 ? 4 : 0) + (mode == 1 ? 1 : 0);
}

// The call instructions of x86-64 that a compiler emits: E8 with four bytes, or FF /2 with its operand.
bool ends_with_call(const unsigned char* before, std::size_t count) {
  if (count >= 5 && before[count - 5] == 0xe8) return true;
  for (std::size_t length = 2; length <= count; length++) {
    if (indirect_call_length(before + count - length, length) == length) return true;
  }
  return false;
}

}  // namespace

bool Unwinder::follows_call(std::uint64_t address) const {
  unsigned char before[7];
  for (std::size_t count = sizeof before; count >= 2; count--) {
    if (modules_.read_code(address - count, before, count)) return ends_with_call(before, count);
  }
  return false;
}

bool Unwinder::has_no_caller(std::uint64_t address) {
  Place place;
  if (!modules_.find(address, place)) return false;
  const Module* module = modules_.module(place.module);
  const Row* row = module == nullptr ? nullptr : rows_.at(*module, place.address);
  Registers none;
  bool signal = false;
  return row != nullptr && row->apply(
                               none, [](std::uint64_t, std::uint64_t&) { return false; }, signal) == Step::kEnd;
}

Step Unwinder::by_frame_pointer(Registers& registers, const ReadWord& read) const {
  if (!registers.has(kBp) || registers.value[kBp] < registers.value[kSp]) return Step::kLost;
  const std::uint64_t pointer = registers.value[kBp];
  std::uint64_t saved = 0;
  std::uint64_t address = 0;
  if (!read(pointer, saved) || !read(pointer + 8, address)) return Step::kLost;
  // Frames lie one above the other, and the outermost has none above it.
  if (saved != 0 && saved <= pointer) return Step::kLost;
  Place place;
  if (!modules_.find(address - 1, place)) return Step::kLost;
  // HotSpot's interpreter jumps to what it calls and pushes the address to return to itself.
  if (place.module != kNoFile && !follows_call(address)) return Step::kLost;
  Registers caller;
  caller.set(kIp, address);
  caller.set(kSp, pointer + 16);
  caller.set(kBp, saved);
  registers = caller;
  return Step::kCaller;
}

void Unwinder::continue_by_addresses(const Captured& captured, std::uint64_t last, Unwound& stack) {
  auto at = std::find(captured.addresses.begin(), captured.addresses.end(), last);
  if (at == captured.addresses.end()) return;
  for (++at; at != captured.addresses.end() && stack.frames.size() < kMostFrames; ++at) {
    Place place;
    if (!modules_.find(*at - 1, place)) return;
    stack.frames.push_back({place});
    last = *at;
  }
  if (has_no_caller(last - 1)) stack.end = End::kComplete;
}

Unwound Unwinder::unwind(const Captured& captured, const Visit& visit) {
  Unwound stack;
  Registers registers = captured.registers;
  const std::uint64_t bottom = registers.value[kSp];
  bool ran_out = false;
  const ReadWord read = [&](std::uint64_t address, std::uint64_t& word) {
    if (address < bottom) return false;
    const std::uint64_t offset = address - bottom;
    if (offset > captured.copy.size() || captured.copy.size() - offset < sizeof word) {
      ran_out = true;
      return false;
    }
    std::memcpy(&word, captured.copy.data() + offset, sizeof word);
    return true;
  };
  bool exact = true;  // the address is that of an instruction, not one to return to
  std::uint64_t last = 0;
  while (stack.frames.size() < kMostFrames) {
    last = registers.value[kIp];
    Place place;
    if (last == 0 && !stack.frames.empty()) {
      stack.end = End::kComplete;
      return stack;
    }
    if (!modules_.find(exact ? last : last - 1, place)) return stack;
    stack.frames.push_back({place});
    const Module* module = modules_.module(place.module);
    const Row* row = module == nullptr ? nullptr : rows_.at(*module, place.address);
    const Registers before = registers;
    ran_out = false;
    bool signal = false;
    const Step step = row == nullptr ? by_frame_pointer(registers, read) : row->apply(registers, read, signal);
    if (visit) {
      const std::uint64_t until = step == Step::kCaller ? registers.value[kSp] : before.value[kSp];
      visit(stack.frames.size() - 1, place, before, until);
    }
    if (step == Step::kEnd) {
      stack.end = End::kComplete;
      return stack;
    }
    if (step != Step::kCaller) break;
    exact = signal;
  }
  stack.end = ran_out && captured.truncated ? End::kTruncated : End::kUnknown;
  continue_by_addresses(captured, last, stack);
  return stack;
}

}  // namespace brimful::observer::stacks
