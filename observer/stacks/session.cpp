// SPDX-License-Identifier: MIT
#include "stacks/session.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "memory/process.h"
#include "stacks/live_samples.h"
#include "stacks/sample_file.h"

namespace brimful::observer::stacks {

namespace {

// Records of freed objects are used again, the oldest first, so a look has to come before many are new. Nanoseconds.
constexpr std::uint64_t kLongestPause = 200'000'000;
constexpr std::uint64_t kShortestPause = 2'000'000;
constexpr std::uint64_t kNewInALook = 200;

// The next pause, when the last one brought so many new samples.
std::uint64_t next_pause(std::uint64_t pause, std::uint64_t fresh) {
  return std::clamp(pause * kNewInALook / std::max<std::uint64_t>(fresh, 1), kShortestPause, kLongestPause);
}

constexpr std::uint64_t kSecond = 1'000'000'000;

volatile std::sig_atomic_t interrupted = 0;

void interrupt(int) { interrupted = 1; }

std::uint64_t nanoseconds(clockid_t clock) {
  timespec now;
  ::clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

std::string content(int folder, const std::string& path) {
  std::string text;
  const int descriptor = ::openat(folder, path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return text;
  char buffer[1 << 16];
  for (ssize_t count = 0; (count = ::read(descriptor, buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  ::close(descriptor);
  return text;
}

std::string of_process(pid_t process, const char* name) { return "/proc/" + std::to_string(process) + "/" + name; }

// Whoever started us may be killed, and a terminal closed: either way sampling is switched off before we go.
void catch_signals(bool ignore_interrupt) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  struct sigaction action {};
  action.sa_handler = interrupt;
  action.sa_flags = SA_RESTART;  // the answer may be under way through a pipe; a pause ends all the same
  for (const int number : {SIGTERM, SIGHUP, SIGQUIT}) ::sigaction(number, &action, nullptr);
  if (ignore_interrupt) action.sa_handler = SIG_IGN;
  ::sigaction(SIGINT, &action, nullptr);
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &action, nullptr);
}

}  // namespace

bool is_running(pid_t process) {
  const std::string text = content(AT_FDCWD, of_process(process, "stat"));
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return false;
  return text[name_end + 2] != 'Z' && text[name_end + 2] != 'X';
}

std::unique_ptr<Session> Session::of_process(pid_t process, std::string& why) {
  std::unique_ptr<Session> session(new Session);
  session->process_ = process;
  session->root_ = ::open(stacks::of_process(process, "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (session->root_ < 0) {
    why = std::strerror(errno);
    return nullptr;
  }
  char program[4096];
  const ssize_t length = ::readlink(stacks::of_process(process, "exe").c_str(), program, sizeof program);
  if (length > 0) session->program_.assign(program, static_cast<std::size_t>(length));
  session->name_ = content(AT_FDCWD, stacks::of_process(process, "comm"));
  if (!session->name_.empty()) session->name_.pop_back();  // a line
  session->inner_process_ = memory::inner_number(process);
  const memory::Read read = [process](std::uint64_t address, void* into, std::size_t size) {
    return memory::read_process(process, address, into, size);
  };
  session->modules_ = std::make_unique<Modules>(session->root_, read, 0);
  session->samples_ = std::make_unique<Samples>(*session->modules_, read);
  session->refresh_mappings();
  return session;
}

void Session::refresh_mappings() {
  const std::string maps = content(AT_FDCWD, stacks::of_process(process_, "maps"));
  if (!maps.empty()) modules_->update(maps);  // empty: it has ended, and what was known stays true
}

PerfMap Session::perf_map() const {
  return PerfMap(content(root_, "tmp/perf-" + std::to_string(inner_process_) + ".map"));
}

bool Session::watch(const Request& request, Report& report, std::string& why) {
  catch_signals(request.ignore_interrupt);
  LiveSamples live(request.process, request.control);
  if (!live.look()) {
    why = live.why().empty() ? "it ended" : live.why();
    return false;
  }
  bool ours = false;
  if (live.interval() == 0) {
    if (!live.set_interval(request.interval)) {
      why = std::strerror(errno);
      return false;
    }
    ours = true;
  }
  report.process = request.process;
  report.program = program_;
  report.name = name_;
  report.began_ns = nanoseconds(CLOCK_MONOTONIC);
  report.began_unix = static_cast<double>(nanoseconds(CLOCK_REALTIME)) / 1e9;
  report.complete = request.from_start;
  report.interval = live.interval();
  const std::uint64_t taken_before = request.from_start ? 0 : live.taken();
  const std::uint64_t lost_before = request.from_start ? 0 : live.lost();
  const auto limit = static_cast<std::uint64_t>(request.seconds * 1e9);
  const std::uint64_t bytes_before = request.from_start ? 0 : live.allocated_bytes();
  std::uint64_t usual_pause = kShortestPause;
  std::size_t known = 0;
  report.ended = "time";
  for (;;) {
    const std::uint64_t passed = nanoseconds(CLOCK_MONOTONIC) - report.began_ns;
    const bool last = interrupted != 0 || (limit != 0 && passed >= limit);
    refresh_mappings();
    samples_->begin_look();
    report.ended_ns = nanoseconds(CLOCK_MONOTONIC);
    if (!live.poll(*samples_) || !is_running(request.process)) {
      report.ended = "exit";
      ours = false;
      break;
    }
    if (last) {
      if (interrupted != 0) report.ended = "interrupt";
      break;
    }
    if (live.interval() == 0 && live.set_interval(request.interval)) ours = true;
    usual_pause = next_pause(usual_pause, samples_->samples().size() - known);
    known = samples_->samples().size();
    std::uint64_t pause = usual_pause;
    if (limit != 0) pause = std::min<std::uint64_t>(pause, limit > passed ? limit - passed : 0);
    const timespec time{static_cast<time_t>(pause / kSecond), static_cast<long>(pause % kSecond)};
    ::nanosleep(&time, nullptr);  // a signal ends it early, and is looked at above
  }
  if (ours) live.set_interval(0);
  std::uint64_t seen = 0;
  for (const Sample& sample : samples_->samples()) seen += sample.number > taken_before ? 1 : 0;
  const std::uint64_t taken = live.taken() - taken_before;
  report.missed = taken > seen ? taken - seen : 0;
  report.lost = live.lost() - lost_before;
  report.allocated_bytes = live.allocated_bytes() - bytes_before;
  return true;
}

std::unique_ptr<Session> Session::of_file(const std::string& path, Report& report, std::string& why) {
  std::unique_ptr<Session> session(new Session);
  session->root_ = ::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  SampleFile file;
  if (!file.load(path, why)) return nullptr;
  session->modules_ = std::make_unique<Modules>(session->root_, memory::Read(), file.written());
  session->samples_ = std::make_unique<Samples>(*session->modules_, memory::Read());
  session->modules_->update(file.maps());
  report.ended = "file";
  report.complete = true;
  report.program = file.program();
  report.began_unix = static_cast<double>(file.written());
  if (!session->add_file(path, report, why)) return nullptr;
  report.began_ns = report.ended_ns;
  for (const Sample& sample : session->samples_->samples()) {
    report.began_ns = std::min(report.began_ns, sample.allocated_ns);
    report.interval = sample.interval;
  }
  return session;
}

bool Session::add_file(const std::string& path, Report& report, std::string& why) {
  SampleFile file;
  if (!file.load(path, why)) return false;
  if (!file.maps().empty()) modules_->update(file.maps());
  for (const std::span<const unsigned char> slot : file.slots()) samples_->add(slot);
  for (const Sample& sample : samples_->samples()) {
    report.ended_ns = std::max({report.ended_ns, sample.allocated_ns, sample.freed_ns});
  }
  report.lost = file.lost();
  report.allocated_bytes = file.allocated_bytes();
  const std::uint64_t seen = samples_->samples().size();
  report.missed = file.taken() > seen ? file.taken() - seen : 0;
  return true;
}

}  // namespace brimful::observer::stacks
