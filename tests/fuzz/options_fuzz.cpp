// SPDX-License-Identifier: MIT
//
// The option parser, by the environment as the library reads it: each line of the input is a variable, "CONF=tier:hardened" stands for
// BRIMFUL_CONF. Whatever they say, each option keeps to its range, and each message is one line.
#include <cstring>
#include <string>
#include <vector>

#include "config/options.h"
#include "oracle.h"
#include "system_calls.h"

extern char** environ;

namespace brimful::fuzz {
namespace {

// Options above `words`' last are those that their table allows as numbers, too.
std::int64_t count_words(const char* words) {
  std::int64_t count = 1;
  for (; *words != '\0'; ++words) count += *words == '|' ? 1 : 0;
  return count;
}

void expect_in_range(const config::Options& options) {
  for (const config::OptionInfo& option : config::kOptions) {
    const std::int64_t value = options.*option.field;
    if (option.words != nullptr && !option.is_bytes) {
      expect(value >= 0 && value < count_words(option.words), "a choice is one of its words", option.name);
    } else {
      expect(value >= option.least && value <= option.most, "a number is in its range", option.name);
    }
  }
  expect(std::memchr(config::prof_file, '\0', config::kPathBytes) != nullptr, "a path ends");
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using brimful::fuzz::Input;
  Input input(data, size);
  std::vector<std::string> variables;
  while (!input.is_empty()) variables.push_back("BRIMFUL_" + input.text_until('\n'));
  std::vector<char*> entries;
  for (std::string& variable : variables) entries.push_back(variable.data());
  entries.push_back(nullptr);
  char** const before = environ;
  brimful::fuzz::Script script;
  environ = entries.data();
  brimful::config::load();
  environ = before;
  brimful::fuzz::expect_lines(script.written());
  brimful::fuzz::expect_in_range(brimful::config::options);
  brimful::config::options = brimful::config::initial_options();
  brimful::config::prof_file[0] = '\0';
  return 0;
}
