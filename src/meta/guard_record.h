// SPDX-License-Identifier: MIT
//
// What is known of a guarded object (slots/guards.h), for whoever reports a fault: the library itself, or a program that
// reads a process or a core from outside. Plain types at fixed offsets, as in meta/sample_record.h.
//
//   GuardPool ── records ──▶ record 0 │ record 1 │ …          one for each slot; touched when the slot is first used
//             ── start ────▶ no access │ page of slot 0 │ no access │ page of slot 1 │ … │ no access
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "meta/sample_record.h"

namespace brimful::meta {

enum class GuardState : std::uint32_t {
  kUnused,  // or on its way to another object
  kLive,    // its page can be read and written
  kEnding,  // somebody frees it
  kFreed,   // its page has no access
};

// Of each stack's top, copied.
inline constexpr std::size_t kGuardStackBytes = 2 << 10;

struct GuardRecord {
  std::atomic<std::uint32_t> state;  // GuardState; the others are written before it says kLive, `release` before kFreed
  std::uint32_t next;                // the library's own: links of its lists, slot + 1
  std::uint64_t number;              // 1, 2, … in the order of allocation
  std::uint64_t address;
  std::uint64_t bytes;  // asked for, and usable
  SampleStack allocation;
  SampleStack release;
  char allocation_top[kGuardStackBytes];
  char release_top[kGuardStackBytes];
};

struct GuardPool {
  std::uint64_t records;                // address of record 0
  std::uint64_t start;                  // address of the first page, which has no access
  std::atomic<std::uint64_t> bytes;     // from there on; 0: there is no pool. Written last
  std::atomic<std::uint32_t> readable;  // records, from the first
  std::uint32_t slots;
  std::uint32_t page_bytes;
};

extern GuardPool guard_pool;

}  // namespace brimful::meta
