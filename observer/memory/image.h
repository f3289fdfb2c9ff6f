// SPDX-License-Identifier: MIT
//
// A copy of parts of a process's memory, taken while it is held: so that it is held for as long as copying takes, and not
// for as long as thinking.
//
//   areas    │ slab │ slab │ .data │ stack │ a large block, mostly unused      │
//   copy     │ slab │ slab │ .data │ stack │ …         address space of the same shape; only pages that exist are touched
//
// Which pages exist is read from /proc/PID/pagemap: pages that nobody wrote to hold no pointer, and reading them from
// outside would make the kernel map zeros. The copy's own pages are brought in beforehand, as far as one can know how many
// it will be; several threads copy.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <vector>

#include "memory/piece.h"

namespace brimful::observer::memory {

// Which of an area's pages can hold pointers.
enum class Pages : std::uint8_t {
  kTouched,  // that exist at all
  kPrivate,  // that are the process's own: of a private mapping of a file, those that were written to
};

class Image {
 public:
  Image() = default;
  Image(const Image&) = delete;
  Image& operator=(const Image&) = delete;
  ~Image();

  // Brings in pages for a copy of about that many bytes, and address space for `most_bytes` in all. false: no memory.
  bool prepare(std::uint64_t bytes, std::uint64_t most_bytes);
  // Enters an area, whole pages; it goes behind the others. Returns its number.
  std::size_t add(std::uint64_t start, std::uint64_t bytes, Pages pages);
  // Copies all areas that were added. false: the process is gone, or may not be read; errno says why.
  bool copy(pid_t pid);
  // The same from elsewhere, a page at a time; what `read` refuses counts as never written to. false: no memory.
  bool copy_by(const std::function<bool(std::uint64_t from, void* to, std::size_t bytes)>& read);

  [[nodiscard]] const Piece& piece(std::size_t number) const { return pieces_[number]; }
  [[nodiscard]] std::uint64_t copied_bytes() const { return copied_bytes_; }
  // Forgets all areas; the memory stays for the next copy.
  void clear();

 private:
  struct Part {
    std::uint64_t from;
    std::byte* to;
    std::uint64_t bytes;
  };

  bool make_room();
  void find_pages(int pagemap, std::size_t number, std::vector<Part>& parts);

  std::vector<Piece> pieces_;
  std::vector<Pages> which_;
  std::deque<Bits> present_;  // where it is, it stays: pieces lead here
  std::byte* room_ = nullptr;
  std::uint64_t room_bytes_ = 0;
  std::uint64_t used_bytes_ = 0;
  std::uint64_t copied_bytes_ = 0;
};

}  // namespace brimful::observer::memory
