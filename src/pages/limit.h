// SPDX-License-Identifier: MIT
//
// Limits of the heap (options limit and soft_limit): memory ends with NULL, which a program can handle, before it
// ends with the kernel's SIGKILL, which it can't.
//
//   0 ├── in use ──┤ soft: free memory goes back at once, the program goes on ├── hard: NULL and ENOMEM
//
// What counts is what the heap may make resident: runs handed out, touched or not, free memory that was not given
// back, blocks with a mapping of their own, and metadata. Untouched memory counts because the program may touch it
// later, when nobody can refuse any more. Pages that were given back inside slabs still count, for the same reason.
//
// `auto` takes the limit of the process's control group less a headroom for what is not the heap: stacks, code, the page
// cache, other processes. Rejected: asking the group for its use at each step (three system calls, and it counts page
// cache that the kernel would drop).
//
// Without limits the cost is one test per run of granules.
#pragma once

#include <cstddef>

#include "base/compiler.h"
#include "os/cgroup.h"

namespace brimful::pages {

// Bytes; 0: none. Guarded by the heap lock.
struct Limits {
  std::size_t soft;
  std::size_t hard;
  std::size_t refusals;  // how often a request was refused
};
extern Limits limits;

// What is left for the heap in a control group of `bytes`: a sixteenth stays free, at least 16 MiB, at most a quarter.
std::size_t without_headroom(std::size_t bytes);

// The limits that the options ask for; `auto` is looked up in `group`. soft_limit:auto is the group's memory.high, or 7/8
// of the hard limit where there is none.
Limits wanted_limits(const os::GroupLimits& group);

// Sets `limits` from the options, and reads the control group if one is `auto`. Caller holds the heap lock.
void choose_limits();

// As choose_limits(), after an option has changed: what was refused goes on being counted. Takes the heap lock.
void change_limits();

// Bytes that count. Caller holds the heap lock.
std::size_t counted_bytes();

// The case that there is a limit.
bool may_grow_within_limits(std::size_t bytes);

// Whether the heap may hand out `bytes` more. Where that would pass a limit, free memory goes back first; false: the hard
// limit stands against it. Caller holds the heap lock.
inline bool may_grow(std::size_t bytes) {
  return BRIMFUL_LIKELY((limits.soft | limits.hard) == 0) || may_grow_within_limits(bytes);
}

// true once after the soft limit was passed although nothing dirty was left, at most once a second: the caller shall
// reclaim what the front end holds, and trim. Takes no lock.
bool takes_reclaim_order(std::uint64_t now_ms);

}  // namespace brimful::pages
