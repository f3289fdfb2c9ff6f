// SPDX-License-Identifier: MIT
//
// Expressions of unwind tables: what DWARF says of each operation, and an end to all that makes no sense.
#include "stacks/expression.h"

#include <dwarf.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>

namespace brimful::observer::stacks {
namespace {

constexpr std::uint64_t kCfa = 0x7000;
constexpr std::uint64_t kMinusOne = ~std::uint64_t{0};

Dwarf_Op op(unsigned atom, std::uint64_t number = 0, std::uint64_t number2 = 0) {
  return {static_cast<std::uint8_t>(atom), number, number2, 0};
}

// The stack of these tests: one word, at 0x1000.
bool read(std::uint64_t address, std::uint64_t& word) {
  if (address != 0x1000) return false;
  word = 0xabcd;
  return true;
}

struct Answer {
  std::uint64_t value;
  bool is_value;
  bool operator==(const Answer&) const = default;
};

std::optional<Answer> answer(const std::vector<Dwarf_Op>& operations) {
  Registers registers;
  registers.set(kSp, 0x1000);
  registers.set(kBp, 0x2000);
  Answer found = {};
  if (!evaluate(operations, registers, kCfa, read, found.value, found.is_value)) return std::nullopt;
  return found;
}

std::optional<std::uint64_t> combined(std::uint64_t left, std::uint64_t right, unsigned atom) {
  const auto found = answer({op(DW_OP_constu, left), op(DW_OP_constu, right), op(atom)});
  return found ? std::optional(found->value) : std::nullopt;
}

TEST(Expression, CountsFromRegistersConstantsAndTheFrame) {
  EXPECT_EQ(answer({op(DW_OP_lit31)}), (Answer{31, false}));
  EXPECT_EQ(answer({op(DW_OP_breg7, 8)}), (Answer{0x1008, false}));
  EXPECT_EQ(answer({op(DW_OP_breg7, kMinusOne - 7)}), (Answer{0xff8, false}));
  EXPECT_EQ(answer({op(DW_OP_bregx, kBp, 16)}), (Answer{0x2010, false}));
  EXPECT_EQ(answer({op(DW_OP_call_frame_cfa), op(DW_OP_plus_uconst, 4)}), (Answer{kCfa + 4, false}));
  EXPECT_EQ(answer({op(DW_OP_const1s, kMinusOne)}), (Answer{kMinusOne, false}));
  EXPECT_EQ(answer({op(DW_OP_lit1), op(DW_OP_lit2), op(DW_OP_drop), op(DW_OP_dup), op(DW_OP_plus)}),
            (Answer{2, false}));
}

TEST(Expression, SubtractsTheTopFromWhatIsBelowItAndWrapsAround) {
  EXPECT_EQ(combined(1, 3, DW_OP_minus), kMinusOne - 1);
  EXPECT_EQ(combined(kMinusOne, 2, DW_OP_plus), 1U);
  EXPECT_EQ(combined(kMinusOne, kMinusOne, DW_OP_mul), 1U);
  EXPECT_EQ(combined(0b1100, 0b1010, DW_OP_and), 0b1000U);
  EXPECT_EQ(combined(0b1100, 0b1010, DW_OP_or), 0b1110U);
  EXPECT_EQ(combined(0b1100, 0b1010, DW_OP_xor), 0b0110U);
}

TEST(Expression, ShiftsOutAllBitsByAWordsWidthAndMore) {
  EXPECT_EQ(combined(1, 63, DW_OP_shl), std::uint64_t{1} << 63);
  EXPECT_EQ(combined(1, 64, DW_OP_shl), 0U);
  EXPECT_EQ(combined(kMinusOne, 63, DW_OP_shr), 1U);
  EXPECT_EQ(combined(kMinusOne, kMinusOne, DW_OP_shr), 0U);
}

TEST(Expression, ComparesWithSigns) {
  for (const auto& [atom, less, equal, greater] : {std::array<unsigned, 4>{DW_OP_lt, 1, 0, 0},
                                                   {DW_OP_le, 1, 1, 0},
                                                   {DW_OP_gt, 0, 0, 1},
                                                   {DW_OP_ge, 0, 1, 1},
                                                   {DW_OP_eq, 0, 1, 0},
                                                   {DW_OP_ne, 1, 0, 1}}) {
    EXPECT_EQ(combined(kMinusOne, 1, atom), less) << atom;
    EXPECT_EQ(combined(1, 1, atom), equal) << atom;
    EXPECT_EQ(combined(1, kMinusOne, atom), greater) << atom;
  }
}

// A procedure linkage table's, as binutils write it: 16 bytes more from the twelfth byte of an entry on.
TEST(Expression, CountsTheFrameOfAProcedureLinkageTable) {
  for (std::uint64_t offset = 0; offset < 16; ++offset) {
    Registers registers;
    registers.set(kSp, 0x1000);
    registers.set(kIp, 0x4010 + offset);
    const std::vector<Dwarf_Op> operations = {op(DW_OP_breg7, 8), op(DW_OP_breg16), op(DW_OP_lit15),
                                              op(DW_OP_and),      op(DW_OP_lit11),  op(DW_OP_ge),
                                              op(DW_OP_lit3),     op(DW_OP_shl),    op(DW_OP_plus)};
    std::uint64_t cfa = 0;
    bool is_value = false;
    ASSERT_TRUE(evaluate(operations, registers, 0, read, cfa, is_value));
    EXPECT_EQ(cfa, offset < 11 ? 0x1008U : 0x1010U);
  }
}

TEST(Expression, TellsAValueFromThePlaceWhereItWasSaved) {
  EXPECT_EQ(answer({op(DW_OP_breg7)}), (Answer{0x1000, false}));
  EXPECT_EQ(answer({op(DW_OP_breg7), op(DW_OP_stack_value)}), (Answer{0x1000, true}));
  EXPECT_EQ(answer({op(DW_OP_reg6)}), (Answer{0x2000, true}));
  EXPECT_EQ(answer({op(DW_OP_regx, kBp)}), (Answer{0x2000, true}));
  EXPECT_EQ(answer({op(DW_OP_breg7), op(DW_OP_deref), op(DW_OP_nop)}), (Answer{0xabcd, false}));
}

TEST(Expression, EndsAtAWordOfTheStackThatWasNotCopied) {
  EXPECT_FALSE(answer({op(DW_OP_breg7, 8), op(DW_OP_deref)}));
  EXPECT_FALSE(answer({op(DW_OP_constu, kMinusOne), op(DW_OP_deref)}));
}

TEST(Expression, EndsAtARegisterThatIsNotKnownOrDoesNotExist) {
  EXPECT_FALSE(answer({op(DW_OP_breg0)}));
  EXPECT_FALSE(answer({op(DW_OP_reg3)}));
  EXPECT_FALSE(answer({op(DW_OP_breg31)}));
  EXPECT_FALSE(answer({op(DW_OP_reg31)}));
  EXPECT_FALSE(answer({op(DW_OP_bregx, kRegisters)}));
  // Of which 32 bits are the number of a register that is known.
  EXPECT_FALSE(answer({op(DW_OP_bregx, (std::uint64_t{1} << 32) + kSp)}));
  EXPECT_FALSE(answer({op(DW_OP_bregx, kMinusOne)}));
  EXPECT_FALSE(answer({op(DW_OP_regx, kRegisters)}));
}

TEST(Expression, EndsWhereWordsAreMissing) {
  EXPECT_FALSE(answer({}));
  EXPECT_FALSE(answer({op(DW_OP_nop)}));
  for (const unsigned atom :
       std::vector<unsigned>{DW_OP_plus_uconst, DW_OP_deref, DW_OP_dup, DW_OP_drop, DW_OP_stack_value, DW_OP_plus})
    EXPECT_FALSE(answer({op(atom)})) << atom;
  for (const unsigned atom :
       std::vector<unsigned>{DW_OP_plus, DW_OP_minus, DW_OP_mul, DW_OP_and, DW_OP_shl, DW_OP_eq, DW_OP_lt})
    EXPECT_FALSE(answer({op(DW_OP_lit1), op(atom)})) << atom;
  EXPECT_FALSE(answer({op(DW_OP_lit1), op(DW_OP_drop)}));
}

TEST(Expression, EndsAtWhatIsNotUnderstood) {
  for (const unsigned atom :
       std::vector<unsigned>{DW_OP_bra, DW_OP_skip, DW_OP_div, DW_OP_mod, DW_OP_xderef, DW_OP_push_object_address,
                             DW_OP_piece, DW_OP_fbreg, DW_OP_entry_value, DW_OP_GNU_parameter_ref, 0xffU, 0U}) {
    EXPECT_FALSE(answer({op(DW_OP_lit4), op(DW_OP_lit2), op(atom)})) << atom;
  }
}

}  // namespace
}  // namespace brimful::observer::stacks
