// SPDX-License-Identifier: MIT
//
// Threads that only make objects and threads that only free them: batches of objects that travel through one bounded
// queue. What is on its way is bounded by the queue, so memory that grows beyond it is the allocator's.
//
// Who finds the queue full or empty sleeps on a condition variable, which allocates nothing: a thread that only frees
// really makes no other call of the allocator.
#pragma once

#include <condition_variable>
#include <mutex>

#include "many_threads.h"

namespace workload {

constexpr std::size_t kLeastInBatch = 8;  // bytes of an object
constexpr std::size_t kBatch = 1024;      // objects

struct Batch {
  std::size_t count;
  Object objects[kBatch];
};

// First in, first out, bounded; who finds it full or empty sleeps.
class Queue {
 public:
  static constexpr unsigned kMost = 1024;

  Queue(unsigned capacity, unsigned producers) : capacity_(capacity), producers_(producers) {}

  void put(Batch* batch) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return waiting_ < capacity_; });
    ring_[(first_ + waiting_++) % capacity_] = batch;
    lock.unlock();
    not_empty_.notify_one();
  }

  // NULL when every producer has left and nothing is waiting.
  Batch* take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return waiting_ > 0 || producers_ == 0; });
    if (waiting_ == 0) return nullptr;
    Batch* batch = ring_[first_];
    first_ = (first_ + 1) % capacity_;
    waiting_--;
    lock.unlock();
    not_full_.notify_one();
    return batch;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    if (--producers_ == 0) not_empty_.notify_all();
  }

 private:
  const unsigned capacity_;
  std::mutex mutex_;  // guards all that follows
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  unsigned producers_;
  unsigned first_ = 0;
  unsigned waiting_ = 0;
  Batch* ring_[kMost];
};

// The life of a thread that only makes `objects` objects.
inline void produce(Queue& queue, std::uint64_t objects, std::size_t largest, Random random, LiveCounter& counter) {
  while (objects > 0) {
    auto* batch = make_table<Batch>(1, counter);
    batch->count = std::min<std::uint64_t>(objects, kBatch);
    for (std::size_t i = 0; i < batch->count; i++) {
      batch->objects[i] = make_object(random.between(kLeastInBatch, largest), counter);
    }
    objects -= batch->count;
    queue.put(batch);
  }
  queue.leave();
}

// Frees a batch and all that is in it; returns how many objects that were.
inline std::uint64_t consume(Batch* batch, LiveCounter& counter) {
  const std::uint64_t count = batch->count;
  for (std::size_t i = 0; i < count; i++) drop_object(batch->objects[i], counter);
  drop_table(batch, 1, counter);
  return count;
}

}  // namespace workload
