// SPDX-License-Identifier: MIT
//
// base/line.h, base/list.h and base/units.h.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/line.h"
#include "base/list.h"
#include "base/units.h"

namespace brimful {
namespace {

template <class T>
std::string text_of(T value) {
  return (Line() << value).data();
}

TEST(Line, WritesEveryNumberAsPrintfDoes) {
  EXPECT_EQ(text_of(std::uint64_t{0}), "0");
  EXPECT_EQ(text_of(UINT64_MAX), "18446744073709551615");
  EXPECT_EQ(text_of(INT64_MIN), "-9223372036854775808");
  EXPECT_EQ(text_of(INT64_MAX), "9223372036854775807");
  EXPECT_EQ(text_of(-1), "-1");
  EXPECT_EQ(text_of(UINT32_MAX), "4294967295");
  EXPECT_EQ(text_of(10), "10");
}

TEST(Line, WritesPointersInHexWithoutLeadingZeros) {
  const auto pointer = [](std::uintptr_t value) { return text_of(reinterpret_cast<const void*>(value)); };
  EXPECT_EQ(pointer(0), "0x0");
  EXPECT_EQ(pointer(0x10), "0x10");
  EXPECT_EQ(pointer(0x7fffdeadbeef), "0x7fffdeadbeef");
  EXPECT_EQ(pointer(UINTPTR_MAX), "0xffffffffffffffff");
}

TEST(Line, CutsWhatDoesNotFitAndStaysTerminated) {
  Line line;
  for (int i = 0; i < 1000; ++i) line << "abcdefg";
  EXPECT_EQ(line.size(), Line::kCapacity);
  EXPECT_EQ(std::string(line.data()).size(), Line::kCapacity);
  line << UINT64_MAX;
  EXPECT_EQ(line.size(), Line::kCapacity);
}

TEST(Line, KeepsForeignTextOnOneLine) {
  std::string every;
  for (int c = 0; c < 256; ++c) every.push_back(static_cast<char>(c));
  Line line;
  line.append(every.data(), every.size());
  ASSERT_EQ(line.size(), 256U);
  for (int c = 0; c < 256; ++c) {
    EXPECT_EQ(line.data()[c], c < ' ' ? '?' : static_cast<char>(c)) << "character " << c;
  }
}

TEST(Line, KeepsItsOwnLineEnd) { EXPECT_EQ(text_of("a\tb\n"), "a?b\n"); }

struct Element {
  int value;
  Element* next;
  Element* prev;
};

std::vector<int> values_of(const List<Element>& list) {
  std::vector<int> values;
  const Element* last = nullptr;
  for (const Element* e = list.front(); e != nullptr; e = e->next) {
    EXPECT_EQ(e->prev, last);
    values.push_back(e->value);
    last = e;
  }
  return values;
}

TEST(List, KeepsOrderWhateverIsRemoved) {
  using Values = std::vector<int>;
  Element e[4] = {{0, nullptr, nullptr}, {1, nullptr, nullptr}, {2, nullptr, nullptr}, {3, nullptr, nullptr}};
  List<Element> list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.pop_front(), nullptr);
  for (Element& element : e) list.push_back(&element);
  list.remove(&e[1]);
  EXPECT_EQ(values_of(list), (Values{0, 2, 3}));
  list.remove(&e[3]);
  EXPECT_EQ(values_of(list), (Values{0, 2}));
  list.push_back(&e[1]);
  EXPECT_EQ(list.pop_front(), &e[0]);
  EXPECT_EQ(values_of(list), (Values{2, 1}));
  list.remove(&e[2]);
  list.remove(&e[1]);
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(e[1].next, nullptr);
  EXPECT_EQ(e[1].prev, nullptr);
  list.push_back(&e[3]);
  EXPECT_EQ(values_of(list), (Values{3}));
}

TEST(Units, CountsTheFewestGranulesThatHoldTheBytes) {
  EXPECT_EQ(GranuleCount::covering(0).raw(), 0U);
  EXPECT_EQ(GranuleCount::covering(1).raw(), 1U);
  EXPECT_EQ(GranuleCount::covering(kGranuleBytes).raw(), 1U);
  EXPECT_EQ(GranuleCount::covering(kGranuleBytes + 1).raw(), 2U);
  EXPECT_EQ(GranuleCount(UINT32_MAX).bytes(), std::size_t{UINT32_MAX} << 16);
  EXPECT_EQ((GranuleCount(5) - GranuleCount(2) + GranuleCount(1)).raw(), 4U);
  EXPECT_LT(GranuleCount(1), GranuleCount(2));
}

TEST(Units, RoundsToPowersOfTwo) {
  EXPECT_EQ(round_up(0, 4096), 0U);
  EXPECT_EQ(round_up(1, 4096), 4096U);
  EXPECT_EQ(round_up(4096, 4096), 4096U);
  EXPECT_EQ(round_down(4095, 4096), 0U);
  EXPECT_EQ(round_down(8191, 4096), 4096U);
  EXPECT_FALSE(is_power_of_two(0));
  EXPECT_TRUE(is_power_of_two(1));
  EXPECT_FALSE(is_power_of_two(3));
  EXPECT_TRUE(is_power_of_two(std::uint64_t{1} << 63));
}

}  // namespace
}  // namespace brimful
