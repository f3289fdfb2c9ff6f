// SPDX-License-Identifier: MIT
//
// The worker threads' phases; see workload.h.
#include "workload.h"

#include <algorithm>

#include "clock.h"

namespace brimful::stress {
namespace {

// How long a producer waits for room, and a consumer for work. They sleep: on two cores a yielding thread
// would take the time that the others need.
constexpr long kIdleMicroseconds = 100;

}  // namespace

void PostOffice::initialize() {
  for (LockFreeMailbox& box : lock_free_) box.initialize();
  for (LockedMailbox& box : locked_) box.initialize();
}

bool PostOffice::post(size_t box, const Object& object) {
  return box % 2 == 0 ? lock_free_[box / 2].post(object) : locked_[box / 2].post(object);
}

bool PostOffice::take(size_t box, Object* object) {
  return box % 2 == 0 ? lock_free_[box / 2].take(object) : locked_[box / 2].take(object);
}

void Worker::initialize(unsigned index, uint64_t stream, uint64_t seed, Role role, PostOffice* office) {
  oracle_.initialize(index, stream, seed);
  role_ = role;
  office_ = office;
  held_count_ = 0;
}

void Worker::hold(const Object& object) { held_[held_count_++] = object; }

Object Worker::let_go(size_t position) {
  const Object object = held_[position];
  held_[position] = held_[--held_count_];
  return object;
}

void Worker::hand_over(const Object& object) {
  if (office_ == nullptr) return oracle_.release(object);
  oracle_.history().note(Operation::kPosted, object.address, object.usable, object.id);
  if (!office_->post(oracle_.random().below(kMailboxes), object)) oracle_.release(object);
}

size_t Worker::receive(size_t limit) {
  if (office_ == nullptr) return 0;
  const size_t first = oracle_.random().below(kMailboxes);
  size_t received = 0;
  for (size_t i = 0; i < kMailboxes; ++i) {
    Object object;
    while (received < limit && office_->take((first + i) % kMailboxes, &object)) {
      oracle_.history().note(Operation::kTaken, object.address, object.usable, object.id);
      oracle_.release(object);
      ++received;
    }
  }
  return received;
}

void Worker::mixed(size_t steps) {
  Random& random = oracle_.random();
  // How full the table may get in this phase: from a handful of objects (cache-hot) to thousands.
  const size_t capacity = std::min<size_t>(kHeld, size_t{8} << random.below(9));
  while (held_count_ > capacity) oracle_.release(let_go(random.below(held_count_)));
  for (size_t step = 0; step < steps; ++step) {
    const uint64_t die = random.below(100);
    if (held_count_ == 0 || (die < 48 && held_count_ < capacity)) {
      hold(oracle_.allocate(oracle_.draw_size()));
    } else if (die < 84) {
      oracle_.release(let_go(random.below(held_count_)));
    } else if (die < 90) {
      Object& object = held_[random.below(held_count_)];
      // Half of the time a neighbouring size, which may stay in place; else any size.
      const size_t size = random.one_in(2) ? object.size + random.below(object.size / 4 + 32) : oracle_.draw_size();
      object = oracle_.resize(object, std::min(size, kMaxSize));
    } else if (die < 97) {
      hand_over(let_go(random.below(held_count_)));
    } else if (die < 99) {
      oracle_.check(held_[random.below(held_count_)], "while live");
    } else {
      receive(16);
    }
  }
}

void Worker::burst() {
  Random& random = oracle_.random();
  const size_t room = kHeld - held_count_;
  const size_t size = std::min<size_t>(oracle_.draw_size(), size_t{48} << 10);
  const size_t start = held_count_;
  for (size_t count = random.below(room + 1); count > 0; --count) hold(oracle_.allocate(size));
  switch (random.below(5)) {
    case 0:  // last in, first out
      while (held_count_ > start) oracle_.release(held_[--held_count_]);
      break;
    case 1:  // first in, first out
      for (size_t i = start; i < held_count_; ++i) oracle_.release(held_[i]);
      held_count_ = start;
      break;
    case 2:  // random
      while (held_count_ > start) oracle_.release(let_go(start + random.below(held_count_ - start)));
      break;
    case 3:  // to whoever wants them
      while (held_count_ > start) hand_over(held_[--held_count_]);
      break;
    default:  // kept for the phases that follow
      break;
  }
}

void Worker::produce(size_t steps) {
  const size_t size = oracle_.draw_size();
  const bool one_size = oracle_.random().one_in(2);
  for (size_t step = 0; step < steps; ++step) {
    const Object object = oracle_.allocate(one_size ? size : oracle_.draw_size());
    if (office_ == nullptr) {
      oracle_.release(object);
      continue;
    }
    oracle_.history().note(Operation::kPosted, object.address, object.usable, object.id);
    // A producer waits for its consumers instead of freeing; at the end of the run what is left is freed
    // here.
    while (!office_->post(oracle_.random().below(kMailboxes), object)) {
      if (totals.stop.load(std::memory_order_relaxed)) {  // relaxed: only says when to end.
        oracle_.release(object);
        return;
      }
      sleep_microseconds(kIdleMicroseconds);
    }
  }
}

void Worker::drain() {
  while (held_count_ > 0) oracle_.release(let_go(oracle_.random().below(held_count_)));
}

void Worker::hand_over_all(size_t kept) {
  while (held_count_ > kept) hand_over(held_[--held_count_]);
}

bool Worker::is_done(uint64_t operations) const {
  // relaxed: only says when to end; the join orders the rest.
  return oracle_.operations() >= operations || totals.stop.load(std::memory_order_relaxed);
}

void Worker::run(uint64_t operations) {
  set_current_oracle(&oracle_);
  operations += oracle_.operations();
  while (!is_done(operations)) {
    const uint64_t die = oracle_.random().below(16);
    switch (role_) {
      case Role::kProducer:
        produce(256);
        break;
      case Role::kConsumer:
        if (receive(256) == 0) sleep_microseconds(kIdleMicroseconds);
        break;
      case Role::kMixer:
      case Role::kGuest:
        if (die < 9) {
          mixed(2048);
        } else if (die < 13) {
          burst();
        } else if (die < 15) {
          receive(512);
        } else {
          drain();
        }
        break;
    }
  }
}

}  // namespace brimful::stress
