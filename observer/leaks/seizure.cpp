// SPDX-License-Identifier: MIT
//
// Stopping all threads of a process, and reasons why that can't be done.
#include "leaks/seizure.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace brimful::observer::leaks {
namespace {

constexpr double kPatience =
    2.0;  // seconds for a thread to stop: one that sleeps in the kernel without regard to signals does not

double now() {
  timespec t = {};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text, '\0');
  return text;
}

std::string status_field(pid_t tid, const char* field) {
  std::ifstream file("/proc/" + std::to_string(tid) + "/status");
  const std::size_t length = std::strlen(field);
  for (std::string line; std::getline(file, line);) {
    if (line.compare(0, length, field) == 0) {
      const std::size_t from = line.find_first_not_of(" \t", length);
      return from == std::string::npos ? "" : line.substr(from);
    }
  }
  return "";
}

// Why PTRACE_SEIZE was refused.
std::string refusal(pid_t pid, pid_t tid, int error) {
  const std::string name = "process " + std::to_string(pid);
  if (error != EPERM && error != EACCES) return name + " can't be stopped: " + std::strerror(error);
  const std::string tracer = status_field(tid, "TracerPid:");
  if (!tracer.empty() && tracer != "0") {
    return name + " is traced by process " + tracer + " already (a debugger, strace): end that first";
  }
  const std::string owner = status_field(tid, "Uid:");
  if (geteuid() != 0 && std::strtoul(owner.c_str(), nullptr, 10) != geteuid()) {
    return name + " belongs to user " + owner.substr(0, owner.find_first_of(" \t")) +
           ": run this as that user, or as root";
  }
  const std::string scope = text_of("/proc/sys/kernel/yama/ptrace_scope");
  if (!scope.empty() && scope[0] != '0') {
    return name + " can't be stopped: kernel.yama.ptrace_scope is " + scope.substr(0, 1) + ", which lets only " +
           (scope[0] == '1'   ? "a parent or root"
            : scope[0] == '2' ? "root"
                              : "nobody") +
           " trace";
  }
  return name +
         " can't be stopped: it has given up its dumpable state (prctl(2), PR_SET_DUMPABLE), or a security policy "
         "forbids it";
}

}  // namespace

bool Seizure::seize(pid_t pid) {
  pid_ = pid;
  held_.clear();
  states_.clear();
  sigset_t late;
  sigemptyset(&late);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGTTOU, SIGTTIN, SIGPIPE})
    sigaddset(&late, signal);
  sigprocmask(SIG_BLOCK, &late, &signals_before_);
  is_active_ = true;
  began_ = now();
  // A thread that was not stopped yet may have started another one; when a whole look finds none, all are stopped.
  for (bool found = true; found;) {
    if (!seize_new(found) || !wait_for_all()) return false;
  }
  if (held_.empty()) return fail("process " + std::to_string(pid) + " has ended");
  return read_registers();
}

bool Seizure::seize_new(bool& found) {
  found = false;
  const std::string folder = "/proc/" + std::to_string(pid_) + "/task";
  DIR* const tasks = opendir(folder.c_str());
  if (tasks == nullptr) return fail("there is no process " + std::to_string(pid_));
  std::vector<pid_t> fresh;
  while (const dirent* entry = readdir(tasks)) {
    const auto tid = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (tid <= 0) continue;
    if (std::none_of(held_.begin(), held_.end(), [tid](const Held& h) { return h.tid == tid; })) fresh.push_back(tid);
  }
  closedir(tasks);
  for (const pid_t tid : fresh) {
    if (ptrace(PTRACE_SEIZE, tid, nullptr, nullptr) != 0) {
      if (errno == ESRCH) continue;  // it has ended
      if (const std::string state = status_field(tid, "State:"); !state.empty() && state[0] == 'Z') continue;
      return fail(refusal(pid_, tid, errno));
    }
    found = true;
    held_.push_back({tid, 0, false});
    ptrace(PTRACE_INTERRUPT, tid, nullptr, nullptr);
  }
  return true;
}

bool Seizure::wait_for_all() {
  const double until = now() + kPatience;
  for (std::size_t n = 0; n < held_.size();) {
    Held& held = held_[n];
    if (held.is_stopped) {
      ++n;
      continue;
    }
    int status = 0;
    const pid_t answer = waitpid(held.tid, &status, __WALL | WNOHANG);
    if (answer == held.tid && WIFSTOPPED(status)) {
      // The stop we asked for, or a signal that came first: that one is passed on when we let go.
      held.signal = status >> 16 == PTRACE_EVENT_STOP ? 0 : WSTOPSIG(status);
      held.is_stopped = true;
    } else if (answer == held.tid || (answer < 0 && errno == ECHILD)) {
      held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(n));  // it has ended
    } else if (now() > until) {
      const std::string state = status_field(held.tid, "State:");
      return fail("thread " + std::to_string(held.tid) + " of process " + std::to_string(pid_) +
                  " does not stop (state " + state.substr(0, state.find(' ')) +
                  "): it waits in the kernel; try again later");
    } else {
      const timespec moment = {0, 20000};
      nanosleep(&moment, nullptr);
    }
  }
  return true;
}

bool Seizure::read_registers() {
  std::array<std::uint64_t, 2048> area;
  for (const Held& held : held_) {
    memory::ThreadState state;
    state.tid = held.tid;
    iovec place = {area.data(), sizeof area};
    if (ptrace(PTRACE_GETREGSET, held.tid, NT_PRSTATUS, &place) != 0) {
      if (errno == ESRCH) continue;  // killed meanwhile
      return fail("the registers of thread " + std::to_string(held.tid) + " can't be read: " + std::strerror(errno));
    }
    memory::read_general_registers(area.data(), place.iov_len, state);
#if defined(__x86_64__)
    constexpr int kWide = NT_X86_XSTATE;
#else
    constexpr int kWide = NT_PRFPREG;
    place = {&state.thread_pointer, sizeof state.thread_pointer};
    ptrace(PTRACE_GETREGSET, held.tid, NT_ARM_TLS, &place);
#endif
    place = {area.data(), sizeof area};
    if (ptrace(PTRACE_GETREGSET, held.tid, kWide, &place) == 0) {
      state.words.insert(state.words.end(), area.data(), area.data() + place.iov_len / sizeof(std::uint64_t));
    }
    states_.push_back(std::move(state));
  }
  return true;
}

void Seizure::release() {
  if (!is_active_) return;
  for (const Held& held : held_) {
    // One that was never stopped can't be detached; the kernel does so when we end.
    ptrace(PTRACE_DETACH, held.tid, nullptr, reinterpret_cast<void*>(static_cast<std::intptr_t>(held.signal)));
  }
  held_.clear();
  held_seconds_ = now() - began_;
  is_active_ = false;
  sigprocmask(SIG_SETMASK, &signals_before_, nullptr);
}

bool Seizure::fail(std::string why) {
  release();
  error_ = std::move(why);
  return false;
}

}  // namespace brimful::observer::leaks
