// SPDX-License-Identifier: MIT
//
// A machine of any size in one thread: each simulated CPU is a context of the real allocator.
//
// A thread finds its context by a number behind a pointer (arch::brimful_thread). In a real process the kernel changes
// that number when the thread moves to another CPU; here run_on() does. All that follows is the allocator as it is: its
// sequences, its slow paths, its locks. What a machine of one thread can't show is waiting: a lock is never found taken,
// a sequence never aborted. So the same seed gives the same counts, whatever else this computer does; what waiting would
// add is derived from how often and how long locks are held (docs/scaling.md).
//
// CPUs are spread over the nodes in blocks, as most systems number them: with 256 on 8, CPUs 0 to 31 are node 0.
#pragma once

#include <cstdint>
#include <vector>

#include "fake_os.h"
#include "slots/context.h"

namespace brimful::topology {

class Machine {
 public:
  // CPUs 1 … kMostCpus, nodes 1 … cpus. The first machine of a process starts the allocator; there can be one only.
  Machine(unsigned cpus, unsigned nodes);
  ~Machine();
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;

  static constexpr unsigned kMostCpus = 2048;

  [[nodiscard]] unsigned cpus() const { return static_cast<unsigned>(ids_.size()); }
  [[nodiscard]] unsigned nodes() const { return nodes_; }
  [[nodiscard]] unsigned node_of(unsigned cpu) const { return cpu * nodes_ / cpus(); }

  // From now on the allocator sees a machine of one node.
  void hide_nodes() { nodes_are_hidden_ = true; }

  // From now on the allocator runs on this CPU.
  void run_on(unsigned cpu);
  // From now on it runs in this thread's own context, and nothing is watched.
  void leave();

  // The CPU's context, or nullptr if it has not needed one.
  [[nodiscard]] Context* context(unsigned cpu) const;

  void pass_ms(std::uint64_t ms) { os_.now_ms += ms; }

  // All CPUs stop working. Per-CPU front end: two seconds later CPU 0 takes a slow path, and again after two more, and
  // closes the contexts of the others. Thread front end: every context is emptied as by its thread's end.
  void go_idle();
  // CPU 0 stops as well, and what is free goes back to the system.
  void shut_down();

 private:
  void empty(unsigned cpu);

  testing::FakeOs os_;
  std::vector<std::uint32_t> ids_;
  unsigned nodes_;
  bool nodes_are_hidden_ = false;
  const std::uint32_t* own_id_ = nullptr;
  std::uint64_t no_rseq_ = 0;
  std::uint64_t* own_cs_ = nullptr;
};

}  // namespace brimful::topology
