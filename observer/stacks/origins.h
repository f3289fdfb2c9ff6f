// SPDX-License-Identifier: MIT
//
// Where lost objects were allocated, as far as they were sampled: the stacks of the samples that still live, by address.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "memory/target.h"

namespace brimful::observer::stacks {

class Modules;
class PerfMap;
class Samples;

class Origins {
 public:
  Origins();
  ~Origins();
  Origins(const Origins&) = delete;
  Origins& operator=(const Origins&) = delete;

  // Reads the samples of a process or a core. Where there are none, nothing is known later. Of a core those functions have names
  // whose files are still there, with the build-id that the core says.
  void read(memory::Target& target);
  // "function (module)", the innermost first, without the library's own; empty: not known.
  [[nodiscard]] std::vector<std::string> of(std::uint64_t address) const;
  // The same of the sample of that number, live or freed: its allocation, or its free.
  [[nodiscard]] std::vector<std::string> allocation(std::uint64_t number) const;
  [[nodiscard]] std::vector<std::string> release(std::uint64_t number) const;

 private:
  [[nodiscard]] std::string name_of(int location) const;
  [[nodiscard]] std::vector<std::string> names_of(int stack) const;

  std::unique_ptr<Modules> modules_;
  std::unique_ptr<Samples> samples_;
  std::unique_ptr<PerfMap> jit_;
  std::unordered_map<std::uint64_t, int> stack_at_;
};

}  // namespace brimful::observer::stacks
