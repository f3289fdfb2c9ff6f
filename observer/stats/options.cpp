// SPDX-License-Identifier: MIT
//
// stats/options.h.
#include "stats/options.h"

#include <algorithm>

namespace brimful::observer::stats {
namespace {

using nlohmann::json;

constexpr std::uint64_t kMostOptions = 1024;

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t bar = std::min(text.find('|', from), text.size());
    words.push_back(text.substr(from, bar - from));
    from = bar + 1;
  }
  return words;
}

}  // namespace

void Options::read_table(const Reader& reader) {
  const std::uint64_t size = reader["option.size"];
  const std::uint64_t count = std::min(reader["options.count"], kMostOptions);
  const Copy table = reader.copy(reader["options.table"], count * size);
  options_.clear();
  for (std::uint64_t n = 0; n < count && !reader.has_failed(); ++n) {
    const std::uint64_t at = n * size;
    const std::uint64_t words = table.at(at + reader["option.words"]);
    // A pointer to a member is its offset (Itanium C++ ABI, 2.3).
    options_.push_back({reader.text(table.at(at + reader["option.name"])), table.at(at + reader["option.field"]),
                        words == 0 ? std::vector<std::string>() : words_of(reader.text(words)),
                        table.at<std::uint8_t>(at + reader["option.is_bytes"]) != 0,
                        table.at<std::int64_t>(at + reader["option.initial"])});
  }
}

Copy Options::copy(const Reader& reader) const {
  std::uint64_t end = 0;
  for (const Option& option : options_) end = std::max(end, option.offset + sizeof option.initial);
  return reader.copy(reader["options"], end);
}

json Options::values(const Reader& reader) const {
  const Copy values = copy(reader);
  json all = json::object();
  for (const Option& option : options_) {
    const auto value = values.at<std::int64_t>(option.offset);
    const bool has_word = value >= 0 && static_cast<std::uint64_t>(value) < option.words.size();
    if (has_word && (!option.is_bytes || value == 0)) {
      all[option.name] = option.words[static_cast<std::size_t>(value)];
    } else if (option.is_bytes && value == -1) {
      all[option.name] = "auto";
    } else {
      all[option.name] = value;
    }
  }
  return all;
}

json Options::changed(const Reader& reader) const {
  const Copy values = copy(reader);
  json names = json::array();
  for (const Option& option : options_) {
    if (values.at<std::int64_t>(option.offset) != option.initial) names.push_back(option.name);
  }
  return names;
}

}  // namespace brimful::observer::stats
