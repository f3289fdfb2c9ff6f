// SPDX-License-Identifier: MIT
//
// Everything the statistics know, as tables for people or as one line of JSON for programs. docs/guide/statistics.md
// explains what is printed.
//
// It is made of sections, the table kSections in print.cpp: a new kind of statistics is a field of Report, filled in
// take_report(), and a section that prints it.
#pragma once

#include <cstdint>

#include "pages/limit.h"
#include "stats/coverage.h"
#include "stats/fragmentation.h"
#include "stats/locks.h"
#include "stats/output.h"
#include "stats/snapshot.h"

namespace brimful::stats {

enum class Format { kText, kJson };

// What the sections print.
struct Report {
  Snapshot heap;
  Coverage coverage;
  MemoryReport memory;
  LockReport locks;
  pages::Limits limits;
  bool is_memory_short;          // pages/pressure.h
  std::uint64_t misuse_reports;  // meta/misuse.h
  std::uint64_t process;
  std::uint64_t run_ms;  // since the process was started, by clock ticks (10 ms)
  bool is_per_cpu;
};

// Writes the statistics, ended by a line feed, into `output`. Takes the heap lock. Returns 0, ENOMEM when `output` has
// no memory, or EDEADLK when the caller is a signal handler that interrupted the allocator in this thread, and would
// wait for it for ever.
int print(Output& output, Format format);

}  // namespace brimful::stats
