// SPDX-License-Identifier: MIT
//
// From what a sample kept, registers and the top of the stack, to the calls that led there.
//
//   registers ── unwind tables ──▶ caller ── … ──▶ the copy ends ── frame pointers that the library kept ──▶ …
//
// Each step is taken by the tables of the code; where code has none (a JIT's), by its frame pointer, if that leads upwards
// to a return address: in code of a file behind a call instruction, or in code of no file. Nothing is guessed. A stack that couldn't be followed to
// its end says so by how it ends, and it is right up to there.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "stacks/modules.h"
#include "stacks/unwind_rows.h"

namespace brimful::observer::stacks {

struct Captured {
  Registers registers;
  std::span<const unsigned char> copy;       // of the stack, from the stack pointer on
  std::span<const std::uint64_t> addresses;  // return addresses by frame pointers, innermost first
  bool truncated = false;                    // the copy ends before the stack does
};

enum class End {
  kComplete,   // the first function of a thread
  kTruncated,  // the stack is deeper than what was copied
  kUnknown,    // lost the way
};

struct Frame {
  Place place;  // of the call, not of the return: an address that belongs to the calling line
};

struct Unwound {
  std::vector<Frame> frames;  // innermost first
  End end = End::kUnknown;
};

class Unwinder {
 public:
  // Is told of each frame with its registers and where its part of the stack ends, before the next one is looked at.
  using Visit = std::function<void(std::size_t index, const Place&, const Registers&, std::uint64_t stack_end)>;

  explicit Unwinder(const Modules& modules) : modules_(modules) {}
  Unwound unwind(const Captured& captured, const Visit& visit);

 private:
  Step by_frame_pointer(Registers& registers, const ReadWord& read) const;
  bool follows_call(std::uint64_t address) const;
  bool has_no_caller(std::uint64_t address);
  void continue_by_addresses(const Captured& captured, std::uint64_t last, Unwound& stack);

  const Modules& modules_;
  Rows rows_;
};

}  // namespace brimful::observer::stacks
