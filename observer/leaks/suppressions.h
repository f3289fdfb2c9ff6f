// SPDX-License-Identifier: MIT
//
// Leaks that somebody knows and does not want to hear of. A line of the file is one rule; all that it says must hold:
//
//   # the parser's tables live as long as the process
//   type:parser::Table*  size:4096
//   module:libold.so.*
//   stack:*register_plugin*
//
// Patterns are the shell's (fnmatch(3)). `stack` holds if it matches any line "function (module)" of the stack, `module` if it
// matches the file name of the module that has the type, or of any on the stack.
#pragma once

#include <string>
#include <vector>

#include "leaks/report.h"

namespace brimful::observer::leaks {

class Suppressions {
 public:
  // Adds the rules of a file. false: error() says what is wrong, and in which line.
  bool read(const std::string& path);
  [[nodiscard]] bool holds(const Group& group) const;
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  struct Term {
    std::string key;
    std::string pattern;
  };
  using Rule = std::vector<Term>;

  std::vector<Rule> rules_;
  std::string error_;
};

}  // namespace brimful::observer::leaks
