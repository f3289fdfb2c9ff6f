// SPDX-License-Identifier: MIT
#include "stacks/names.h"

#include <cstdio>

namespace brimful::observer::stacks {

std::vector<Line> names_of(const Modules& modules, const PerfMap& jit, const Place& place) {
  if (place.module == kNoFile) {
    const std::string* name = jit.name(place.address);
    return {{name == nullptr ? "[code of a JIT]" : *name, "", 0}};
  }
  if (const Module* module = modules.module(place.module)) {
    std::vector<Line> lines = module->lines(place.address);
    if (!lines.empty()) return lines;
  }
  const std::string& path = modules.path(place.module);
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%llx", static_cast<unsigned long long>(place.address));
  return {{path.substr(path.rfind('/') + 1) + offset, "", 0}};
}

}  // namespace brimful::observer::stacks
