// SPDX-License-Identifier: MIT
//
// Names for places in code: by a file's symbols and debug information, by a JIT's perf map, else "file+0x1234" for code
// whose file has no names (it can be named later: the address is the file's own), and "[unknown]".
#pragma once

#include <string>
#include <vector>

#include "stacks/modules.h"
#include "stacks/perf_map.h"

namespace brimful::observer::stacks {

std::vector<Line> names_of(const Modules& modules, const PerfMap& jit, const Place& place);

}  // namespace brimful::observer::stacks
