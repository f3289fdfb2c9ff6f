// SPDX-License-Identifier: MIT
//
// Following an object's first word to the name of its class.
#include "leaks/types.h"

#include <cxxabi.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace brimful::observer::leaks {

const memory::Mapping* Types::file_at(std::uint64_t address) const {
  const auto behind = std::upper_bound(mappings_.begin(), mappings_.end(), address,
                                       [](std::uint64_t a, const memory::Mapping& m) { return a < m.start; });
  if (behind == mappings_.begin()) return nullptr;
  const memory::Mapping& mapping = *(behind - 1);
  return address < mapping.end && !mapping.path.empty() && mapping.path[0] == '/' ? &mapping : nullptr;
}

bool Types::word_at(std::uint64_t address, std::uint64_t& word) const {
  return address % sizeof word == 0 && file_at(address) != nullptr && read_(address, &word, sizeof word);
}

std::string Types::name_at(std::uint64_t address) const {
  const memory::Mapping* const mapping = file_at(address);
  if (mapping == nullptr) return "";
  std::array<char, 1024> text = {};
  const std::size_t bytes = std::min<std::uint64_t>(text.size() - 1, mapping->end - address);
  if (!read_(address, text.data(), bytes)) return "";
  const char* name = text.data();
  if (*name == '*') ++name;  // a type that other modules don't know
  for (const char* c = name; *c != '\0'; ++c) {
    if (std::isalnum(static_cast<unsigned char>(*c)) == 0 && *c != '_' && *c != '.') return "";
  }
  int status = 0;
  char* const readable = abi::__cxa_demangle(name, nullptr, nullptr, &status);
  if (readable == nullptr) return "";
  std::string result = readable;
  std::free(readable);
  return result;
}

const Type& Types::of(std::uint64_t first_word) {
  const auto [place, is_new] = known_.try_emplace(first_word);
  if (!is_new) return place->second;
  const memory::Mapping* const mapping = file_at(first_word);
  std::uint64_t distance = 0;
  std::uint64_t information = 0;
  std::uint64_t kind = 0;
  std::uint64_t name = 0;
  if (mapping != nullptr && word_at(first_word - 16, distance) && distance == 0 &&
      word_at(first_word - 8, information) && word_at(information, kind) && file_at(kind) != nullptr &&
      word_at(information + 8, name)) {
    place->second = {name_at(name), mapping->path.substr(mapping->path.rfind('/') + 1)};
  }
  return place->second;
}

}  // namespace brimful::observer::leaks
