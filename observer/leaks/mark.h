// SPDX-License-Identifier: MIT
//
// Conservative marking: which live objects can a program still get at?
//
//   roots ──▶ start of an object ──▶ its words ──▶ …            first pass: reached
//        └──▶ inside of an object: waits for the second pass    second pass: reached by an inner pointer only ("possibly")
//                                                               neither: lost
//
// Every word at a multiple of 8 counts as a pointer if a live object lies there. So nothing that a program can reach
// through plain pointers is ever called lost; some of what is lost is not found, where a number looks like its address.
// The names are those of valgrind's leak check, and mean the same: "definitely", "possibly", "indirectly".
//
// Each object is scanned once. An explicit stack holds what is marked and not scanned; what comes off it goes through a
// short queue, and its first line is fetched meanwhile (Boehm 2000, "Reducing garbage collector cache misses").
// Rejected: marking while copying, which would make the program wait for the marking.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "leaks/objects.h"

namespace brimful::observer::leaks {

class Marker {
 public:
  explicit Marker(const Objects& objects);

  // [from, to) of memory outside the heap. `step`: 8, or 1 where code may hold addresses at any place.
  void add_root(const memory::Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step = 8);
  // Words from elsewhere: registers.
  void add_root_words(const std::vector<std::uint64_t>& words);
  // An address of which we know that it stands for the object it lies in, wherever it points.
  void add_owner(std::uint64_t address);

  // Marks all that can be reached from the roots.
  void run();

  // After run().
  [[nodiscard]] const memory::Bits& reached() const { return reached_; }    // by pointers to starts
  [[nodiscard]] const memory::Bits& possibly() const { return possibly_; }  // by others only

 private:
  void scan(const memory::Piece& memory, std::uint64_t from, std::uint64_t to, unsigned step);
  void visit(std::uint64_t word);
  void mark(Object object);
  void drain();

  const Objects& objects_;
  memory::Bits reached_;
  memory::Bits possibly_;
  std::vector<Object> stack_;
  std::vector<Object> inner_;  // reached by an inner pointer in the first pass
  memory::Bits is_inner_;
  bool second_pass_ = false;
};

}  // namespace brimful::observer::leaks
