// SPDX-License-Identifier: MIT
//
// A small explicit-state explorer: runs a few threads in every order, and reports the first order that goes
// wrong.
//
// Shared memory is an array of 64-bit cells. A thread is a coroutine (task.h) that awaits each access to a
// cell; at each such point the explorer tries every thread that can go on. Two prefixes of runs that lead to
// the same state are continued once: a state is the cells, the store buffers, the model's ghost words, and
// for each thread a hash of everything it has read so far, which determines where it stands. So a finished
// exploration is exhaustive for the scenario, not a sample. After each branch the run is repeated from the
// start up to the next choice (coroutines can't be copied); with some hundred steps a run that costs
// microseconds.
//
// Memory model: total store order, as x86-64. A plain store waits in its thread's buffer until the explorer
// flushes it; read-modify-writes, fences and being preempted empty the buffer. So a missing fence is found.
//
// Reduction: an access to a cell that is private to its thread is independent of all others' steps, so where one is
// due nothing else is tried before it, and a store to such a cell needs no buffer.
//
// CPUs: a context is held by at most one running thread. A thread that does not run may take over any context
// it is allowed to run in; its holder is preempted then, and a restartable section it was in is aborted.
// `preemptions` bounds how often that happens in a run; scenarios say how many they allow.
//
// Rejected: a model in the language of a checker (Promela, TLA+). It would be better at proving, but nobody
// would keep it in step with the source; here each function of src/slots has its twin of the same name in the
// same language.
#pragma once

#include <array>
#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "task.h"

namespace brimful::model {

inline constexpr size_t kCells = 40;
inline constexpr size_t kGhosts = 64;
inline constexpr size_t kMaxThreads = 4;

using Cell = unsigned;

enum class Kind {
  kLoad,
  kStore,
  kOr,
  kAnd,
  kAdd,
  kExchange,
  kCompareExchange,
  kFence,
  kLock,
  kBarrier,
  kAtomic,
  kAwait,
  kBegin
};

struct Operation {
  Kind kind;
  Cell cell = 0;
  uint64_t value = 0;
  uint64_t expected = 0;
  std::function<uint64_t()> code = {};  // kAtomic: runs as one step. kAwait: the thread goes on once it is non-zero
  const char* label = "";
};

class World;

// A thread as the explorer sees it.
struct Thread {
  unsigned index = 0;
  unsigned context = 0;  // the context it runs in, or ran in last
  bool running = false;  // holds its context now
  bool in_section = false;
  bool aborted = false;  // preempted inside the section
  uint64_t allowed = 0;  // contexts it may run in, a bit each
  uint64_t history = 0;  // hash of what it has read: with the program it tells where the thread stands
  std::vector<std::pair<Cell, uint64_t>> buffer;
  std::coroutine_handle<> leaf;
  Operation* operation = nullptr;
  uint64_t result = 0;
  World* world = nullptr;

  struct Access {
    Thread& thread;
    Operation operation;
    bool await_ready() const { return false; }
    void await_suspend(std::coroutine_handle<> handle) {
      thread.leaf = handle;
      thread.operation = &operation;
    }
    uint64_t await_resume() const { return thread.result; }
  };

  // Memory accesses. Each is one step; inside a section that was aborted they do nothing, see `aborted`.
  Access load(Cell cell) { return {*this, {Kind::kLoad, cell}}; }
  Access store(Cell cell, uint64_t value) { return {*this, {Kind::kStore, cell, value}}; }
  Access fetch_or(Cell cell, uint64_t value) { return {*this, {Kind::kOr, cell, value}}; }
  Access fetch_and(Cell cell, uint64_t value) { return {*this, {Kind::kAnd, cell, value}}; }
  Access fetch_add(Cell cell, uint64_t value) { return {*this, {Kind::kAdd, cell, value}}; }
  Access exchange(Cell cell, uint64_t value) { return {*this, {Kind::kExchange, cell, value}}; }
  // Result: the value found; the exchange happened if it equals `expected`.
  Access compare_exchange(Cell cell, uint64_t expected, uint64_t value) {
    return {*this, {Kind::kCompareExchange, cell, value, expected}};
  }
  Access fence() { return {*this, {Kind::kFence}}; }
  // Waits until the cell is 0 and makes it 1.
  Access lock(Cell cell) { return {*this, {Kind::kLock, cell}}; }
  // membarrier(PRIVATE_EXPEDITED_RSEQ): aborts every section, empties every buffer.
  Access barrier() { return {*this, {Kind::kBarrier}}; }
  Access atomically(const char* label, std::function<uint64_t()> code) {
    return {*this, {Kind::kAtomic, 0, 0, 0, std::move(code), label}};
  }
  Access await(const char* label, std::function<uint64_t()> condition) {
    return {*this, {Kind::kAwait, 0, 0, 0, std::move(condition), label}};
  }

  // For anything read that is not a cell: what the thread does next may depend on it, so it is part of the
  // state.
  uint64_t observe(uint64_t value) {
    history = (history ^ value) * 0x9E3779B97F4A7C15u + 1;
    return value;
  }

  // Begins a restartable section: a step of its own, because a thread that is preempted or meets a barrier right before
  // it is not aborted.
  Access begin_section() { return {*this, {Kind::kBegin}}; }
  // Returns whether the section was aborted before this point.
  bool end_section() {
    in_section = false;
    return aborted;
  }
};

// One run's state. A scenario derives from it.
class World {
 public:
  explicit World(unsigned thread_count);
  virtual ~World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The program of a thread.
  virtual Task<void> run(Thread& thread) = 0;
  // Whether nobody but this thread ever looks at the cell. Its accesses are not worth trying in different orders.
  virtual bool is_private(Cell, const Thread&) const { return false; }
  // Whether nothing can abort this thread's sections.
  virtual bool is_undisturbed(const Thread&) const { return false; }
  // Checked after every step; describe the fault with fail().
  virtual void check_always() {}
  // Checked when all threads have ended.
  virtual void check_end() {}
  virtual std::string name_of(Cell cell) const { return "cell " + std::to_string(cell); }

  void fail(std::string what) {
    if (fault.empty()) fault = std::move(what);
  }
  // A cell, or all of them, as they will be when all buffers are empty.
  uint64_t settled(Cell cell) const;
  std::array<uint64_t, kCells> all_settled() const;

  std::array<uint64_t, kCells> cells = {};
  std::array<uint64_t, kGhosts> ghosts = {};  // whatever else the scenario remembers; part of the state
  std::vector<Thread> threads;
  unsigned preemptions_left = 0;
  bool stopped = false;  // the process has ended, as it should: nothing more is checked
  std::string fault;
};

struct Result {
  bool complete = false;  // every order was tried
  uint64_t states = 0;
  uint64_t runs = 0;
  std::string fault;  // empty: none found
  std::string trace;  // the order of steps that leads to it
};

// Explores the worlds that `make` makes; each call must make the same one.
Result explore(const std::function<World*()>& make, uint64_t max_states);

}  // namespace brimful::model
