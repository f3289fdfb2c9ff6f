// SPDX-License-Identifier: MIT
//
// Marking and the graph of what is lost, on heaps laid out by hand.
#include "leaks/mark.h"

#include <gtest/gtest.h>

#include <deque>

#include "leaks/lost.h"

namespace brimful::observer::leaks {
namespace {

using memory::kPageBytes;
using memory::Piece;

constexpr std::uint64_t kSlab = 0x7000'0000'0000;  // addresses of these tests
constexpr std::uint64_t kOther = kSlab + 0x10'0000;
constexpr std::uint64_t kRoots = 0x5000'0000;

// A heap of spans whose memory is ours, and words outside of it.
class Heap {
 public:
  void add(std::uint64_t start, std::uint64_t object_bytes, std::uint32_t count, std::uint64_t free = 0) {
    std::vector<std::uint64_t> live((count + 63) / 64, ~std::uint64_t{0});
    if (count % 64 != 0) live.back() = (std::uint64_t{1} << count % 64) - 1;
    live[0] &= ~free;
    objects_.add(start, object_bytes, count, count != 1, live.data());
    memory_.emplace_back((object_bytes * count + 7) / 8);
    pieces_.push_back(
        {start, object_bytes * count, reinterpret_cast<const std::byte*>(memory_.back().data()), nullptr});
  }
  void write(std::uint64_t at, std::uint64_t word) {
    for (Piece& piece : pieces_) {
      if (at < piece.start || at >= piece.start + piece.bytes) continue;
      std::memcpy(const_cast<std::byte*>(piece.data) + (at - piece.start), &word, sizeof word);
      return;
    }
    FAIL() << "nothing lies at " << at;
  }
  // From the words of a root; `step` and the start as add_root() has them.
  void mark(std::vector<std::uint64_t> roots, std::vector<std::uint64_t> owners = {}) {
    finish();
    Marker marker(objects_);
    for (const std::uint64_t owner : owners) marker.add_owner(owner);
    const Piece root = {kRoots, roots.size() * 8, reinterpret_cast<const std::byte*>(roots.data()), nullptr};
    marker.add_root(root, kRoots, kRoots + root.bytes);
    marker.run();
    keep(marker);
  }
  void finish() {
    objects_.finish();
    for (Span& span : objects_.spans()) {
      for (const Piece& piece : pieces_) {
        if (piece.start == span.start) span.memory = piece;
      }
    }
  }
  void keep(const Marker& marker) {
    reached_ = marker.reached();
    possibly_ = marker.possibly();
  }

  static constexpr char kReached = 'r', kPossibly = 'p', kLost = 'l', kFree = '-';
  char state(std::uint64_t address) const {
    Object object;
    if (!objects_.find(address, object)) return kFree;
    const std::uint64_t number = objects_.number(object);
    if (reached_.test(number)) return possibly_.test(number) ? '!' : kReached;
    return possibly_.test(number) ? kPossibly : kLost;
  }
  // Of the first objects of a span, a letter each.
  std::string states(std::uint64_t start, std::uint64_t object_bytes, unsigned count) const {
    std::string text;
    for (unsigned n = 0; n < count; ++n) text += state(start + n * object_bytes);
    return text;
  }
  // Address and how many are behind, of each leak.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> leaks() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> found;
    for (const Leak& leak : leaks_among(objects_, lost_objects(objects_, reached_, possibly_))) {
      EXPECT_EQ(leak.indirect_bytes, leak.indirect_count * objects_.span(leak.object).object_bytes);
      found.emplace_back(objects_.address(leak.object), leak.indirect_count);
    }
    return found;
  }
  const Objects& objects() const { return objects_; }

