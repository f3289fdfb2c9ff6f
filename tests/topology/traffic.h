// SPDX-License-Identifier: MIT
//
// What the memory system of a large machine would have to do: a model of private caches, fed with every access of the
// allocator to memory that CPUs share.
//
// Each cache line has one last writer and a set of CPUs that hold a copy. Caches are as large as they need to be: what is
// counted is sharing, not capacity.
//
//   read   without a copy, of a line that another CPU wrote last              a transfer; one more copy
//   write  of a line that another CPU wrote last, or holds a copy of          a transfer; the only copy
//
// A transfer crosses nodes if the CPU it comes from, or one whose copy it takes away, is in another node. Lines that
// nobody wrote before (new memory) are not counted.
//
// The accesses come from the compiler: the sources of the library are compiled as for the thread sanitizer, and hooks.cpp
// has the functions that its instrumentation calls. So every line of C++ is seen, in the portable form of the sequences
// (the assembly touches the same words in the same order). A program without those hooks counts no traffic.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace brimful::topology {
class Machine;
}

namespace brimful::topology::traffic {

// What a line holds.
enum class Kind : std::uint8_t {
  kContext,   // a context: slots, pending entries, queues, its lock, events
  kOwner,     // first line of a slab's header: owner, class, list links
  kWords,     // words and offered words of a slab's groups
  kRemote,    // remote masks and their count
  kCentral,   // the central indices with their locks
  kHeap,      // the heap: its lock, the page heap, the arena's lists
  kTable,     // granule table: entries
  kPageData,  // headers of free runs, flags of granules
  kGlobals,   // the other variables of the library
};
inline constexpr std::size_t kKinds = 9;
inline constexpr std::array<const char*, kKinds> kKindNames = {"context", "owner", "words",     "remote", "central",
                                                               "heap",    "table", "page_data", "globals"};

enum class Rank : std::uint8_t { kContext, kCentral, kHeap };
inline constexpr std::size_t kRanks = 3;
inline constexpr std::array<const char*, kRanks> kRankNames = {"context", "central", "heap"};

struct Counts {
  std::array<std::uint64_t, kKinds> transfers;
  std::array<std::uint64_t, kKinds> crossings;  // those of the transfers that cross nodes
  std::array<std::uint64_t, kRanks> locks;      // acquisitions
  // Transfers while the heap lock was held: what its holder waits for.
  std::uint64_t transfers_in_heap_lock;
};

// true: this program was linked with the hooks.
bool is_counted();

// From here on accesses are seen; no line has a writer yet.
void begin(const Machine& machine);
void end();
// The lines stay where they are.
void forget_counts();
Counts counts();

// Accesses from now on are this CPU's; or nobody's.
void watch(unsigned cpu);
void stop_watching();

// --- for the hooks ----------------------------------------------------------------------------------------------

void enable();
void access(std::uintptr_t address, std::size_t bytes, bool writes);
void acquired(std::uintptr_t lock);
void released(std::uintptr_t lock);
void remember_slab(std::uintptr_t header, unsigned groups);

}  // namespace brimful::topology::traffic
