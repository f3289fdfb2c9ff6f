// SPDX-License-Identifier: MIT
#include "memory/target.h"

#include <cstdlib>

#include "memory/core.h"
#include "memory/process.h"

namespace brimful::observer::memory {

std::unique_ptr<Target> open_target(const std::string& name, std::string* error) {
  if (!name.empty() && name.find_first_not_of("0123456789") == std::string::npos && name.size() < 10)
    return open_process(static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10)), error);
  return open_core(name, error);
}

}  // namespace brimful::observer::memory
