// SPDX-License-Identifier: MIT
//
// Whole stacks, laid out word by word: complete, cut off, and with frame pointers that lie.
#include "stacks/unwind.h"

#include "frames.h"

namespace brimful::observer::stacks {
namespace {

constexpr std::uint64_t kTop = 0x7000'0000;  // the stack pointer of these tests

class Unwinding : public Frames {
 protected:
  // What is returned to behind a call in the first function of a thread.
  const std::uint64_t into_first_ = address_of(frame_first) + 5;

  // Unwinds from `from`, with the stack's words from the stack pointer on.
  Unwound unwind(const char* from, const std::vector<std::uint64_t>& words, bool is_truncated = false,
                 const std::vector<std::uint64_t>& addresses = {}, std::uint64_t frame_pointer = 0,
                 std::uint64_t top = kTop) {
    Captured captured;
    captured.registers.set(kIp, address_of(from));
    captured.registers.set(kSp, top);
    if (frame_pointer != 0) captured.registers.set(kBp, frame_pointer);
    captured.copy = {reinterpret_cast<const unsigned char*>(words.data()), words.size() * sizeof words[0]};
    captured.addresses = addresses;
    captured.truncated = is_truncated;
    return Unwinder(modules_).unwind(captured, {});
  }

  // The addresses that its frames have to lie at.
  void expect(const Unwound& stack, End end, const std::vector<std::uint64_t>& addresses) const {
    EXPECT_EQ(static_cast<int>(stack.end), static_cast<int>(end));
    std::vector<std::uint64_t> found;
    std::vector<std::uint64_t> wanted;
    for (const Frame& frame : stack.frames) found.push_back(frame.place.address);
    for (const std::uint64_t address : addresses) wanted.push_back(place_of(address).address);
    EXPECT_EQ(found, wanted);
  }
};

TEST_F(Unwinding, FollowsCallersToTheFirstFunctionOfAThread) {
  const std::uint64_t into_leaf = address_of(frame_leaf) + 1;
  expect(unwind(frame_leaf, {into_leaf, into_first_}), End::kComplete,
         {address_of(frame_leaf), into_leaf - 1, into_first_ - 1});
}

TEST_F(Unwinding, EndsAtAReturnAddressOfZero) {
  expect(unwind(frame_leaf, {0}), End::kComplete, {address_of(frame_leaf)});
}

TEST_F(Unwinding, NamesAnInterruptedInstructionAndNotTheOneBeforeIt) {
  const std::uint64_t interrupted = address_of(frame_leaf);  // its first: the one before is another function's
  expect(unwind(frame_signal, {7, interrupted, kTop + 24, into_first_}), End::kComplete,
         {address_of(frame_signal), interrupted, into_first_ - 1});
}

TEST_F(Unwinding, SaysThatACopyWasTooShort) {
  const std::uint64_t into_leaf = address_of(frame_leaf) + 1;
  const std::vector<std::uint64_t> frames = {address_of(frame_leaf), into_leaf - 1};
  expect(unwind(frame_leaf, {into_leaf}, true), End::kTruncated, frames);
  // It was all that there is of the stack, so its end is no reason.
  expect(unwind(frame_leaf, {into_leaf}, false), End::kUnknown, frames);
  expect(unwind(frame_leaf, {}, true), End::kTruncated, {address_of(frame_leaf)});
}

TEST_F(Unwinding, GoesOnBehindTheCopyByTheAddressesThatTheLibraryKept) {
  const std::uint64_t into_leaf = address_of(frame_leaf) + 1;
  const std::uint64_t into_pushed = address_of(frame_pushed) + 5;
  expect(unwind(frame_leaf, {into_leaf}, true, {into_leaf, into_pushed, into_first_}), End::kComplete,
         {address_of(frame_leaf), into_leaf - 1, into_pushed - 1, into_first_ - 1});
  expect(unwind(frame_leaf, {into_leaf}, true, {into_leaf, into_pushed}), End::kTruncated,
         {address_of(frame_leaf), into_leaf - 1, into_pushed - 1});
  // They don't hold where we are: they may be of another way.
  expect(unwind(frame_leaf, {into_leaf}, true, {into_pushed, into_first_}), End::kTruncated,
         {address_of(frame_leaf), into_leaf - 1});
  // One that is no code ends them.
  expect(unwind(frame_leaf, {into_leaf}, true, {into_leaf, 17, into_first_}), End::kTruncated,
         {address_of(frame_leaf), into_leaf - 1});
}

TEST_F(Unwinding, IsLostAtWhatIsNoCode) {
  expect(unwind(frame_leaf, {0x10}), End::kUnknown, {address_of(frame_leaf)});
  int data = 0;
  expect(unwind(frame_leaf, {reinterpret_cast<std::uint64_t>(&data)}), End::kUnknown, {address_of(frame_leaf)});
  expect(unwind(reinterpret_cast<const char*>(&data), {into_first_}), End::kUnknown, {});
}

TEST_F(Unwinding, EndsInEndlessRecursion) {
  const Unwound stack = unwind(frame_leaf, std::vector<std::uint64_t>(4096, address_of(frame_leaf) + 1));
  EXPECT_EQ(stack.frames.size(), 512U);
  EXPECT_EQ(static_cast<int>(stack.end), static_cast<int>(End::kUnknown));
}

TEST_F(Unwinding, ReadsNothingBehindTheEndOfTheAddressSpace) {
  // Of the word at the stack pointer 8 bytes would be there, and the next one's address is 0.
  const std::uint64_t top = ~std::uint64_t{7};
  expect(unwind(frame_leaf, {address_of(frame_leaf) + 1, into_first_}, true, {}, 0, top), End::kUnknown,
         {address_of(frame_leaf)});
}

// Code without a table: the frame pointer has to lead there.

TEST_F(Unwinding, TakesAFramePointerThatLeadsBehindACall) {
  const auto called = address_of(frame_bare_called);
  expect(unwind(frame_bare, {7, kTop + 32, called, 7, 0, into_first_}, false, {}, kTop + 8), End::kComplete,
         {address_of(frame_bare), called - 1, into_first_ - 1});
  for (const std::uint64_t* indirect = frame_returns; *indirect != 0; ++indirect) {
    expect(unwind(frame_bare, {7, kTop + 32, *indirect, 7, 0, into_first_}, false, {}, kTop + 8), End::kComplete,
           {address_of(frame_bare), *indirect - 1, into_first_ - 1});
  }
}

TEST_F(Unwinding, DoesNotBelieveAFramePointerThatLies) {
  const std::vector<std::uint64_t> alone = {address_of(frame_bare)};
  const auto lies = [&](std::vector<std::uint64_t> words, std::uint64_t frame_pointer) {
    expect(unwind(frame_bare, words, false, {}, frame_pointer), End::kUnknown, alone);
  };
  const auto called = address_of(frame_bare_called);
  lies({0, called}, 0);                                 // it is not known
  lies({0, called}, kTop - 16);                         // below the stack pointer
  lies({0, called}, kTop + 4096);                       // behind the copy
  lies({0, called}, ~std::uint64_t{7});                 // and of the address space
  lies({kTop, called}, kTop);                           // its own caller
  lies({kTop - 8, called}, kTop);                       // its caller lies below
  lies({kTop + 64, 0x1234}, kTop);                      // what it returns to is no code
  lies({kTop + 64, address_of(frame_bare) + 3}, kTop);  // no call before it
  lies({kTop + 64, address_of(frame_bare)}, kTop);      // another function's first byte
  lies({kTop + 64, called + 1}, kTop);                  // the byte behind the one that is returned to
}

TEST_F(Unwinding, SaysThatTheCopyEndsBeforeAFramePointersPlace) {
  expect(unwind(frame_bare, {0, 0}, true, {}, kTop + 4096), End::kTruncated, {address_of(frame_bare)});
}

TEST_F(Unwinding, TellsTheVisitorWhereEachFramesStackEnds) {
  const std::vector<std::uint64_t> words = {address_of(frame_leaf) + 1, into_first_};
  Captured captured;
  captured.registers.set(kIp, address_of(frame_leaf));
  captured.registers.set(kSp, kTop);
  captured.copy = {reinterpret_cast<const unsigned char*>(words.data()), words.size() * sizeof words[0]};
  std::vector<std::uint64_t> ends;
  Unwinder(modules_).unwind(captured,
                            [&](std::size_t index, const Place&, const Registers& registers, std::uint64_t end) {
                              EXPECT_EQ(index, ends.size());
                              EXPECT_EQ(registers.value[kSp], kTop + 8 * index);
                              ends.push_back(end);
                            });
  EXPECT_EQ(ends, (std::vector<std::uint64_t>{kTop + 8, kTop + 16, kTop + 16}));
}

}  // namespace
}  // namespace brimful::observer::stacks
