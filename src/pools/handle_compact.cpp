// SPDX-License-Identifier: MIT
//
// Handle pool: compaction. A sweep goes through the classes, the smallest objects first, and in each class
//
//   1. while the free slots of its runs would make up a run: moves an object from its emptiest run to its fullest with
//      room, one at a time, under the class's lock. A run that becomes empty goes back to the host.
//   2. then, while the objects of its emptiest run find room in slightly larger classes (Class::upper): moves them
//      there, under both locks. The class would have kept a run for a few objects otherwise, and the slots stand empty.
//
// A run with an object that can't be moved because it is mapped is left alone for the rest of the sweep: its
// `pinned_in` becomes the sweep's number, and it goes to the end of its group's ring, so that the head tells whether the
// group has others. A step that ends before the sweep does leaves the class it has come to in `sweep_class`; the next
// goes on there.
//
// It ends. In 1 no object moves to a run with fewer objects, so the sum of squares of live objects grows with each move
// (or the runs not left alone have one less); in 2 objects only ever go to larger classes.
//
// One object: its word goes from kIdle to kMoving, which keeps map() out; the bytes are copied; the reference is
// written; the word gets the new place and kIdle (release). The slot it left is free before the lock is.
#include <cstring>

#include "pools/handle_pool.h"

namespace brimful::pools::handle {
namespace {

// One call of brimful_handle_compact().
class Step {
 public:
  Step(Pool& pool, std::size_t most_moves)
      : pool_(pool),
        left_(most_moves == 0 ? ~std::size_t{0} : most_moves),
        // relaxed: numbers that only keep sweeps apart
        number_(pool.sweep_number.load(std::memory_order_relaxed)) {}

  // Does what there is to do in the class. False: there are no more moves to do it with.
  bool finish(Class& size_class);
  [[nodiscard]] std::size_t given_bytes() const { return given_bytes_; }
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  // Of the next sweep; never 0, which is what a new run has.
  [[nodiscard]] std::uint16_t next_number() const { return static_cast<std::uint16_t>(number_ % 0xFFFF + 1); }

 private:
  struct Pair {
    Index source = kNone;
    Index target = kNone;
  };

  bool advance(Class& size_class);
  Index emptiest(Class& size_class);
  Pair choose(Class& size_class);
  bool move_up(Class& size_class, Index source);
  bool fits_above(const Class& size_class, Index source);
  void count_move(Class& size_class, Index source, bool moved);

