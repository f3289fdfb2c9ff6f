// SPDX-License-Identifier: MIT
//
// Reading and applying the rules of suppressions.h.
#include "leaks/suppressions.h"

#include <errno.h>
#include <fnmatch.h>

#include <algorithm>
#include <cstring>
#include <fstream>

namespace brimful::observer::leaks {
namespace {

bool matches(const std::string& pattern, const std::string& text) {
  return !text.empty() && fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

// "function (module)" to "module".
std::string module_of(const std::string& line) {
  const std::size_t open = line.rfind('(');
  return open == std::string::npos || line.back() != ')' ? "" : line.substr(open + 1, line.size() - open - 2);
}

}  // namespace

bool Suppressions::read(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    error_ = "can't read " + path + ": " + std::strerror(errno);
    return false;
  }
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    Rule rule;
    std::size_t at = line.find_first_not_of(" \t\r");
    while (at != std::string::npos && line[at] != '#') {
      const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
      const std::string word = line.substr(at, end - at);
      const std::size_t colon = word.find(':');
      const std::string key = word.substr(0, colon);
      if (colon == std::string::npos || colon + 1 == word.size() ||
          (key != "type" && key != "size" && key != "stack" && key != "module")) {
        error_ = path + ", line " + std::to_string(number) + ": \"" + word +
                 "\" is none of type:PATTERN, size:PATTERN, stack:PATTERN, module:PATTERN";
        return false;
      }
      rule.push_back({key, word.substr(colon + 1)});
      at = line.find_first_not_of(" \t\r", end);
    }
    if (!rule.empty()) rules_.push_back(std::move(rule));
  }
  return true;
}

bool Suppressions::holds(const Group& group) const {
  const auto term_holds = [&group](const Term& term) {
    if (term.key == "size") return matches(term.pattern, std::to_string(group.size));
    if (term.key == "type") return matches(term.pattern, group.type.name);
    const bool is_module = term.key == "module";
    if (is_module && matches(term.pattern, group.type.module)) return true;
    return std::any_of(group.stack.begin(), group.stack.end(), [&](const std::string& line) {
      return matches(term.pattern, is_module ? module_of(line) : line);
    });
  };
  return std::any_of(rules_.begin(), rules_.end(),
                     [&](const Rule& rule) { return std::all_of(rule.begin(), rule.end(), term_holds); });
}

}  // namespace brimful::observer::leaks
