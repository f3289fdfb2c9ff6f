// SPDX-License-Identifier: MIT
//
// weak/explorer.h: a run, and the search through all of them.
#include <unistd.h>

#include <cstdio>

#include "fibers.h"

namespace brimful::weak {

bool is_busy = true;

Explorer& explorer() {
  static Explorer* const only = new Explorer;
  return *only;
}

void Explorer::begin_fiber() { explorer().run_fiber(); }

bool Explorer::one_run() {
  put_back();
  memory_.reset(threads_);
  steps_.clear();
  step_count_ = 0;
  depth_ = 0;
  preemptions_left_ = bounds_.preemptions;
  stale_left_ = bounds_.stale;
  for (unsigned t = 0; t < threads_; ++t) {
    Fiber& fiber = fibers_[t];
    fiber.is_new = true;
    fiber.is_done = false;
    fiber.waits_on = 0;
    fiber.tls = images_[t];
    getcontext(&fiber.start);
    fiber.start.uc_stack.ss_sp = fiber.stack;
    fiber.start.uc_stack.ss_size = kStackBytes;
    fiber.start.uc_link = nullptr;
    makecontext(&fiber.start, begin_fiber, 0);
  }
  const int how = _setjmp(main_);
  if (how == 0) {
    const unsigned first = choose(threads_);
    current_ = first;
    std::memcpy(tls_, fibers_[first].tls.data(), tls_bytes_);
    is_active_ = true;
    enter(first);
  }
  is_active_ = false;
  std::memcpy(tls_, images_[0].data(), tls_bytes_);
  if (how == 3 && !is_news_ && scenario_->check != nullptr) outside_of_here(scenario_->check);
  return fault_.empty();
}

Result Explorer::explore(const Scenario& scenario, Bounds bounds, std::uint64_t most_runs) {
  scenario_ = &scenario;
  threads_ = scenario.threads;
  bounds_ = bounds;
  fault_.clear();
  outcomes.clear();
  const std::vector<char> own = save_tls();
  for (unsigned t = 0; t < threads_; ++t) {
    std::memcpy(tls_, pristine_.data(), tls_bytes_);
    if (scenario.prepare != nullptr) outside_of_here([&] { scenario.prepare(t); });
    images_[t] = save_tls();
  }
  Result result = {};
  sharing_.clear();
  is_logging_ = true;
  do {
    is_news_ = false;
    path_.clear();
    seen_.clear();
    outcomes.clear();
    bool more = true;
    for (auto& [address, sharing] : sharing_) sharing.is_known = sharing.is_shared();
    while (more && !is_news_ && result.runs < most_runs) {
      ++result.runs;
      if (!one_run()) break;
      more = next_path();
    }
    result.is_complete = !more && !is_news_;
    result.states = seen_.size();
  } while (is_news_ && fault_.empty() && result.runs < most_runs);
  put_back();
  is_logging_ = false;
  std::memcpy(tls_, own.data(), tls_bytes_);
  result.fault = fault_;
  return result;
}

Result explore(const Scenario& scenario, Bounds bounds, std::uint64_t most_runs) {
  return explorer().explore(scenario, bounds, most_runs);
}
void fail(const char* what) {
  const Busy busy;
  explorer().fail(what);
}
void record(const char* outcome) {
  const Busy busy;
  explorer().outcomes.insert(outcome);
}
std::string outcomes() {
  const Busy busy;
  std::string all;
  for (const std::string& one : explorer().outcomes) all += (all.empty() ? "" : " ") + one;
  return all;
}
void weaken(std::uintptr_t site, Order order) { explorer().weaken(site, order); }
void print_sites() { explorer().print_sites(); }
void trace_faults() { explorer().trace(); }
void print_trace() { explorer().print_steps(); }
void yield() {
  const Busy busy;
  explorer().yield();
}

}  // namespace brimful::weak
