// SPDX-License-Identifier: MIT
#include "progress.h"

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <ctime>

namespace zcache {
namespace {

volatile std::sig_atomic_t interrupted = 0;

extern "C" void interrupt(int /*signal*/) { interrupted = 1; }

constexpr std::uint64_t kShowEveryNs = 200'000'000;
constexpr std::size_t kTicksALook = 64;  // the clock is read once in so many ticks

}  // namespace

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

void handle_interrupts() {
  struct sigaction action {};
  action.sa_handler = interrupt;  // without SA_RESTART: sleeps end, too
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

Progress::Progress(const char* what, std::size_t total)
    : what_(what), total_(total), began_ns_(now_ns()), terminal_(isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  const double seconds = static_cast<double>(now_ns() - began_ns_) / 1e9;
  std::fprintf(stderr, "%szcache: %s: %.1f s\n", terminal_ ? "\r\033[K" : "", what_, seconds);
}

void Progress::tick(std::size_t done) {
  if (interrupted != 0) throw Interrupted{};
  if (terminal_ && ticks_++ % kTicksALook == 0) show(done);
}

void Progress::show(std::size_t done) {
  const std::uint64_t now = now_ns();
  if (now - shown_ns_ < kShowEveryNs) return;
  shown_ns_ = now;
  if (total_ != 0) {
    const double percent = 100 * static_cast<double>(done) / static_cast<double>(total_);
    std::fprintf(stderr, "\rzcache: %s: %.0f %%\033[K", what_, percent);
  } else {
    std::fprintf(stderr, "\rzcache: %s: %zu\033[K", what_, done);
  }
}

}  // namespace zcache
