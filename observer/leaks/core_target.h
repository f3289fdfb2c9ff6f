// SPDX-License-Identifier: MIT
//
// A core file as a target.
#pragma once

#include <memory>
#include <string>

#include "leaks/look.h"

namespace brimful::observer::leaks {

// nullptr: *error says why in one line.
std::unique_ptr<Target> open_core(const std::string& path, std::string* error);

}  // namespace brimful::observer::leaks
