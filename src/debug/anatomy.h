// SPDX-License-Identifier: MIT
//
// The anatomy: a table in the library's data that says where everything lies, for tools that read a process or a core from
// outside. A tool asks for names and never knows a layout; what a name stands for is said by the compiler, so it can't be
// out of date. A tool that does not find a name, or does not know the schema, says that the library is of another version.
//
// It begins with 16 bytes that nothing else has, in data that is written by relocation only, so that it is found in
// programs without symbols, too.
#pragma once

#include <cstdint>

#include "base/compiler.h"

namespace brimful {

inline constexpr std::uint32_t kAnatomySchema = 1;

struct AnatomyEntry {
  char name[32];
  // A number, or the address of a variable: only as a pointer is it one that the linker fills in.
  union {
    std::uint64_t value;
    const volatile void* address;
  };
};

struct AnatomyHead {
  char magic[16];
  std::uint32_t schema;
  std::uint32_t entries;  // that follow
  char version[32];       // of the library
};

}  // namespace brimful
