// SPDX-License-Identifier: MIT
//
// What was found, in groups: same kind, size, type and stack. As text for people, as JSON for programs (docs/guide/leaks.md).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "leaks/lost.h"
#include "leaks/types.h"

namespace brimful::observer::leaks {

struct Sum {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  void add(std::uint64_t objects, std::uint64_t of_bytes) {
    count += objects;
    bytes += of_bytes;
  }
};

struct Group {
  bool is_possible = false;  // only pointers to the inside of these are left
  std::uint64_t size = 0;    // usable bytes of each
  Type type;
  std::vector<std::string> stack;  // "function (module)", the innermost first; empty: not sampled
  Sum direct;
  Sum indirect;                          // behind these
  std::vector<std::uint64_t> addresses;  // of the first few
  std::string first_bytes;               // of the first one
};

struct Report {
  pid_t pid = 0;  // 0: of a core
  std::string program;
  std::string library;  // its version
  Sum live;
  Sum possible;
  Sum suppressed;
  std::vector<Group> groups;  // the most bytes first, with those behind
  std::vector<double> held_seconds;
  std::uint64_t copied_bytes = 0;
  std::uint64_t without_second_look = 0;  // objects that the second look did not confirm

  [[nodiscard]] Sum direct() const;
  [[nodiscard]] Sum indirect() const;
};

struct TextOptions {
  bool with_possible = false;
  bool with_contents = false;
  std::size_t most_groups = 20;
  std::size_t width = 100;
};

std::string text_of(const Report& report, const TextOptions& options);
nlohmann::json json_of(const Report& report);

}  // namespace brimful::observer::leaks
