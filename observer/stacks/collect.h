// SPDX-License-Identifier: MIT
//
// Samples as they accumulate while a process is watched: each record unwound once, equal stacks kept once.
//
// Records are unwound at once, because what they are unwound against (the mappings, Python's code objects) is there now;
// names are looked up at the end, once for each place.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "meta/sample_record.h"
#include "stacks/modules.h"
#include "stacks/python.h"
#include "stacks/unwind.h"

namespace brimful::observer::stacks {

// An address in code, or a function of an interpreter.
struct Location {
  Place place{kNoFile, 0};
  int function = -1;  // index for Samples::functions(), else -1
  auto operator<=>(const Location& other) const {
    return std::tuple(place.module, place.address, function) <=>
           std::tuple(other.place.module, other.place.address, other.function);
  }
};

struct Stack {
  std::vector<int> locations;  // innermost first
  End end = End::kUnknown;
  auto operator<=>(const Stack&) const = default;
};

struct Sample {
  std::uint64_t number = 0;
  std::uint64_t address = 0;
  std::uint64_t requested = 0;
  std::uint64_t usable = 0;
  std::uint64_t interval = 0;
  std::uint64_t allocated_ns = 0;
  std::uint64_t freed_ns = 0;
  std::uint32_t flags = 0;
  std::uint32_t thread = 0;
  std::uint32_t freed_by = 0;
  int allocation = -1;  // stacks
  int release = -1;
};

class Samples {
 public:
  Samples(Modules& modules, memory::Read read) : unwinder_(modules), python_(modules, std::move(read)) {}

  // Whether add() would learn something from a record with this number and state.
  bool is_news(std::uint64_t number, meta::SampleState state) const;
  // A consistent copy of a slot, from the record on.
  void add(std::span<const unsigned char> slot);

  // A new look at the process begins.
  void begin_look() { python_.forget(); }

  const std::vector<Sample>& samples() const { return samples_; }
  const std::vector<Stack>& stacks() const { return stacks_; }
  const std::vector<Location>& locations() const { return locations_; }
  const std::vector<PythonFunction>& functions() const { return functions_; }

 private:
  int stack_of(const meta::SampleStack& stack, std::span<const unsigned char> slot, bool truncated);
  int location_of(const Location& location);
  int function_of(const PythonFunction& function);

  Unwinder unwinder_;
  Python python_;
  std::vector<Sample> samples_;
  std::unordered_map<std::uint64_t, std::size_t> by_number_;
  std::vector<Stack> stacks_;
  std::map<Stack, int> stack_numbers_;
  std::vector<Location> locations_;
  std::map<Location, int> location_numbers_;
  std::vector<PythonFunction> functions_;
  std::map<std::tuple<std::string, std::string, int>, int> function_numbers_;
};

}  // namespace brimful::observer::stacks
