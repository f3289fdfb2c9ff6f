// SPDX-License-Identifier: MIT
//
// What the kernel says of the heap's mappings (/proc/PID/smaps), to compare the picture's sum with.
//
// A mapping that holds nothing but heap counts with its Rss. One that the heap shares with others (the library's own data,
// where the first metadata lies; or anonymous memory that the kernel has merged with the heap's) counts page by page.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>

#include "heap/model.h"

namespace brimful::observer::inspect {

nlohmann::json compare_with_kernel(const heap::Model& model, pid_t pid, std::uint64_t resident);

}  // namespace brimful::observer::inspect
