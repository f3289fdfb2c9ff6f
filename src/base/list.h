// SPDX-License-Identifier: MIT
//
// An intrusive doubly-linked list: T has `T* next` and `T* prev`. Nothing is allocated; an element is in one list at
// most, and its list's lock guards its links. No sentinel, because the head lives in zero-initialised memory.
#pragma once

namespace brimful {

template <class T>
class List {
 public:
  [[nodiscard]] bool empty() const { return head_ == nullptr; }
  [[nodiscard]] T* front() const { return head_; }

  void push_back(T* element) {
    element->next = nullptr;
    element->prev = tail_;
    (tail_ != nullptr ? tail_->next : head_) = element;
    tail_ = element;
  }

  void remove(T* element) {
    (element->prev != nullptr ? element->prev->next : head_) = element->next;
    (element->next != nullptr ? element->next->prev : tail_) = element->prev;
    element->next = element->prev = nullptr;
  }

  // Returns nullptr when the list is empty.
  T* pop_front() {
    T* element = head_;
    if (element != nullptr) remove(element);
    return element;
  }

 private:
  T* head_ = nullptr;
  T* tail_ = nullptr;
};

}  // namespace brimful
