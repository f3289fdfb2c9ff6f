// SPDX-License-Identifier: MIT
//
// The type of an object whose first word leads to a virtual table.
//
//   object ──▶ virtual table    word −2: 0    word −1 ──▶ type_info    word 1 ──▶ "N3zoo5HorseE"    zoo::Horse
//
// By the run-time type information, which is in stripped programs as well (Itanium C++ ABI 2.5.3, 2.9.5); code compiled with
// -fno-rtti has none. Every step has to lead into memory of a file, and the name has to be one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "leaks/roots.h"

namespace brimful::observer::leaks {

struct Type {
  std::string name;    // empty: not known
  std::string module;  // file name of the program or library that has the virtual table
};

class Types {
 public:
  // `mappings` are those of the process, by address.
  Types(const std::vector<memory::Mapping>& mappings, memory::Read read)
      : mappings_(mappings), read_(std::move(read)) {}

  // `first_word`: of the object.
  const Type& of(std::uint64_t first_word);

 private:
  [[nodiscard]] const memory::Mapping* file_at(std::uint64_t address) const;
  bool word_at(std::uint64_t address, std::uint64_t& word) const;
  [[nodiscard]] std::string name_at(std::uint64_t address) const;

  const std::vector<memory::Mapping>& mappings_;
  memory::Read read_;
  std::map<std::uint64_t, Type> known_;
};

}  // namespace brimful::observer::leaks
