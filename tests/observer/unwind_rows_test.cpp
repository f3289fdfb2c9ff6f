// SPDX-License-Identifier: MIT
//
// Rows of unwind tables: one step from a function to its caller, by the tables of frames.S.
#include "stacks/unwind_rows.h"

#include <map>

#include "frames.h"

namespace brimful::observer::stacks {
namespace {

constexpr std::uint64_t kTop = 0x7000'0000;  // the stack pointer of these tests

class UnwindRow : public Frames {
 protected:
  // One step from `address`, with the stack's words by their distance from the stack pointer.
  Step step(std::uint64_t address, std::map<std::uint64_t, std::uint64_t> words) {
    const Place place = place_of(address);
    const Row* const row = rows_.at(*modules_.module(place.module), place.address);
    if (row == nullptr) return Step::kNoTable;
    registers_.set(kIp, address);
    registers_.set(kSp, kTop);
    return row->apply(
        registers_,
        [&](std::uint64_t at, std::uint64_t& word) {
          const auto found = words.find(at - kTop);
          if (found != words.end()) word = found->second;
          return found != words.end();
        },
        is_signal_);
  }

  void expect(unsigned number, std::uint64_t value) {
    EXPECT_TRUE(registers_.has(number)) << number;
    EXPECT_EQ(registers_.value[number], value) << number;
  }

  Rows rows_;
  Registers registers_;
  bool is_signal_ = true;
};

TEST_F(UnwindRow, TakesTheReturnAddressFromAboveTheStackPointer) {
  registers_.set(kBx, 3);
  registers_.set(0, 5);
  ASSERT_EQ(step(address_of(frame_leaf), {{0, 0x1234}}), Step::kCaller);
  expect(kIp, 0x1234);
  expect(kSp, kTop + 8);
  expect(kBx, 3);
  EXPECT_FALSE(registers_.has(0)) << "%rax does not survive a call";
  EXPECT_FALSE(is_signal_);
}

TEST_F(UnwindRow, FollowsAFunctionThroughItsFirstInstructions) {
  registers_.set(kBp, 7);
  ASSERT_EQ(step(address_of(frame_pushed), {{0, 0x1234}}), Step::kCaller);
  expect(kBp, 7);
  expect(kSp, kTop + 8);

  registers_.set(kBp, 7);
  ASSERT_EQ(step(address_of(frame_pushed) + 1, {{0, 9}, {8, 0x1234}}), Step::kCaller);
  expect(kBp, 9);
  expect(kIp, 0x1234);
  expect(kSp, kTop + 16);

  registers_.set(kBp, kTop + 64);
  ASSERT_EQ(step(address_of(frame_pushed) + 4, {{64, 9}, {72, 0x1234}}), Step::kCaller);
  expect(kBp, 9);
  expect(kSp, kTop + 80);
}

TEST_F(UnwindRow, EndsWhereTheTablesSayThatNobodyCalled) {
  EXPECT_EQ(step(address_of(frame_first), {{0, 0x1234}}), Step::kEnd);
}

TEST_F(UnwindRow, TellsAnInterruptedFunctionFromACallingOne) {
  ASSERT_EQ(step(address_of(frame_signal), {{8, 0x1234}, {16, kTop - 4096}}), Step::kCaller);
  EXPECT_TRUE(is_signal_);
  expect(kIp, 0x1234);
  expect(kSp, kTop - 4096);  // on another stack, which may lie anywhere
}

TEST_F(UnwindRow, TakesTheReturnAddressFromARegister) {
  registers_.set(kBx, 0x1234);
  ASSERT_EQ(step(address_of(frame_in_register), {}), Step::kCaller);
  expect(kIp, 0x1234);
}

TEST_F(UnwindRow, IsLostWithoutTheRegisterThatTheReturnAddressIsIn) {
  EXPECT_EQ(step(address_of(frame_in_register), {}), Step::kLost);
}

TEST_F(UnwindRow, FindsAFrameByAWordOfTheStack) {
  ASSERT_EQ(step(address_of(frame_by_word), {{16, kTop + 128}, {120, 0x1234}}), Step::kCaller);
  expect(kIp, 0x1234);
  expect(kSp, kTop + 128);
}

TEST_F(UnwindRow, IsLostWhereTheWordWasNotCopied) {
  EXPECT_EQ(step(address_of(frame_by_word), {{120, 0x1234}}), Step::kLost);
  EXPECT_EQ(step(address_of(frame_leaf), {}), Step::kLost);
}

TEST_F(UnwindRow, RestoresEachRegisterByItsOwnRule) {
  for (const unsigned number : {kBx, kR12, kR12 + 1, kR12 + 2, kR12 + 3}) registers_.set(number, number);
  ASSERT_EQ(step(address_of(frame_rules), {{24, 0x1234}, {8, 99}}), Step::kCaller);
  expect(kBx, kTop + 32 + 24);
  expect(kR12, kR12);
  EXPECT_FALSE(registers_.has(kR12 + 1));
  expect(kR12 + 2, 99);
  expect(kR12 + 3, kR12 + 3);
}

TEST_F(UnwindRow, ForgetsARegisterWhosePlaceWasNotCopiedAndGoesOn) {
  registers_.set(kR12 + 2, 14);
  ASSERT_EQ(step(address_of(frame_rules), {{24, 0x1234}}), Step::kCaller);
  EXPECT_FALSE(registers_.has(kR12 + 2));
}

TEST_F(UnwindRow, IsLostOnAStackThatDoesNotGetShorter) {
  EXPECT_EQ(step(address_of(frame_stays), {{8, 0x1234}}), Step::kLost);
}

TEST_F(UnwindRow, IsLostWhereTheFrameHangsOnAnUnknownRegister) {
  EXPECT_EQ(step(address_of(frame_by_lost_register), {{0, 0x1234}}), Step::kLost);
}

TEST_F(UnwindRow, BelievesNoTableWithAnotherReturnRegister) {
  EXPECT_EQ(step(address_of(frame_other_column), {{0, 0x1234}}), Step::kNoTable);
}

TEST_F(UnwindRow, HasNoTableForCodeWithoutOne) {
  EXPECT_EQ(step(address_of(frame_bare), {{0, 0x1234}}), Step::kNoTable);
  EXPECT_EQ(step(address_of(frame_bare) + 1, {{0, 0x1234}}), Step::kNoTable);
}

TEST_F(UnwindRow, IsOneForItsRangeOfAddressesWhateverWasAskedBefore) {
  const Place place = place_of(address_of(frame_pushed));
  const Module& module = *modules_.module(place.module);
  const Row* const last = rows_.at(module, place.address + 9);
  EXPECT_EQ(rows_.at(module, place.address + 4), last);
  EXPECT_NE(rows_.at(module, place.address), last);
  EXPECT_NE(rows_.at(module, place.address + 1), rows_.at(module, place.address));
  EXPECT_EQ(rows_.at(module, place.address + 4), last);
  // A gap on both sides of which there are tables stays one.
  const std::uint64_t bare = place_of(address_of(frame_bare)).address;
  EXPECT_EQ(rows_.at(module, bare + 3), nullptr);
  EXPECT_EQ(rows_.at(module, bare), nullptr);
  EXPECT_EQ(rows_.at(module, bare + 3), nullptr);
  EXPECT_NE(rows_.at(module, place.address), nullptr);
}

}  // namespace
}  // namespace brimful::observer::stacks
