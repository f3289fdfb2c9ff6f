// SPDX-License-Identifier: MIT
//
// How to get from a function to its caller at one address: the rule of the unwind tables, in a form that is applied in a
// microsecond, and a cache of them by range of addresses.
//
// Why not libdwfl's own dwfl_getthread_frames: it parses the table anew for every frame (tens of microseconds), and it
// asks for a process or a core, not for a few registers and a piece of a stack. libdw does what is hard, reading the
// tables; what it says is nearly always "CFA is a register plus a number, and a register was saved at CFA plus a
// number". The rest (procedure linkage tables, signal frames) are expressions, which are kept and evaluated as they are.
// A cache of whole stacks by a hash of their bytes, as profilers of time have it, would hit next to never: two stacks of
// the same calls differ in their data.
#pragma once

#include <elfutils/libdw.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "stacks/module.h"

namespace brimful::observer::stacks {

// x86-64's numbers in DWARF.
inline constexpr unsigned kBx = 3;
inline constexpr unsigned kBp = 6;
inline constexpr unsigned kSp = 7;
inline constexpr unsigned kR12 = 12;
inline constexpr unsigned kIp = 16;
inline constexpr unsigned kRegisters = 17;

// Registers of one frame; those that weren't saved on the way are unknown.
struct Registers {
  std::array<std::uint64_t, kRegisters> value{};
  std::uint32_t known = 0;

  void set(unsigned number, std::uint64_t to) {
    value[number] = to;
    known |= 1U << number;
  }
  bool has(std::uint64_t number) const { return number < kRegisters && (known >> number & 1) != 0; }
};

// A word of the sampled stack; false outside of what was copied.
using ReadWord = std::function<bool(std::uint64_t address, std::uint64_t& word)>;

enum class Step {
  kCaller,   // the registers are the caller's
  kEnd,      // the tables say that nobody called this function
  kNoTable,  // no table covers the address
  kLost,     // what the table asks for is not known
};

class Row {
 public:
  // `address` in the file. False if no table covers it.
  static bool find(const Module& module, std::uint64_t address, Row& row, std::uint64_t& start, std::uint64_t& end);

  // From a function's registers to its caller's; `signal` says that the caller was interrupted, so that its address is
  // not a return address.
  Step apply(Registers& registers, const ReadWord& read, bool& signal) const;

 private:
  enum class Kind : std::uint8_t { kSame, kUndefined, kAtCfa, kExpression };
  struct Rule {
    Kind kind = Kind::kUndefined;
    std::int64_t offset = 0;
    std::vector<Dwarf_Op> operations;
  };
  bool load(Dwarf_CFI* table, std::uint64_t address, std::uint64_t& start, std::uint64_t& end);
  static Rule rule_of(const Dwarf_Op* operations, std::size_t count, const Dwarf_Op* undefined);
  bool restore(const Rule& rule, const Registers& from, std::uint64_t cfa, const ReadWord& read,
               std::uint64_t& value) const;

  int cfa_register_ = -1;  // -1: by the operations
  std::int64_t cfa_offset_ = 0;
  std::vector<Dwarf_Op> cfa_operations_;
  std::array<Rule, kRegisters> rules_;
  bool signal_ = false;
};

class Rows {
 public:
  // Null if no table of the module covers the address. Valid until the next call.
  const Row* at(const Module& module, std::uint64_t address);

 private:
  struct Entry {
    std::uint64_t end;
    bool covered;
    Row row;
  };
  std::map<const Module*, std::map<std::uint64_t, Entry>> modules_;  // by the start of the range
};

}  // namespace brimful::observer::stacks
