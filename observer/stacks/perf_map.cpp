// SPDX-License-Identifier: MIT
#include "stacks/perf_map.h"

#include <cstdio>
#include <sstream>

namespace brimful::observer::stacks {

PerfMap::PerfMap(const std::string& text) {
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    std::uint64_t start = 0;
    std::uint64_t size = 0;
    int name = 0;
    if (std::sscanf(line.c_str(), "%lx %lx %n", &start, &size, &name) < 2 || name == 0 || size == 0) continue;
    if (static_cast<std::size_t>(name) >= line.size()) continue;
    add(start, start + size, line.substr(static_cast<std::size_t>(name)));
  }
}

void PerfMap::add(std::uint64_t start, std::uint64_t end, std::string name) {
  auto at = functions_.lower_bound(start);
  if (at != functions_.begin()) {
    auto before = std::prev(at);
    if (before->second.end > start) before->second.end = start;
  }
  while (at != functions_.end() && at->first < end) at = functions_.erase(at);
  functions_[start] = {end, std::move(name)};
}

const std::string* PerfMap::name(std::uint64_t address) const {
  auto after = functions_.upper_bound(address);
  if (after == functions_.begin()) return nullptr;
  const auto& function = *std::prev(after);
  return address < function.second.end ? &function.second.name : nullptr;
}

}  // namespace brimful::observer::stacks
