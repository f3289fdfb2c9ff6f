// SPDX-License-Identifier: MIT
//
// The section of the statistics that says where the resident memory is (stats/fragmentation.h).
#pragma once

#include "stats/fragmentation.h"
#include "stats/output.h"

namespace brimful::stats {

void memory_text(Output& out, const MemoryReport& report);
void memory_json(Json& json, const MemoryReport& report);

}  // namespace brimful::stats
