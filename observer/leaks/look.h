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

#include "leaks/image.h"
#include "leaks/objects.h"
#include "leaks/roots.h"
#include "leaks/seizure.h"

namespace brimful::observer::leaks {

// What a heap consists of, as the observer's model of it says.
struct HeapView {
  Objects objects;                // after finish(); memory is not filled in
  std::vector<Mapping> mappings;  // by address
  std::vector<Range> ours;        // the allocator's memory: windows, blocks with mappings of their own, its own tables
  std::string library;            // its version
};

class Anatomy;

// Where the heap and the memory around it are read from: a process, or a core.
class Target {
 public:
  virtual ~Target() = default;
  // false: error() says why in one line.
  virtual bool read_heap(HeapView& view) = 0;
  virtual bool read(std::uint64_t address, void* into, std::size_t bytes) = 0;
  // The library's table of itself, found when the target was opened.
  virtual Anatomy& anatomy() = 0;
  // What is mapped where, by address. false: error() says why.
  virtual bool mappings(std::vector<Mapping>& into) = 0;
  // Pointers that the kernel keeps for the program.
  virtual std::vector<std::uint64_t> kernel_words() = 0;
  // Of a core: what the threads' registers were.
  virtual std::vector<ThreadState> threads() = 0;
  // Address of the samples' control block; 0: not known, or nothing to read it from.
  virtual std::uint64_t sample_control() = 0;
  [[nodiscard]] virtual pid_t pid() const = 0;  // 0: a core
  [[nodiscard]] virtual std::string program() const = 0;
  [[nodiscard]] virtual std::string error() const = 0;
};

class Look {
 public:
  // false: error() says why in one line.
  bool take(Target& target);

  [[nodiscard]] const HeapView& view() const { return view_; }
  [[nodiscard]] const Objects& objects() const { return view_.objects; }
  // Objects that nothing leads to, and those that only inner pointers lead to.
  [[nodiscard]] Bits& lost() { return lost_; }
  [[nodiscard]] const Bits& possibly() const { return possibly_; }
  [[nodiscard]] std::size_t threads() const { return threads_; }
  [[nodiscard]] double held_seconds() const { return held_seconds_; }
  [[nodiscard]] std::uint64_t copied_bytes() const { return image_.copied_bytes(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  // The first bytes of an object, at most `bytes`.
  [[nodiscard]] std::string first_bytes(Object object, std::size_t bytes) const;

 private:
  bool prepare(Target& target);
  bool copy(Target& target, const std::vector<ThreadState>& threads);
  void mark(const std::vector<ThreadState>& threads);

  Seizure seizure_;
  HeapView view_;
  Image image_;
  Roots roots_;
  std::vector<std::uint64_t> kernel_words_;
  std::vector<std::size_t> root_pieces_;
  Bits lost_;
  Bits possibly_;
  std::size_t threads_ = 0;
  double held_seconds_ = 0;
  std::string error_;
};

}  // namespace brimful::observer::leaks
