// SPDX-License-Identifier: MIT
//
// traffic.h.
#include "traffic.h"

#include <bitset>
#include <iterator>
#include <map>
#include <unordered_map>
#include <vector>

#include "arch/sequences.h"
#include "machine.h"
#include "meta/granule_table.h"
#include "pages/heap.h"
#include "slots/central.h"
#include "slots/thread.h"

// From the linker: where this program's variables lie.
extern "C" char __data_start;
extern "C" char _end;

namespace brimful::topology::traffic {
namespace {

constexpr std::uintptr_t kLineBytes = 64;
constexpr int kNobody = -1;
// The words of a thread lie around its thread pointer: they move with the thread and are nobody else's.
constexpr std::uintptr_t kThreadBytes = 1024;
constexpr std::uintptr_t kStackBytes = std::uintptr_t{8} << 20;

struct LineState {
  int writer = kNobody;
  bool exclusive = false;  // the writer's is the only copy
  std::bitset<Machine::kMostCpus> copies;
};

struct SlabLines {
  std::uintptr_t words;
  std::uintptr_t remote;
  std::uintptr_t end;
};

bool enabled = false;
int running = kNobody;
bool in_heap_lock = false;
bool busy = false;  // this file asks the library, which is instrumented, too
std::vector<unsigned> nodes;
std::unordered_map<std::uintptr_t, LineState> lines;
std::map<std::uintptr_t, SlabLines> slabs;  // by the header's address
std::map<std::uintptr_t, const Context*> contexts;
Counts sums = {};

template <class T>
bool lies_in(std::uintptr_t address, const T& object) {
  return address - reinterpret_cast<std::uintptr_t>(&object) < sizeof object;
}

bool is_private(std::uintptr_t address) {
  const auto thread = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  const auto frame = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
  return address - (thread - kThreadBytes) < 2 * kThreadBytes || address - (frame - kStackBytes) < 2 * kStackBytes;
}

bool is_in_context(std::uintptr_t address) {
  for (Context* c = slots::all_contexts(); c != nullptr; c = c->next_all) {
    // The list grows at its head.
    if (!contexts.emplace(reinterpret_cast<std::uintptr_t>(c), c).second) break;
  }
  const auto behind = contexts.upper_bound(address);
  return behind != contexts.begin() && address - std::prev(behind)->first < sizeof(Context);
}

Kind kind_of(std::uintptr_t address) {
  if (lies_in(address, slots::central)) return Kind::kCentral;
  if (lies_in(address, pages::heap)) return Kind::kHeap;
  const auto behind = slabs.upper_bound(address);
  if (behind != slabs.begin()) {
    const auto& [start, slab] = *std::prev(behind);
    if (address < slab.end) {
      return address < slab.words ? Kind::kOwner : address < slab.remote ? Kind::kWords : Kind::kRemote;
    }
  }
  if (is_in_context(address)) return Kind::kContext;
  const auto table = reinterpret_cast<std::uintptr_t>(arch::brimful_hot.table);
  if (address - table < (arch::brimful_hot.granule_mask + 1) * sizeof(Header*)) return Kind::kTable;
  const auto data = reinterpret_cast<std::uintptr_t>(&__data_start);
  if (address - data < reinterpret_cast<std::uintptr_t>(&_end) - data) return Kind::kGlobals;
  return Kind::kPageData;
}

// Whether another CPU than the running one has a copy, and whether one in another node has.
struct Others {
  bool any = false;
  bool far = false;
};

Others others_of(const LineState& line) {
  Others found;
  const unsigned node = nodes[static_cast<unsigned>(running)];
  for (std::size_t cpu = line.copies._Find_first(); cpu < line.copies.size(); cpu = line.copies._Find_next(cpu)) {
    if (static_cast<int>(cpu) == running) continue;
    found.any = true;
    found.far = found.far || nodes[cpu] != node;
  }
  return found;
}

void transfer(std::uintptr_t address, bool crosses) {
  const auto kind = static_cast<std::size_t>(kind_of(address));
  ++sums.transfers[kind];
  if (crosses) ++sums.crossings[kind];
  if (in_heap_lock) ++sums.transfers_in_heap_lock;
}

void touch(std::uintptr_t number, bool writes) {
  LineState& line = lines[number];
  const auto self = static_cast<std::size_t>(running);
  const bool foreign = line.writer != kNobody && line.writer != running;
  if (!writes) {
    if (line.copies[self]) return;
    if (foreign) transfer(number * kLineBytes, nodes[static_cast<std::size_t>(line.writer)] != nodes[self]);
    line.copies[self] = true;
    line.exclusive = false;
    return;
  }
  if (line.writer == running && line.exclusive) return;
  const Others others = others_of(line);
  if (others.any) transfer(number * kLineBytes, others.far);
  line.writer = running;
  line.exclusive = true;
  line.copies.reset();
  line.copies[self] = true;
}

// The ranks below this are of programs' heaps, which nothing here makes.
constexpr std::size_t kFirstRank = static_cast<std::size_t>(Rank::kContext);

std::size_t index_of(Rank rank) { return static_cast<std::size_t>(rank) - kFirstRank; }

// Which of the allocator's locks it is, as an index; kRanks: none.
std::size_t rank_of(std::uintptr_t lock) {
  if (lies_in(lock, pages::heap.lock)) return index_of(Rank::kHeap);
  if (lies_in(lock, slots::central)) return index_of(Rank::kCentral);
  return is_in_context(lock) ? index_of(Rank::kContext) : kRanks;
}

}  // namespace

bool is_counted() { return enabled; }

void enable() { enabled = true; }

void begin(const Machine& machine) {
  lines.clear();
  for (unsigned cpu = 0; cpu < machine.cpus(); ++cpu) nodes.push_back(machine.node_of(cpu));
}

void end() { nodes.clear(); }

void forget_counts() { sums = Counts(); }

Counts counts() { return sums; }

void watch(unsigned cpu) { running = nodes.empty() ? kNobody : static_cast<int>(cpu); }
void stop_watching() { running = kNobody; }

void access(std::uintptr_t address, std::size_t bytes, bool writes) {
  if (running == kNobody || busy || is_private(address)) return;
  busy = true;
  for (std::uintptr_t line = address / kLineBytes; line <= (address + bytes - 1) / kLineBytes; ++line) {
    touch(line, writes);
  }
  busy = false;
}

void acquired(std::uintptr_t lock) {
  if (running == kNobody) return;
  busy = true;
  const std::size_t rank = rank_of(lock);
  busy = false;
  if (rank == kRanks) return;
  ++sums.locks[rank];
  if (rank == index_of(Rank::kHeap)) in_heap_lock = true;
}

void released(std::uintptr_t lock) {
  if (lies_in(lock, pages::heap.lock)) in_heap_lock = false;
}

void remember_slab(std::uintptr_t header, unsigned groups) {
  const std::uintptr_t remote = header + BRIMFUL_HEADER_OFFERED + round_up(groups * sizeof(std::uint64_t), kLineBytes);
  slabs[header] = {header + BRIMFUL_HEADER_WORDS, remote, header + Slab::bytes_for(groups)};
}

}  // namespace brimful::topology::traffic
