// SPDX-License-Identifier: MIT
//
// What the simulated CPUs do. Every workload is a number of rounds; in a round each CPU has one turn of some operations,
// in an order that is shuffled anew. Objects carry a stamp at both ends, which free() checks.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "machine.h"

namespace brimful::topology {

struct Object {
  std::uint64_t* memory;
  std::uint32_t bytes;
  std::uint32_t stamp;
};

using Objects = std::vector<Object>;

// The program that runs on the machine: what its CPUs hold, and the operations so far.
class Program {
 public:
  Program(Machine& machine, std::uint64_t seed);

  // Both on the CPU that the machine runs on.
  Object allocate();
  Object allocate(std::size_t bytes);
  void free(const Object& object);

  // One turn for each CPU, in a new order.
  template <class Turn>
  void round(Turn turn) {
    std::shuffle(order_.begin(), order_.end(), random);
    for (const unsigned cpu : order_) {
      machine.run_on(cpu);
      turn(cpu);
    }
    pass_time();
  }

  // Frees all that is held anywhere, each CPU what it holds.
  void free_all();

  [[nodiscard]] std::uint64_t operations() const { return operations_; }
  [[nodiscard]] std::uint64_t live_objects() const { return live_; }
  // false: some object had lost its stamp.
  [[nodiscard]] bool is_sound() const { return sound_; }

  Machine& machine;
  std::mt19937_64 random;
  std::vector<Objects> held;              // by CPU
  std::vector<std::deque<Object>> inbox;  // by CPU

 private:
  void pass_time();

  std::vector<unsigned> order_;
  std::uint64_t operations_ = 0;
  std::uint64_t live_ = 0;
  std::uint32_t next_stamp_ = 1;
  bool sound_ = true;
  double time_ms_ = 0;
};

struct Workload {
  const char* name;
  const char* what;
  void (*run)(Program& program, unsigned rounds);
};

extern const std::array<Workload, 7> kWorkloads;

}  // namespace brimful::topology
