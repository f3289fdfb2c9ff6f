// SPDX-License-Identifier: MIT
//
// A process held still: every thread stopped by ptrace, and its registers.
//
// PTRACE_SEIZE and PTRACE_INTERRUPT, which send no signal and leave no trace: a system call that was under way goes on or
// begins anew as after any stop. Threads that start meanwhile are found by reading the list again until nothing is new. If
// this program dies, the kernel lets them all go. While they are held, signals that would stop or end us wait.
#pragma once

#include <sys/types.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <vector>

#include "memory/thread_state.h"

namespace brimful::observer::leaks {

class Seizure {
 public:
  Seizure() = default;
  Seizure(const Seizure&) = delete;
  Seizure& operator=(const Seizure&) = delete;
  ~Seizure() { release(); }

  // Stops all threads. false: error() says in one line why not, and nothing is held.
  bool seize(pid_t pid);
  // Lets them go on. Any number of times.
  void release();

  [[nodiscard]] const std::vector<memory::ThreadState>& threads() const { return states_; }
  [[nodiscard]] const std::string& error() const { return error_; }
  // How long the last seizure took, from the first thread's stop to the last one's release.
  [[nodiscard]] double held_seconds() const { return held_seconds_; }

 private:
  struct Held {
    pid_t tid;
    int signal;  // that the stop came with, and that the thread gets when it goes on
    bool is_stopped;
  };

  bool seize_new(bool& found);
  bool wait_for_all();
  bool read_registers();
  bool fail(std::string why);

  pid_t pid_ = 0;
  std::vector<Held> held_;
  std::vector<memory::ThreadState> states_;
  std::string error_;
  sigset_t signals_before_ = {};
  bool is_active_ = false;
  double began_ = 0;
  double held_seconds_ = 0;
};

}  // namespace brimful::observer::leaks
