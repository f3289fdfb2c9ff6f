// SPDX-License-Identifier: MIT
//
// The library's anatomy (src/debug/anatomy.h) as a tool sees it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "memory/mapping.h"

namespace brimful::observer::memory {

class Anatomy {
 public:
  // Looks for the table in the data of the mapped files. false: error() says why.
  bool find(const std::vector<Mapping>& mappings, const Read& read);

  // What a name stands for. An unknown name: 0, and missing() says which.
  std::uint64_t operator[](const char* name);
  [[nodiscard]] const std::string& missing() const { return missing_; }
  [[nodiscard]] const std::string& version() const { return version_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  bool read_at(std::uint64_t address, const Read& read);

  std::map<std::string, std::uint64_t> values_;
  std::string version_;
  std::string missing_;
  std::string error_;
};

}  // namespace brimful::observer::memory
