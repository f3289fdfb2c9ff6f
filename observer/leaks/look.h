// SPDX-License-Identifier: MIT
//
// One look at a heap: held still, copied, let go, and then thought about.
//
//   read the heap once to know its size ─▶ seize ─▶ read the heap ─▶ roots ─▶ copy ─▶ release ─▶ mark
//                                          └────────── the process is held ─────────────┘
//
// A look at a core is the same without the holding.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "leaks/objects.h"
#include "leaks/roots.h"
#include "leaks/seizure.h"
#include "memory/image.h"
#include "memory/target.h"

namespace brimful::observer::leaks {

// What a heap consists of, as the observer's model of it says.
struct HeapView {
  Objects objects;                        // after finish(); memory is not filled in
  std::vector<memory::Mapping> mappings;  // by address
  std::vector<memory::Range>
      ours;             // the allocator's memory: windows, blocks with mappings of their own, its own tables
  std::string library;  // its version
};

// Reads slabs and blocks, and what is live of them. false: *error says why in one line.
bool read_heap(memory::Target& target, HeapView& view, std::string* error);

class Look {
 public:
  // false: error() says why in one line.
  bool take(memory::Target& target);

  [[nodiscard]] const HeapView& view() const { return view_; }
  [[nodiscard]] const Objects& objects() const { return view_.objects; }
  // Objects that nothing leads to, and those that only inner pointers lead to.
  [[nodiscard]] memory::Bits& lost() { return lost_; }
  [[nodiscard]] const memory::Bits& possibly() const { return possibly_; }
  [[nodiscard]] std::size_t threads() const { return threads_; }
  [[nodiscard]] double held_seconds() const { return held_seconds_; }
  [[nodiscard]] std::uint64_t copied_bytes() const { return image_.copied_bytes(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  // The first bytes of an object, at most `bytes`.
  [[nodiscard]] std::string first_bytes(Object object, std::size_t bytes) const;

 private:
  bool prepare(memory::Target& target);
  bool copy(memory::Target& target, const std::vector<memory::ThreadState>& threads);
  void mark(const std::vector<memory::ThreadState>& threads);

  Seizure seizure_;
  HeapView view_;
  memory::Image image_;
  Roots roots_;
  std::vector<std::uint64_t> kernel_words_;
  std::vector<std::size_t> root_pieces_;
  memory::Bits lost_;
  memory::Bits possibly_;
  std::size_t threads_ = 0;
  double held_seconds_ = 0;
  std::string error_;
};

}  // namespace brimful::observer::leaks
