// SPDX-License-Identifier: MIT
//
// Which pages of a process are resident: as the kernel counts them for RSS, page by page.
//
// The ioctl PAGEMAP_SCAN (Linux 6.7; Documentation/admin-guide/mm/pagemap.rst) answers in ranges and knows the page of
// zeros, which reading untouched memory maps and which RSS does not count. Before that kernel /proc/PID/pagemap is read; it
// takes the page of zeros for resident, so a sum may be too high by what was read and never written.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "memory/mapping.h"

namespace brimful::observer::memory {

// The resident pages of one range of addresses.
class Resident {
 public:
  Resident(std::uint64_t start, std::uint64_t end, bool all);

  [[nodiscard]] std::uint64_t start() const { return start_; }
  [[nodiscard]] std::uint64_t end() const { return end_; }
  // Resident bytes of [from, to), which lies in the range.
  [[nodiscard]] std::uint64_t bytes(std::uint64_t from, std::uint64_t to) const;
  [[nodiscard]] bool is_resident(std::uint64_t address) const {
    const std::uint64_t page = (address - start_) / kPageBytes;
    return (words_[page / 64] >> (page % 64) & 1) != 0;
  }
  void add(std::uint64_t from, std::uint64_t to);

 private:
  std::uint64_t start_;
  std::uint64_t end_;
  std::vector<std::uint64_t> words_;
};

// Asks the kernel about a process's pages.
class PageMap {
 public:
  explicit PageMap(pid_t pid);
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;
  ~PageMap();

  // false: the kernel does not tell this user.
  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  // The pages of [start, end); all of them where the kernel does not tell.
  [[nodiscard]] Resident look(std::uint64_t start, std::uint64_t end) const;

 private:
  bool scan(Resident& into) const;
  bool read(Resident& into) const;

  int file_;
};

}  // namespace brimful::observer::memory
