// SPDX-License-Identifier: MIT
//
// What a run found, as a table to read or as one line of JSON.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "census.h"
#include "slots/events.h"
#include "traffic.h"

namespace brimful::topology {

struct Result {
  const char* workload;
  std::uint64_t operations;  // allocations and frees
  slots::EventCounts events;
  traffic::Counts traffic;
  Census loaded;  // when the work was done, objects still live
  Census freed;   // when all was freed
  Census idle;    // when the CPUs had gone idle (per-CPU front end: all but one)
};

struct Setting {
  unsigned cpus;
  unsigned nodes;
  unsigned rounds;
  unsigned long seed;
  const char* front_end;
};

void print_table(std::FILE* to, const Setting& setting, const std::vector<Result>& results);
void print_json(std::FILE* to, const Setting& setting, const std::vector<Result>& results);

}  // namespace brimful::topology
