// SPDX-License-Identifier: MIT
//
// How much memory the heap will plausibly want again: what may wait for the curve (pages/decay.h). What is free beyond that
// goes back in the free that makes it so (pages/purger.cpp), because nobody else may ever come by: a program with one
// thread that frees a gigabyte and then sleeps.
//
//   used ┤    ╭╮        ╭╮       falls and rises again within a second or two: the rise is demand, and as
//        │ ╭──╯╰╮  ╭╮╭──╯╰       much may wait, free
//        │╭╯    ╰──╯╰╯
//        │╯ first rise           new memory, says nothing about what has been freed
//        ┼─────────────────▶ t
//
// So a program that works in rounds pays for the first of them, and for one after a longer pause, when the curve would have
// taken its memory anyway. As much as is in use may always wait, and 64 MiB, and all while a quarter of what was in use a moment ago
// still is: free memory of a heap in motion that finds no taker yet is no release. (Without that `malloc-large` took 1.6 times
// as many page faults; with 32 MiB, `large-fifo` 1.4 times as long.)
//
// Not synchronised: the heap lock.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::pages {

class ReuseDemand {
 public:
  static constexpr std::size_t kLeastBytes = std::size_t{64} << 20;
  static constexpr std::uint64_t kWindowMs = 1000;

  // `freed_bytes` were freed just now, and `used_bytes` are used since. The clock may go back a little.
  void note_freed(std::uint64_t now_ms, std::size_t used_bytes, std::size_t freed_bytes) {
    const std::size_t top = used_bytes + freed_bytes;
    if (now_ms >= began_ms_ + kWindowMs) {
      before_ = now_ms < began_ms_ + 2 * kWindowMs ? risen_ : 0;
      top_before_ = now_ms < began_ms_ + 2 * kWindowMs ? top_ : last_;
      risen_ = top_ = 0;
      began_ms_ = now_ms;
      low_ = last_;
    }
    const std::size_t known = top < peak_ ? top : peak_;
    if (known > low_ && known - low_ > risen_) risen_ = known - low_;
    if (top > peak_) {
      peak_ = top;
      low_ = used_bytes;
    }
    if (top > top_) top_ = top;
    if (used_bytes < low_) low_ = used_bytes;
    last_ = used_bytes;
  }

  // Bytes that may stay free and resident. SIZE_MAX: any.
  [[nodiscard]] std::size_t plausible_bytes() const {
    const std::size_t risen = risen_ > before_ ? risen_ : before_;
    const std::size_t top = top_ > top_before_ ? top_ : top_before_;
    if (last_ > top / 4) return SIZE_MAX;
    std::size_t bytes = last_;
    if (bytes < risen) bytes = risen;
    return bytes < kLeastBytes ? kLeastBytes : bytes;
  }

 private:
  std::uint64_t began_ms_ = 0;  // of the window
  std::size_t low_ = 0;         // least that was used in the window, and since the peak
  std::size_t risen_ = 0;       // from there to below the peak, in the window
  std::size_t before_ = 0;      // the same of the last window
  std::size_t top_ = 0;         // most that was used in the window
  std::size_t top_before_ = 0;  // the same of the last window
  std::size_t peak_ = 0;        // most that was ever used
  std::size_t last_ = 0;        // used after the last free
};

}  // namespace brimful::pages