 private:
  Objects objects_;
  std::deque<std::vector<std::uint64_t>> memory_;
  std::vector<Piece> pieces_;
  memory::Bits reached_;
  memory::Bits possibly_;
};

using Leaks = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

constexpr std::uint64_t at(unsigned n) { return kSlab + n * std::uint64_t{32}; }

class Marking : public ::testing::Test {
 protected:
  Marking() { heap_.add(kSlab, 32, 64); }
  Heap heap_;
};

TEST_F(Marking, ReachesWhatPointersToStartsLeadTo) {
  heap_.write(at(0) + 24, at(2));
  heap_.write(at(2), at(5));
  heap_.mark({17, at(0), 0});
  EXPECT_EQ(heap_.states(kSlab, 32, 7), "rlrllrl");
}

TEST_F(Marking, EndsInRingsAndFindsTheOneThatIsLost) {
  heap_.write(at(0), at(1));
  heap_.write(at(1), at(0));
  heap_.write(at(2), at(2));
  heap_.write(at(4), at(6));
  heap_.write(at(6), at(5));
  heap_.write(at(5), at(4));
  heap_.mark({at(1), at(2)});
  EXPECT_EQ(heap_.states(kSlab, 32, 7), "rrrllll");
  EXPECT_EQ(heap_.leaks()[0], (Leaks::value_type{at(3), 0}));
  EXPECT_EQ(heap_.leaks()[1], (Leaks::value_type{at(4), 2}));
}

TEST_F(Marking, CallsPossiblyReachedWhatOnlyInnerPointersLeadTo) {
  heap_.write(at(1), at(2));      // behind an inner pointer: no better than that
  heap_.write(at(3), at(4) + 8);  // an inner one in a reached object
  heap_.write(at(4), at(6));
  heap_.mark({at(1) + 31, at(3), at(5) + 1, at(6)});
  EXPECT_EQ(heap_.states(kSlab, 32, 8), "lpprpprl");
}

TEST_F(Marking, PrefersAPointerToTheStartWhicheverIsSeenFirst) {
  heap_.write(at(3), at(0));
  heap_.mark({at(0) + 8, at(1), at(1) + 8, at(3)});
  EXPECT_EQ(heap_.states(kSlab, 32, 4), "rrlr");
}

TEST_F(Marking, TakesAPointerBehindTheEndForTheNextObjectsAndBehindTheLastForNone) {
  heap_.mark({at(1), at(64), at(63) + 32});
  EXPECT_EQ(heap_.states(kSlab, 32, 3), "lrl");
  EXPECT_EQ(heap_.state(at(63)), Heap::kLost);
  EXPECT_EQ(heap_.state(at(64)), Heap::kFree);
  EXPECT_EQ(heap_.state(kSlab - 1), Heap::kFree);
}

TEST_F(Marking, ReadsWordsAtMultiplesOfEightOnly) {
  heap_.write(at(0) + 4, at(7));
  heap_.mark({at(0), at(2) << 32, (at(2) >> 32) | at(3) << 32});
  EXPECT_EQ(heap_.states(kSlab, 32, 8), "rlllllll");
}

TEST_F(Marking, ReadsCodeAtEachByte) {
  heap_.finish();
  std::vector<std::byte> code(21);
  const std::uint64_t first = at(2);
  const std::uint64_t last = at(3);
  std::memcpy(&code[3], &first, 8);
  std::memcpy(&code[13], &last, 8);  // the last bytes that there are
  Marker marker(heap_.objects());
  marker.add_root({kRoots, code.size(), code.data(), nullptr}, kRoots, kRoots + code.size(), 1);
  marker.run();
  heap_.keep(marker);
  EXPECT_EQ(heap_.states(kSlab, 32, 5), "llrrl");
}

TEST_F(Marking, ReadsOfARootWhatLiesInItsRange) {
  heap_.finish();
  const std::vector<std::uint64_t> words = {at(0), at(1), at(2), at(3)};
  Marker marker(heap_.objects());
  const Piece piece = {kRoots, 32, reinterpret_cast<const std::byte*>(words.data()), nullptr};
  marker.add_root(piece, kRoots + 1, kRoots + 23);
  marker.run();
  heap_.keep(marker);
  EXPECT_EQ(heap_.states(kSlab, 32, 4), "lrll");
}

TEST_F(Marking, TakesRegistersForRootsAndAnOwnersAddressForAStart) {
  heap_.write(at(3), at(4));
  heap_.finish();
  Marker marker(heap_.objects());
  marker.add_root_words({at(1), 3, ~std::uint64_t{0}});
  marker.add_owner(at(3) + 16);
  marker.add_owner(17);
  marker.run();
  heap_.keep(marker);
  EXPECT_EQ(heap_.states(kSlab, 32, 5), "lrlrr");
}

TEST(MarkingSpans, LeavesFreeObjectsAndWhatIsWrittenInThem) {
  Heap heap;
  heap.add(kSlab, 32, 64, 0b10);
  heap.write(at(1), at(2));
  heap.mark({at(1), at(1) + 8});
  EXPECT_EQ(heap.states(kSlab, 32, 3), "l-l");
  EXPECT_EQ(heap.objects().live_count(), 63U);
  EXPECT_EQ(heap.objects().live_bytes(), 63 * 32U);
}

TEST(MarkingSpans, FollowsPointersBetweenSlabsAndBlocksUpToTheirLastWord) {
  Heap heap;
  heap.add(kSlab, 48, 64);
  heap.add(kOther, 1 << 20, 1);
  heap.add(kOther + (1 << 21), 4104, 1);  // ends eight bytes into a page
  heap.write(kSlab + 48, kOther);
  heap.write(kOther + (1 << 20) - 8, kOther + (1 << 21));
  heap.write(kOther + (1 << 21) + 4096, kSlab + 96);
  heap.mark({kSlab + 48});
  EXPECT_EQ(heap.states(kSlab, 48, 4), "lrrl");
  EXPECT_EQ(heap.state(kOther + 12345), Heap::kReached);
  EXPECT_EQ(heap.state(kOther + (1 << 20)), Heap::kFree);
}

TEST(MarkingSpans, TellsBlocksApartThatMeetInAGranule) {
  Heap heap;
  heap.add(kSlab + 0x8000, 0x4000, 1);
  heap.add(kSlab + 0xc000, 0x14000, 1);  // in this granule and the next
  heap.add(kSlab + 0x20000, 0x1000, 1);
  heap.mark({kSlab + 0xc000, kSlab + 0x20fff});
  EXPECT_EQ(heap.state(kSlab + 0x7fff), Heap::kFree);
  EXPECT_EQ(heap.state(kSlab + 0x8000), Heap::kLost);
  EXPECT_EQ(heap.state(kSlab + 0xbfff), Heap::kLost);
  EXPECT_EQ(heap.state(kSlab + 0xc000), Heap::kReached);
  EXPECT_EQ(heap.state(kSlab + 0x1ffff), Heap::kReached);
  EXPECT_EQ(heap.state(kSlab + 0x20000), Heap::kPossibly);
  EXPECT_EQ(heap.state(kSlab + 0x21000), Heap::kFree);
}

TEST(MarkingSpans, FindsTheObjectOfEachByteForEverySize) {
  for (std::uint64_t bytes = 8; bytes <= 32768; bytes += bytes < 1024 ? 8 : 1000) {
    Heap heap;
    heap.add(kSlab, bytes, 128);
    heap.finish();
    for (std::uint64_t n = 0; n < 128; ++n) {
      for (const std::uint64_t inside : {std::uint64_t{0}, std::uint64_t{1}, bytes / 2, bytes - 1}) {
        Object object;
        ASSERT_TRUE(heap.objects().find(kSlab + n * bytes + inside, object));
        ASSERT_EQ(object.index, n) << bytes << " " << inside;
      }
    }
  }
}

TEST(MarkingSpans, OfNoHeapIsNothing) {
  Heap heap;
  heap.mark({0, 8, ~std::uint64_t{0}});
  EXPECT_TRUE(heap.leaks().empty());
}

TEST(MarkingSpans, ReadsPagesOnlyThatAreThere) {
  Heap heap;
  heap.add(kSlab, 32, 64);
  heap.finish();
  // Three pages of a root of which the middle one was never written to; its bytes here say otherwise.
  std::vector<std::uint64_t> words(3 * kPageBytes / 8);
  words[0] = at(0);
  words[kPageBytes / 8 - 1] = at(1);
  words[kPageBytes / 8] = at(2);
  words[2 * kPageBytes / 8 - 1] = at(3);
  words[2 * kPageBytes / 8] = at(4);
  memory::Bits present(3);
  present.set(0);
  present.set(2);
  Marker marker(heap.objects());
  const Piece piece = {kRoots / kPageBytes * kPageBytes, 3 * kPageBytes,
                       reinterpret_cast<const std::byte*>(words.data()), &present};
  marker.add_root(piece, piece.start, piece.start + piece.bytes);
  marker.run();
  heap.keep(marker);
  EXPECT_EQ(heap.states(kSlab, 32, 6), "rrllrl");
}

// Eight objects, of which some are reached.
class LostGraph : public ::testing::Test {
 protected:
  LostGraph() { heap_.add(kSlab, 32, 8); }
  Leaks leaks_but_for(const std::vector<unsigned>& reached) {
    std::vector<std::uint64_t> roots;
    for (const unsigned n : reached) roots.push_back(at(n));
    heap_.mark(roots);
    return heap_.leaks();
  }
  Heap heap_;
};

TEST_F(LostGraph, CountsAChainAsOneLeakWithTheRestBehind) {
  heap_.write(at(5), at(3));
  heap_.write(at(3), at(7));
  EXPECT_EQ(leaks_but_for({0, 1, 2, 4, 6}), (Leaks{{at(5), 2}}));
}

TEST_F(LostGraph, CountsOnceWhatTwoLeaksLeadTo) {
  for (const unsigned n : {0U, 1U}) heap_.write(at(n), at(2));
  heap_.write(at(2), at(3));
  heap_.write(at(4), at(5));
  heap_.write(at(5) + 8, at(6) + 4);  // an inner pointer leads there too
  EXPECT_EQ(leaks_but_for({7}), (Leaks{{at(0), 2}, {at(1), 0}, {at(4), 2}}));
}

TEST_F(LostGraph, PutsARingBehindWhatLeadsToIt) {
  heap_.write(at(2), at(3));
  heap_.write(at(3), at(2));
  heap_.write(at(5), at(3));
  EXPECT_EQ(leaks_but_for({0, 1, 4, 6, 7}), (Leaks{{at(5), 2}}));
}

TEST_F(LostGraph, PutsARingBehindAnotherThatLeadsToIt) {
  heap_.write(at(0), at(1));
  heap_.write(at(1), at(0));
  heap_.write(at(2), at(3));
  heap_.write(at(3), at(2));
  heap_.write(at(3) + 8, at(0));
  EXPECT_EQ(leaks_but_for({4, 5, 6, 7}), (Leaks{{at(2), 3}}));
}

TEST_F(LostGraph, TakesTheLowestAddressForARingsHead) {
  heap_.write(at(6), at(1));
  heap_.write(at(1), at(4));
  heap_.write(at(4), at(6));
  EXPECT_EQ(leaks_but_for({0, 2, 3, 5, 7}), (Leaks{{at(1), 2}}));
}

TEST_F(LostGraph, CountsAnObjectThatPointsAtItselfOnly) {
  heap_.write(at(3), at(3));
  heap_.write(at(4), at(4) + 8);
  EXPECT_EQ(leaks_but_for({0, 1, 2, 5, 6, 7}), (Leaks{{at(3), 0}, {at(4), 0}}));
}

TEST_F(LostGraph, LeavesOutWhatIsReachedOnAnotherWay) {
  heap_.write(at(0), at(7));
  heap_.write(at(7), at(6));
  EXPECT_EQ(leaks_but_for({1, 2, 3, 4, 5, 7}), (Leaks{{at(0), 0}}));
}

}  // namespace
}  // namespace brimful::observer::leaks
