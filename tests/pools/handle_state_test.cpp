// SPDX-License-Identifier: MIT
//
// The state machine of src/pools/handle/word.h, each meeting of two calls arranged by hand: what happens to map, unmap,
// free and size while compaction has an object, and who wins when several free it.
#include <atomic>
#include <chrono>
#include <thread>

#include "handle_support.h"
#include "pools/handle/pool.h"

namespace brimful::tests {
namespace {

using namespace brimful::pools::handle;

// Two runs of one class, the object in question in the first, room in the second.
class HandleStates : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 4096;

  void SetUp() override {
    const std::size_t slots = pool_.class_for(kBytes).run_objects;
    for (std::size_t i = 0; i < slots; ++i) first_.push_back(pool_.alloc(kBytes));
    for (std::size_t i = 0; i < slots; ++i) second_.push_back(pool_.alloc(kBytes));
    object_ = first_[0];
    ASSERT_TRUE(fill(*pool_, object_, kBytes, 42));
    ASSERT_EQ(brimful_handle_free(*pool_, second_[0]), BRIMFUL_HANDLE_OK);
  }

  Pool& pool() { return **pool_; }
  Class& size_class() { return pool().class_at(class_of(kBytes)); }
  std::atomic<std::uint64_t>& word() { return pool().find(object_)->word; }
  Index run_of(brimful_handle handle) { return pool().run_of(Word(pool().find(handle)->word.load()).place()); }
  void set_state(std::uint32_t state) { word().store(Word(word().load()).with_state(state).raw()); }

