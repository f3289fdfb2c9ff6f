// SPDX-License-Identifier: MIT
//
// Numbers and switches of the allocator by name, each with a type: one table (names.cpp), behind brimful_get() and
// brimful_set() and, for programs that know jemalloc's, mallctl().
//
//   "stats.arenas.0.bins.3.curregs" ──find()──▶ {entry "stats.arenas.#.bins.@.curregs", which 3} ──get()──▶ bytes
//                                    ◀─from_mib()─ [entry's number, 0, 0, 0, 3, 0], a number for each part of the name
//
// Names and types are jemalloc's where it has such a thing (jemalloc(3), "MALLCTL NAMESPACE"), so that what reads one reads
// the other; there is one arena, number 0. A name that has no true answer here is not in the table: ENOENT says so, and a
// number that is made up would not. Options of ours are "brimful.<option>".
//
// Nothing here allocates. Errors are those of mallctl(3): ENOENT, EINVAL, EPERM, EFAULT; and EDEADLK, from a signal
// handler that interrupted the allocator in this thread.
#pragma once

#include <cstddef>
#include <cstdint>

namespace brimful::control {

struct Entry;

// An entry of the table, and the size class or option that is meant where there are several.
struct Name {
  const Entry* entry;
  std::uint32_t which;
};

// false: there is no such name. O(entries): about 0.1 us.
bool find(const char* name, Name& found);

// The value, *size bytes of it, which has to be that of its type. With `value` nullptr, *size is set to that size; in
// EINVAL, too, after as much as fits was copied.
int get(const Name& name, void* value, std::size_t* size);

// A new value; nullptr and 0 for an action without one, such as "arena.0.purge".
int set(const Name& name, const void* value, std::size_t size);

// Writing takes effect before reading where both are asked for: "epoch".
bool is_written_first(const Name& name);
// Something is done, with or without a value: there is nothing to read.
bool is_action(const Name& name);

// One number for each part of the name. *length: how many there is room for, then how many there are; EINVAL: more.
int to_mib(const char* name, std::size_t* mib, std::size_t* length);
bool from_mib(const std::size_t* mib, std::size_t length, Name& found);

}  // namespace brimful::control
