// SPDX-License-Identifier: MIT
//
// Mailboxes: bounded queues in which threads hand live objects to each other.
//
// Two kinds, because they order memory differently: a lock-free ring (Dmitry Vyukov's bounded MPMC queue,
// where the sequence number of each cell says whose turn it is) and a ring under a pthread mutex. Both never
// allocate and never wait: a full box refuses, an empty one returns nothing.
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "object.h"

namespace brimful::stress {

inline constexpr size_t kMailboxCapacity = 512;  // power of two

class LockFreeMailbox {
 public:
  void initialize() {
    // relaxed: called before any thread starts; pthread_create orders it.
    for (size_t i = 0; i < kMailboxCapacity; ++i) cells_[i].turn.store(i, std::memory_order_relaxed);
  }

  bool post(const Object& object) {
    // relaxed: only a guess, checked by the turn and by the exchange.
    size_t position = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position % kMailboxCapacity];
      // pairs with: the release store in take() (the cell has been emptied).
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position) {
        // relaxed: claims the cell only; its content is published by the turn below.
        if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          cell.object = object;
          // pairs with: the acquire load in take() (publishes the object and its content).
          cell.turn.store(position + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < position) {
        return false;
      } else {
        position = head_.load(std::memory_order_relaxed);  // relaxed: see above.
      }
    }
  }

  bool take(Object* object) {
    // relaxed: only a guess, checked by the turn and by the exchange.
    size_t position = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[position % kMailboxCapacity];
      // pairs with: the release store in post() (the object is in the cell).
      const size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == position + 1) {
        // relaxed: claims the cell only; its emptiness is published by the turn below.
        if (tail_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          *object = cell.object;
          // pairs with: the acquire load in post() (the cell may be written again).
          cell.turn.store(position + kMailboxCapacity, std::memory_order_release);
          return true;
        }
      } else if (turn < position + 1) {
        return false;
      } else {
        position = tail_.load(std::memory_order_relaxed);  // relaxed: see above.
      }
    }
  }

 private:
  struct Cell {
    std::atomic<size_t> turn;
    Object object;
  };
  alignas(64) std::atomic<size_t> head_;
  alignas(64) std::atomic<size_t> tail_;
  alignas(64) Cell cells_[kMailboxCapacity];
};

class LockedMailbox {
 public:
  void initialize() { pthread_mutex_init(&lock_, nullptr); }

  bool post(const Object& object) {
    pthread_mutex_lock(&lock_);
    const bool fits = head_ - tail_ < kMailboxCapacity;
    if (fits) ring_[head_++ % kMailboxCapacity] = object;
    pthread_mutex_unlock(&lock_);
    return fits;
  }

  bool take(Object* object) {
    pthread_mutex_lock(&lock_);
    const bool any = head_ != tail_;
    if (any) *object = ring_[tail_++ % kMailboxCapacity];
    pthread_mutex_unlock(&lock_);
    return any;
  }

 private:
  pthread_mutex_t lock_;
  size_t head_;
  size_t tail_;
  Object ring_[kMailboxCapacity];
};

}  // namespace brimful::stress
