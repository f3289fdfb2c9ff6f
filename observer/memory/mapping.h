// SPDX-License-Identifier: MIT
//
// Stretches of a process's address space, and reading from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace brimful::observer::memory {

inline constexpr std::uint64_t kPageBytes = 4096;

struct Range {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  [[nodiscard]] bool holds(std::uint64_t address) const { return address >= start && address < end; }
};

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool is_readable = false;
  bool is_writable = false;
  bool is_executable = false;
  bool is_shared = false;
  std::string path;
};

// Reads an exact stretch of memory. false: not all of it is there.
using Read = std::function<bool(std::uint64_t address, void* into, std::size_t bytes)>;

}  // namespace brimful::observer::memory
