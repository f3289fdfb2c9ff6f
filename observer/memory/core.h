// SPDX-License-Identifier: MIT
//
// A core file as a target.
#pragma once

#include <memory>
#include <string>

#include "memory/target.h"

namespace brimful::observer::memory {

// nullptr: *error says why in one line.
std::unique_ptr<Target> open_core(const std::string& path, std::string* error);

}  // namespace brimful::observer::memory