  // Runs `call` in a thread while compaction is in the middle of moving the object, and `then` before it ends.
  template <class Call, class Then>
  void during_a_move(Call call, Then then) {
    size_class().lock.lock(pool().host);
    set_state(kMoving);
    std::atomic<bool> done{false};
    std::thread caller([&] {
      call();
      done = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    EXPECT_FALSE(done) << "it did not wait for the move";
    set_state(kIdle);
    then();
    size_class().lock.unlock(pool().host);
    caller.join();
  }
  void move_it() {
    ASSERT_TRUE(pool().try_move_slot(size_class(), run_of(object_), pool().slot_of(Word(word().load()).place()),
                                     size_class(), run_of(second_[1])));
  }

  HandleHost host_;
  HandlePool pool_{host_.table()};
  std::vector<brimful_handle> first_;
  std::vector<brimful_handle> second_;
  brimful_handle object_ = 0;
};

TEST_F(HandleStates, MapWaitsForAMoveAndSeesTheNewPlace) {
  void* old_place = nullptr;
  ASSERT_EQ(brimful_handle_map(*pool_, object_, BRIMFUL_HANDLE_READ, &old_place), BRIMFUL_HANDLE_OK);
  ASSERT_EQ(brimful_handle_unmap(*pool_, object_), BRIMFUL_HANDLE_OK);
  void* new_place = nullptr;
  during_a_move(
      [&] { EXPECT_EQ(brimful_handle_map(*pool_, object_, BRIMFUL_HANDLE_BOTH, &new_place), BRIMFUL_HANDLE_OK); },
      [&] { move_it(); });
  EXPECT_NE(new_place, old_place);
  EXPECT_EQ(brimful_handle_unmap(*pool_, object_), BRIMFUL_HANDLE_OK);
  EXPECT_TRUE(holds(*pool_, object_, kBytes, 42));
  EXPECT_EQ(pool_.broken(), nullptr);
}

TEST_F(HandleStates, FreeWaitsForAMoveAndFreesTheNewPlace) {
  during_a_move([&] { EXPECT_EQ(brimful_handle_free(*pool_, object_), BRIMFUL_HANDLE_OK); }, [&] { move_it(); });
  EXPECT_EQ(brimful_handle_free(*pool_, object_), BRIMFUL_HANDLE_STALE);
  EXPECT_EQ(pool_.broken(), nullptr);
}

TEST_F(HandleStates, SizeWaitsForAMove) {
  std::size_t bytes = 0;
  during_a_move([&] { EXPECT_EQ(brimful_handle_size(*pool_, object_, &bytes), BRIMFUL_HANDLE_OK); },
                [&] { move_it(); });
  EXPECT_EQ(bytes, kBytes);
}

TEST_F(HandleStates, UnmapOfAnObjectThatIsBeingMovedFindsItUnmapped) {
  set_state(kMoving);
  EXPECT_EQ(brimful_handle_unmap(*pool_, object_), BRIMFUL_HANDLE_UNMAPPED);
  EXPECT_EQ(brimful_handle_count_mapped(*pool_), 0);
  set_state(kIdle);
}

TEST_F(HandleStates, NoMoveTakesAMappedObject) {
  void* pointer = nullptr;
  for (const brimful_handle_mode mode : {BRIMFUL_HANDLE_READ, BRIMFUL_HANDLE_WRITE}) {
    ASSERT_EQ(brimful_handle_map(*pool_, object_, mode, &pointer), BRIMFUL_HANDLE_OK);
    const std::uint64_t before = word().load();
    EXPECT_FALSE(pool().try_move_slot(size_class(), run_of(object_), pool().slot_of(Word(before).place()), size_class(),
                                      run_of(second_[1])));
    EXPECT_EQ(word().load(), before);
    ASSERT_EQ(brimful_handle_unmap(*pool_, object_), BRIMFUL_HANDLE_OK);
  }
  EXPECT_EQ(pool_.broken(), nullptr);
}

TEST_F(HandleStates, OfThreadsThatFreeTheSameHandleOneSucceeds) {
  for (int round = 0; round < 300; ++round) {
    const brimful_handle handle = pool_.alloc(100);
    std::atomic<int> freed{0};
    std::atomic<int> stale{0};
    const auto try_it = [&] {
      const auto result = brimful_handle_free(*pool_, handle);
      if (result == BRIMFUL_HANDLE_OK) ++freed;
      if (result == BRIMFUL_HANDLE_STALE) ++stale;
    };
    std::thread other(try_it);
    try_it();
    other.join();
    ASSERT_EQ(freed, 1);
    ASSERT_EQ(stale, 1);
  }
  EXPECT_EQ(pool_.broken(), nullptr);
}

TEST_F(HandleStates, TheCheckerNamesWhatIsBroken) {
  const std::uint64_t good = word().load();
  set_state(kMoving);
  EXPECT_STREQ(pool_.broken(), "an object is being moved by nobody");
  word().store(Word(Word(good).generation(), Word(good).place() ^ 1, kIdle).raw());
  EXPECT_STREQ(pool_.broken(), "a slot and its entry disagree");
  word().store(good);
  EXPECT_EQ(pool_.broken(), nullptr);

  auto& run = pool().runs[run_of(object_)];
  ++run.live;
  EXPECT_NE(pool_.broken(), nullptr);
  --run.live;
  ++size_class().objects;
  EXPECT_STREQ(pool_.broken(), "a class's objects are counted wrongly");
  --size_class().objects;
  ++size_class().live_bytes;
  EXPECT_STREQ(pool_.broken(), "a class's live bytes are counted wrongly");
  --size_class().live_bytes;
  ++size_class().room;
  EXPECT_STREQ(pool_.broken(), "a class's room is counted wrongly");
  --size_class().room;
  ++pool().held_bytes;
  EXPECT_STREQ(pool_.broken(), "pages are counted wrongly");
  --pool().held_bytes;
  const Index kept = size_class().free_entries;
  size_class().free_entries = entry_of(object_);
  EXPECT_STREQ(pool_.broken(), "a list of free entries leads to none");
  size_class().free_entries = kept;
  EXPECT_EQ(pool_.broken(), nullptr);
}

}  // namespace
}  // namespace brimful::tests
