// SPDX-License-Identifier: MIT
//
// Address space for the library's own tables and headers. With the option `guard` a page without access lies before and behind
// it, so that a run over the end of something else that was mapped beside it stops there.
#pragma once

#include <cstddef>

#include "config/options.h"
#include "os/calls.h"

namespace brimful::meta {

// Of `bytes`, a multiple of the page size, that can't be accessed yet: os::calls.commit() them. nullptr: there is none.
inline void* reserve_table(std::size_t bytes) {
  const std::size_t margin = config::options.guard != 0 ? os::page_bytes() : 0;
  void* memory = os::calls.map(0, bytes + 2 * margin, os::Access::kNone);
  return memory != nullptr ? static_cast<std::byte*>(memory) + margin : nullptr;
}

// What reserve_table(bytes) gave.
inline void release_table(void* table, std::size_t bytes) {
  const std::size_t margin = config::options.guard != 0 ? os::page_bytes() : 0;
  os::calls.unmap(reinterpret_cast<std::uintptr_t>(table) - margin, bytes + 2 * margin);
}

}  // namespace brimful::meta