  Pool& pool_;
  std::size_t left_;
  std::uint16_t number_;
  std::size_t given_bytes_ = 0;
  std::uint64_t moves_ = 0;
  Index empty_ = kNone;  // a run to destroy when the lock is free
};

// The emptiest run that is not left alone; kNone: there is none.
Index Step::emptiest(Class& size_class) {
  for (unsigned groups = size_class.groups & ((1U << kFullGroup) - 1); groups != 0; groups &= groups - 1) {
    const Index head = size_class.head(static_cast<unsigned>(std::countr_zero(groups)));
    if (pool_.runs[head].pinned_in != number_) return head;
  }
  return kNone;
}

// From where to where the class's next object goes.
Step::Pair Step::choose(Class& size_class) {
  // relaxed: written under the lock, which is held
  if (size_class.room.load(std::memory_order_relaxed) < size_class.slots) return {};
  Index source = emptiest(size_class);
  if (source == kNone) return {};
  Index target = pool_.fullest_with_room(size_class);
  if (target == source) target = pool_.runs[source].next;
  if (target == source) return {};
  if (pool_.runs[target].live < pool_.runs[source].live && pool_.runs[target].pinned_in != number_) {
    return {target, source};
  }
  return {source, target};
}

// After an attempt to move an object out of `source`, whose class's lock is held.
void Step::count_move(Class& size_class, Index source, bool moved) {
  --left_;  // an attempt that fails has looked at a whole run and counts as well
  Run& run = pool_.runs[source];
  if (!moved) {
    const unsigned group = size_class.group_of(run.live);
    run.pinned_in = number_;
    pool_.unlink(size_class, source, group);
    pool_.link(size_class, source, group, true);
    return;
  }
  ++moves_;
  if (run.live == 0) empty_ = source;
}

// Whether all objects of the run would find room in the classes above, as far as can be seen without their locks.
bool Step::fits_above(const Class& size_class, Index source) {
  std::size_t room = 0;
  const std::size_t wanted = pool_.runs[source].live;
  for (unsigned i = size_class.index + 1U; i <= size_class.upper && room < wanted; ++i) {
    // relaxed: a guess; move_up() looks again under the lock
    room += pool_.class_at(i).room.load(std::memory_order_relaxed);
  }
  return room >= wanted;
}

bool Step::move_up(Class& size_class, Index source) {
  for (unsigned i = size_class.index + 1U; i <= size_class.upper; ++i) {
    Class& larger = pool_.class_at(i);
    // relaxed: whether the lock is worth taking
    if (larger.room.load(std::memory_order_relaxed) == 0) continue;
    const LockGuard guard(larger.lock, pool_.host);
    const Index target = pool_.fullest_with_room(larger);
    if (target == kNone) continue;
    count_move(size_class, source, pool_.move_object(size_class, source, larger, target));
    return true;
  }
  return false;
}

// One move, or one attempt. False: there is nothing to do.
bool Step::advance(Class& size_class) {
  const LockGuard guard(size_class.lock, pool_.host);
  const Pair pair = choose(size_class);
  if (pair.source != kNone) {
    count_move(size_class, pair.source, pool_.move_object(size_class, pair.source, size_class, pair.target));
    return true;
  }
  const Index source = emptiest(size_class);
  return source != kNone && fits_above(size_class, source) && move_up(size_class, source);
}

bool Step::finish(Class& size_class) {
  while (left_ != 0) {
    const bool advanced = advance(size_class);
    if (empty_ != kNone) {
      given_bytes_ += size_class.run_bytes;
      pool_.destroy_run(empty_, size_class.run_bytes);
      empty_ = kNone;
    }
    if (!advanced) return true;
  }
  return false;
}

}  // namespace

// The locks of both classes are held, and `target` has room. False: the object in the slot is mapped, or too small for
// the other class.
bool Pool::try_move_slot(Class& from, Index source, std::uint32_t slot, Class& to, Index target) {
  const Reference reference = references(from, runs[source])[slot];
  const Index entry = reference & (kMostEntries - 1);
  const char* object = runs[source].base + slot * from.slot_bytes();
  const std::size_t bytes = from.slot_bytes() - slack_of(reference, object, from.slot_bytes());
  if (class_at(class_of(bytes)).upper < to.index) return false;
  // relaxed: the exchange below acquires
  const Word word(entries[entry].word.load(std::memory_order_relaxed));
  std::uint64_t expected = word.with_state(kIdle).raw();
  // pairs with: unmap() (the bytes)
  if (!entries[entry].word.compare_exchange_strong(expected, word.with_state(kMoving).raw(), std::memory_order_acquire,
                                                   std::memory_order_relaxed)) {  // relaxed: nothing is read
    return false;
  }
  const std::uint32_t now = take_slot(to, target, make_reference(to, bytes, entry));
  char* copy = runs[target].base + now * to.slot_bytes();
  memcpy(copy, object, bytes);
  note_slack(copy, to.slot_bytes(), bytes);
  // pairs with: map(), with_object() (the run's record, the bytes)
  entries[entry].word.store(Word(word.generation(), place_of(target, now), kIdle).raw(), std::memory_order_release);
  --from.objects;
  from.live_bytes -= bytes;
  ++to.objects;
  to.live_bytes += bytes;
  // That the run is empty now, if it is, shows in its record; the caller looks.
  static_cast<void>(release_slot(from, source, slot));
  return true;
}

// Moves the first object of `source` that can be moved. False: none can.
bool Pool::move_object(Class& from, Index source, Class& to, Index target) {
  const Reference* references = this->references(from, runs[source]);
  for (std::uint32_t slot = 0; slot < from.slots; ++slot) {
    if ((references[slot] & kFreeReference) == 0 && try_move_slot(from, source, slot, to, target)) return true;
  }
  return false;
}

std::size_t Pool::compact(std::size_t most_moves, int* more) {
  Step step(*this, most_moves);
  // relaxed: where to go on; two steps at once do each other's work
  std::uint32_t at = sweep_class.load(std::memory_order_relaxed);
  while (at < class_count && step.finish(class_at(at))) ++at;
  const bool done = at >= class_count;
  sweep_class.store(done ? 0 : at, std::memory_order_relaxed);                  // relaxed: as above
  if (done) sweep_number.store(step.next_number(), std::memory_order_relaxed);  // relaxed: as above
  moved.fetch_add(step.moves(), std::memory_order_relaxed);                     // relaxed: counters
  given_bytes.fetch_add(step.given_bytes(), std::memory_order_relaxed);         // relaxed: counters
  if (more != nullptr) *more = done ? 0 : 1;
  return step.given_bytes();
}

}  // namespace brimful::pools::handle

extern "C" size_t brimful_handle_compact(brimful_handle_pool* pool, size_t most_moves, int* more) {
  if (pool != nullptr) return pool->compact(most_moves, more);
  if (more != nullptr) *more = 0;
  return 0;
}
