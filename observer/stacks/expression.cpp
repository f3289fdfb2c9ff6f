// SPDX-License-Identifier: MIT
#include "stacks/expression.h"

#include <dwarf.h>

namespace brimful::observer::stacks {

namespace {

// Takes the two topmost words; what is left is `left OP right`.
bool combine(unsigned operation, std::vector<std::uint64_t>& words) {
  if (words.size() < 2) return false;
  const std::uint64_t right = words.back();
  words.pop_back();
  std::uint64_t& left = words.back();
  const auto signed_left = static_cast<std::int64_t>(left);
  const auto signed_right = static_cast<std::int64_t>(right);
  switch (operation) {
    case DW_OP_plus:
      left += right;
      return true;
    case DW_OP_minus:
      left -= right;
      return true;
    case DW_OP_mul:
      left *= right;
      return true;
    case DW_OP_and:
      left &= right;
      return true;
    case DW_OP_or:
      left |= right;
      return true;
    case DW_OP_xor:
      left ^= right;
      return true;
    case DW_OP_shl:
      left = right < 64 ? left << right : 0;
      return true;
    case DW_OP_shr:
      left = right < 64 ? left >> right : 0;
      return true;
    case DW_OP_eq:
      left = left == right;
      return true;
    case DW_OP_ne:
      left = left != right;
      return true;
    case DW_OP_ge:
      left = signed_left >= signed_right;
      return true;
    case DW_OP_gt:
      left = signed_left > signed_right;
      return true;
    case DW_OP_le:
      left = signed_left <= signed_right;
      return true;
    case DW_OP_lt:
      left = signed_left < signed_right;
      return true;
    default:
      return false;
  }
}

// Operations that push a word which depends on nothing but registers.
bool push(const Dwarf_Op& operation, const Registers& registers, std::uint64_t cfa, std::vector<std::uint64_t>& words) {
  const unsigned code = operation.atom;
  if (code >= DW_OP_lit0 && code <= DW_OP_lit31) {
    words.push_back(code - DW_OP_lit0);
    return true;
  }
  if (code >= DW_OP_breg0 && code <= DW_OP_breg31) {
    if (!registers.has(code - DW_OP_breg0)) return false;
    words.push_back(registers.value[code - DW_OP_breg0] + operation.number);
    return true;
  }
  switch (code) {
    case DW_OP_bregx:
      if (!registers.has(operation.number)) return false;
      words.push_back(registers.value[operation.number] + operation.number2);
      return true;
    case DW_OP_call_frame_cfa:
      words.push_back(cfa);
      return true;
    case DW_OP_addr:
    case DW_OP_const1u:
    case DW_OP_const1s:
    case DW_OP_const2u:
    case DW_OP_const2s:
    case DW_OP_const4u:
    case DW_OP_const4s:
    case DW_OP_const8u:
    case DW_OP_const8s:
    case DW_OP_constu:
    case DW_OP_consts:
      words.push_back(operation.number);
      return true;
    default:
      return false;
  }
}

}  // namespace

bool evaluate(const std::vector<Dwarf_Op>& operations, const Registers& registers, std::uint64_t cfa,
              const ReadWord& read, std::uint64_t& result, bool& is_value) {
  std::vector<std::uint64_t> words;
  is_value = false;
  for (const Dwarf_Op& operation : operations) {
    if (operation.atom == DW_OP_plus_uconst) {
      if (words.empty()) return false;
      words.back() += operation.number;
    } else if (operation.atom == DW_OP_deref) {
      std::uint64_t word = 0;
      if (words.empty() || !read(words.back(), word)) return false;
      words.back() = word;
    } else if (operation.atom == DW_OP_dup) {
      if (words.empty()) return false;
      words.push_back(words.back());
    } else if (operation.atom == DW_OP_drop) {
      if (words.empty()) return false;
      words.pop_back();
    } else if (operation.atom == DW_OP_stack_value) {
      is_value = true;
    } else if (operation.atom == DW_OP_regx || (operation.atom >= DW_OP_reg0 && operation.atom <= DW_OP_reg31)) {
      const std::uint64_t number = operation.atom == DW_OP_regx ? operation.number : operation.atom - DW_OP_reg0;
      if (!registers.has(number)) return false;
      words.push_back(registers.value[number]);
      is_value = true;
    } else if (operation.atom != DW_OP_nop && !push(operation, registers, cfa, words) &&
               !combine(operation.atom, words)) {
      return false;
    }
  }
  if (words.empty()) return false;
  result = words.back();
  return true;
}

}  // namespace brimful::observer::stacks
