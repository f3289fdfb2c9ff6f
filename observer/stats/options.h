// SPDX-License-Identifier: MIT
//
// The options in force in a process, by the library's own table (src/config/options.h): names, words and initial values
// are read from it, so an option that is new needs nothing here.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stats/reader.h"

namespace brimful::observer::stats {

class Options {
 public:
  // Reads the table, once.
  void read_table(const Reader& reader);
  // Each option by name: a number, or the word that it was set by.
  [[nodiscard]] nlohmann::json values(const Reader& reader) const;
  // Names of those that are not what they are by themselves.
  [[nodiscard]] nlohmann::json changed(const Reader& reader) const;

 private:
  struct Option {
    std::string name;
    std::uint64_t offset;  // of its value
    std::vector<std::string> words;
    bool is_bytes;
    std::int64_t initial;
  };

  [[nodiscard]] Copy copy(const Reader& reader) const;

  std::vector<Option> options_;
};

}  // namespace brimful::observer::stats
