// SPDX-License-Identifier: MIT
//
// os/fault.h.
#include "os/fault.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "os/errno_guard.h"

namespace brimful::os {
namespace {

constinit std::atomic<FaultReport> reporter{nullptr};

void take_default_action() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGSEGV, &action, nullptr);
}

void on_fault(int, siginfo_t* info, void* context) {
  const ErrnoGuard guard;
  const FaultReport report = reporter.load(std::memory_order_relaxed);  // relaxed: set before the handler was
  const bool is_fault = info->si_code > 0 && info->si_code != SI_KERNEL;
  const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
  if (is_fault && report != nullptr && report(address, arch::fault_of(context)) == FaultAnswer::kGoOn) return;
  take_default_action();
  // What was sent by kill(2) doesn't come again by itself. It is held back until we return.
  if (info->si_code <= 0) syscall(SYS_rt_tgsigqueueinfo, syscall(SYS_getpid), syscall(SYS_gettid), SIGSEGV, info);
}

bool is_default(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_DFL;
}

}  // namespace

bool watch_faults(FaultReport report) {
  const ErrnoGuard guard;
  struct sigaction before = {};
  if (sigaction(SIGSEGV, nullptr, &before) != 0 || !is_default(before)) return false;
  reporter.store(report, std::memory_order_relaxed);  // relaxed: the system call orders it
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;  // threads of Go and Java have small stacks, and one for signals
  if (sigaction(SIGSEGV, &ours, &before) != 0) return false;
  if (is_default(before)) return true;
  sigaction(SIGSEGV, &before, nullptr);  // another thread's came in between
  return false;
}

}  // namespace brimful::os
