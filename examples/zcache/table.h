// SPDX-License-Identifier: MIT
//
// An array whose memory comes from mmap and never from malloc: what is measured is the memory of the values, so the index
// and the program's own lists must not be in the heap that holds them, and must all be resident before the first value.
#pragma once

#include <sys/mman.h>
#include <cstddef>
#include <new>
#include <type_traits>

namespace zcache {

enum class Backing { kNow, kWhenTouched };

template <typename T>
class Table {
  static_assert(std::is_trivially_copyable_v<T>, "a table begins as zero bytes");

 public:
  // `count` zeroed elements; throws std::bad_alloc.
  explicit Table(std::size_t count, Backing backing = Backing::kNow) : count_(count) {
    const int flags = MAP_PRIVATE | MAP_ANONYMOUS | (backing == Backing::kNow ? MAP_POPULATE : MAP_NORESERVE);
    void* start = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, flags, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    first_ = static_cast<T*>(start);
  }
  ~Table() { munmap(first_, bytes()); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  T& operator[](std::size_t i) { return first_[i]; }
  const T& operator[](std::size_t i) const { return first_[i]; }
  [[nodiscard]] T* data() { return first_; }
  [[nodiscard]] const T* data() const { return first_; }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(T) + 1; }  // mmap refuses 0

  std::size_t count_;
  T* first_;
};

}  // namespace zcache
