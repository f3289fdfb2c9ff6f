// SPDX-License-Identifier: MIT
#include "stacks/unwind_rows.h"

#include <dwarf.h>

#include <cstdlib>

#include "stacks/expression.h"

namespace brimful::observer::stacks {

namespace {

// What a function has to leave as it found it; all others are lost in a call.
constexpr std::uint32_t kCalleeSaved = 1U << kBx | 1U << kBp | 0xfU << kR12;

}  // namespace

Row::Rule Row::rule_of(const Dwarf_Op* operations, std::size_t count, const Dwarf_Op* undefined) {
  Rule rule;
  if (count == 0) {
    // libdw's way to say both: its own buffer for "undefined", null for "the same as before".
    rule.kind = operations == undefined ? Kind::kUndefined : Kind::kSame;
  } else if (operations[0].atom == DW_OP_call_frame_cfa &&
             (count == 1 || (count == 2 && operations[1].atom == DW_OP_plus_uconst))) {
    rule.kind = Kind::kAtCfa;
    rule.offset = count == 1 ? 0 : static_cast<std::int64_t>(operations[1].number);
  } else {
    rule.kind = Kind::kExpression;
    rule.operations.assign(operations, operations + count);
  }
  return rule;
}

bool Row::load(Dwarf_CFI* table, std::uint64_t address, std::uint64_t& start, std::uint64_t& end) {
  Dwarf_Frame* frame = nullptr;
  if (table == nullptr || dwarf_cfi_addrframe(table, address, &frame) != 0) return false;
  Dwarf_Addr first = 0;
  Dwarf_Addr last = 0;
  const int return_register = dwarf_frame_info(frame, &first, &last, &signal_);
  Dwarf_Op* operations = nullptr;
  std::size_t count = 0;
  if (return_register != kIp || dwarf_frame_cfa(frame, &operations, &count) != 0 || count == 0) {
    std::free(frame);
    return false;
  }
  if (count == 1 && operations[0].atom >= DW_OP_breg0 && operations[0].atom < DW_OP_breg16) {
    cfa_register_ = static_cast<int>(operations[0].atom - DW_OP_breg0);
    cfa_offset_ = static_cast<std::int64_t>(operations[0].number);
  } else {
    cfa_operations_.assign(operations, operations + count);
  }
  for (unsigned number = 0; number < kRegisters; number++) {
    Dwarf_Op buffer[3];
    Dwarf_Op* found = nullptr;
    if (dwarf_frame_register(frame, static_cast<int>(number), buffer, &found, &count) != 0) continue;
    rules_[number] = rule_of(found, count, buffer);
  }
  // Where tables don't mention a register that functions preserve, libdw says so of all but this one: its defaults name %rax in
  // its place (backends/x86_64_cfi.c).
  if (rules_[kBx].kind == Kind::kUndefined) rules_[kBx].kind = Kind::kSame;
  std::free(frame);
  start = first;
  end = last;
  return address >= start && address < end;
}

bool Row::find(const Module& module, std::uint64_t address, Row& row, std::uint64_t& start, std::uint64_t& end) {
  return row.load(module.eh_frame(), address, start, end) || row.load(module.debug_frame(), address, start, end);
}

bool Row::restore(const Rule& rule, const Registers& from, std::uint64_t cfa, const ReadWord& read,
                  std::uint64_t& value) const {
  std::uint64_t place = cfa + static_cast<std::uint64_t>(rule.offset);
  if (rule.kind == Kind::kExpression) {
    bool is_value = false;
    if (!evaluate(rule.operations, from, cfa, read, place, is_value)) return false;
    if (is_value) {
      value = place;
      return true;
    }
  }
  return read(place, value);
}

Step Row::apply(Registers& registers, const ReadWord& read, bool& signal) const {
  if (rules_[kIp].kind == Kind::kUndefined) return Step::kEnd;
  std::uint64_t cfa = 0;
  if (cfa_register_ >= 0) {
    if (!registers.has(static_cast<unsigned>(cfa_register_))) return Step::kLost;
    cfa = registers.value[static_cast<unsigned>(cfa_register_)] + static_cast<std::uint64_t>(cfa_offset_);
  } else {
    bool is_value = false;
    if (!evaluate(cfa_operations_, registers, 0, read, cfa, is_value)) return Step::kLost;
  }
  Registers caller;
  for (unsigned number = 0; number < kRegisters; number++) {
    const Rule& rule = rules_[number];
    std::uint64_t value = 0;
    if (rule.kind == Kind::kAtCfa || rule.kind == Kind::kExpression) {
      if (restore(rule, registers, cfa, read, value)) caller.set(number, value);
    } else if (rule.kind == Kind::kSame && registers.has(number) && (kCalleeSaved >> number & 1) != 0) {
      caller.set(number, registers.value[number]);
    }
  }
  if (!caller.has(kSp)) caller.set(kSp, cfa);
  if (!caller.has(kIp)) return Step::kLost;
  // A stack grows downwards; who stays where it is would go round for ever.
  if (!signal_ && caller.value[kSp] <= registers.value[kSp]) return Step::kLost;
  registers = caller;
  signal = signal_;
  return Step::kCaller;
}

const Row* Rows::at(const Module& module, std::uint64_t address) {
  std::map<std::uint64_t, Entry>& ranges = modules_[&module];
  auto after = ranges.upper_bound(address);
  if (after != ranges.begin()) {
    const auto before = std::prev(after);
    if (address < before->second.end) return before->second.covered ? &before->second.row : nullptr;
  }
  Entry entry{address + 1, false, {}};
  std::uint64_t start = address;
  entry.covered = Row::find(module, address, entry.row, start, entry.end);
  const auto placed = ranges.insert_or_assign(entry.covered ? start : address, std::move(entry)).first;
  return placed->second.covered ? &placed->second.row : nullptr;
}

}  // namespace brimful::observer::stacks
