// SPDX-License-Identifier: MIT
//
// The heap as a picture: what each 2 MiB hugepage holds, what each class wastes, what the biggest blocks are.
//
//   resident ─┬─ live            bytes of live objects and blocks, on resident pages
//             ├─ free in slabs   free objects, and what is left behind the last one
//             ├─ free runs       freed, not given back yet
//             └─ metadata
//
// The model says what memory is for, the kernel which pages are resident; each resident byte of the heap is counted once,
// so the four add up to RSS, and `check` compares them with what smaps says of the same mappings. Of a core nobody knows
// what was resident: what was handed out counts.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "heap/model.h"

namespace brimful::observer::inspect {

struct Totals {
  std::uint64_t live = 0;
  std::uint64_t free_in_slabs = 0;
  std::uint64_t free_runs = 0;
  std::uint64_t metadata = 0;
  [[nodiscard]] std::uint64_t resident() const { return live + free_in_slabs + free_runs + metadata; }
};

struct PictureOptions {
  std::size_t biggest = 10;
  bool with_hugepages = true;
  bool with_check = false;
};

// `pid` 0: a core.
nlohmann::json picture(const heap::Model& model, pid_t pid, const PictureOptions& options);

}  // namespace brimful::observer::inspect
