// SPDX-License-Identifier: MIT
//
// Slots with a record each whose block was freed, until they are taken again, the one that was freed first in front. Of
// sampled blocks (slots/samples.h) and of guarded objects (slots/guards.h).
//
//   push()      any moment, no lock: also in a handler that interrupted anything, and while another thread forks
//      │ last one first
//   collect()   under the owner's lock ──▶ queue, oldest first ──▶ take()
//
// A slot is named by its number + 1, so that 0 is none; Record::next is the link of both lists. `kRecordOf` gives the
// record of a name.
#pragma once

#include <atomic>
#include <cstdint>

namespace brimful::slots {

template <auto kRecordOf>
class FreedSlots {
 public:
  // The caller's alone: a block's life ends once. What was written into the record is seen by who collects it.
  void push(std::uint32_t slot) {
    std::uint32_t head = pushed_.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
    do {
      kRecordOf(slot)->next = head;
      // pairs with: collect() (the record)
    } while (!pushed_.compare_exchange_weak(head, slot, std::memory_order_release,
                                            std::memory_order_relaxed));  // relaxed: tried again
  }

  // The rest under the owner's lock.

  // Puts what was pushed behind the queue, each after `visit(slot)`.
  template <class Visit>
  void collect(Visit visit) {
    // relaxed: an empty list needs no order
    if (pushed_.load(std::memory_order_relaxed) == 0) return;
    std::uint32_t slot = pushed_.exchange(0, std::memory_order_acquire);  // pairs with: push() (the records)
    std::uint32_t oldest = 0;
    while (slot != 0) {
      const std::uint32_t next = kRecordOf(slot)->next;
      kRecordOf(slot)->next = oldest;
      oldest = slot;
      slot = next;
    }
    while (oldest != 0) {
      const std::uint32_t next = kRecordOf(oldest)->next;
      visit(oldest);
      put_behind(oldest);
      oldest = next;
    }
  }

  void put_behind(std::uint32_t slot) {
    kRecordOf(slot)->next = 0;
    (last_ != 0 ? kRecordOf(last_)->next : first_) = slot;
    last_ = slot;
    ++count_;
  }

  // The one in front; 0: there is none.
  std::uint32_t take() {
    const std::uint32_t slot = first_;
    if (slot == 0) return 0;
    first_ = kRecordOf(slot)->next;
    if (first_ == 0) last_ = 0;
    --count_;
    return slot;
  }

  // In the queue.
  [[nodiscard]] std::uint32_t count() const { return count_; }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t last_ = 0;
  std::uint32_t count_ = 0;
  std::atomic<std::uint32_t> pushed_{0};
};

}  // namespace brimful::slots
