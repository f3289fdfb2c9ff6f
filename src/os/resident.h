// SPDX-License-Identifier: MIT
//
// Which pages the kernel holds memory for, asked by mincore(2): for statistics, on request.
//
// A page that was only ever read counts, though the kernel has one page of zeros for all of these and smaps leaves it out.
// Rejected: /proc/self/pagemap (eight bytes for each page in place of one, and the same answer without CAP_SYS_ADMIN),
// smaps (text, and nothing below a whole mapping).
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::os {

// A view of one mapped range. Questions in ascending order are cheap: the kernel is asked for 512 pages at a time, at
// about 10 ns a page. On the caller's stack; allocates nothing, leaves errno alone.
class ResidentPages {
 public:
  // [start, end) is mapped, with any protection; whole pages.
  ResidentPages(std::uint64_t start, std::uint64_t end);

  // Bytes of [from, to), a part of the range, that lie on pages with memory behind them.
  std::uint64_t bytes(std::uint64_t from, std::uint64_t to);

  // All of the range.
  std::uint64_t all_bytes() { return bytes(start_, end_); }

 private:
  static constexpr std::size_t kPages = 512;

  void look_at(std::uint64_t page);

  const std::uint64_t start_;
  const std::uint64_t end_;
  std::uint64_t seen_from_ = 0;  // pages_ describes [seen_from_, seen_to_)
  std::uint64_t seen_to_ = 0;
  unsigned char pages_[kPages];
};

}  // namespace brimful::os
