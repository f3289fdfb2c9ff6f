// SPDX-License-Identifier: MIT
//
// Failure reports of the stress programs; see report.h.
#include "report.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace brimful::stress {
namespace {

constexpr size_t kMaxThreads = 256;
constexpr size_t kMaxPrinted = 48;
constexpr const char* kOperationNames[] = {
    "?",        "malloc",         "new",  "calloc",     "realloc",    "reallocarray", "aligned_alloc",
    "memalign", "posix_memalign", "free", "free_sized", "realloc(0)", "realloc from", "posted",
    "taken"};

std::atomic<const History*> histories[kMaxThreads];
std::atomic<bool> failing = false;
char repeat_line[1024] = "(unknown)";
bool aborting = false;
const History* (*own_history)() = nullptr;

uint64_t now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec);
}

void write_all(const char* text, size_t length) {
  while (length > 0) {
    const ssize_t written = write(STDERR_FILENO, text, length);
    if (written <= 0) return;
    text += written;
    length -= static_cast<size_t>(written);
  }
}

void print_history(uintptr_t begin, uintptr_t end) {
  static History::Entry entries[4 * kMaxPrinted * 4];
  size_t count = 0;
  for (unsigned thread = 0; thread < kMaxThreads; ++thread) {
    // pairs with: register_history (the ring's memory).
    const History* history = histories[thread].load(std::memory_order_acquire);
    if (history == nullptr) continue;
    count += history->collect(begin, end, thread, entries + count, std::size(entries) - count);
  }
  std::sort(entries, entries + count, [](const auto& a, const auto& b) { return a.time < b.time; });
  say("stress: %zu recent operations on [%#zx, %#zx), the last %zu in order of time (ns):\n", count, begin, end,
      std::min(count, kMaxPrinted));
  for (size_t i = count - std::min(count, kMaxPrinted); i < count; ++i) {
    const History::Entry& entry = entries[i];
    say("  %llu thread %u %s %#zx size %zu id %llu\n", static_cast<unsigned long long>(entry.time), entry.thread,
        kOperationNames[static_cast<size_t>(entry.operation)], entry.address, entry.size,
        static_cast<unsigned long long>(entry.id));
  }
}

void on_crash(int signal_number) {
  // relaxed: only decides who prints.
  if (!failing.exchange(true, std::memory_order_relaxed)) {
    say("stress: FAILED: signal %d (%s)\nstress: repeat with: %s\n", signal_number, sigabbrev_np(signal_number),
        repeat_line);
    const History* history = own_history == nullptr ? nullptr : own_history();
    if (history != nullptr && history->last_address() != 0) {
      print_history(history->last_address(), history->last_address() + 1);
    }
  }
  signal(signal_number, SIG_DFL);
  raise(signal_number);
}

}  // namespace

void say(const char* format, ...) {
  char line[1400];
  va_list arguments;
  va_start(arguments, format);
  const int length = vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  if (length > 0) write_all(line, std::min(static_cast<size_t>(length), sizeof line - 1));
}

void History::note(Operation operation, const void* address, size_t size, uint64_t id) {
  // relaxed throughout: for the failure report only, where a torn entry is a small loss; and no order may be
  // lent to the allocator under test.
  const size_t count = count_.load(std::memory_order_relaxed);
  Cell& cell = cells_[count % kEntries];
  cell.time.store(now(), std::memory_order_relaxed);
  cell.address.store(reinterpret_cast<uintptr_t>(address), std::memory_order_relaxed);
  cell.size.store(size, std::memory_order_relaxed);
  cell.id_and_operation.store(id << 8 | static_cast<uint64_t>(operation), std::memory_order_relaxed);
  count_.store(count + 1, std::memory_order_relaxed);
}

uintptr_t History::last_address() const {
  const size_t count = count_.load(std::memory_order_relaxed);  // relaxed: see note().
  return count == 0 ? 0 : cells_[(count - 1) % kEntries].address.load(std::memory_order_relaxed);  // relaxed: same.
}

size_t History::collect(uintptr_t begin, uintptr_t end, unsigned thread, Entry* out, size_t room) const {
  size_t found = 0;
  for (const Cell& cell : cells_) {
    // relaxed throughout: see note().
    const uintptr_t address = cell.address.load(std::memory_order_relaxed);
    const size_t size = std::max<size_t>(cell.size.load(std::memory_order_relaxed), 1);
    if (address == 0 || address >= end || address + size <= begin) continue;
    if (found == room) break;
    const uint64_t word = cell.id_and_operation.load(std::memory_order_relaxed);
    out[found++] = {cell.time.load(std::memory_order_relaxed), address, size, word >> 8,
                    static_cast<Operation>(word & 0xFF),       thread};
  }
  return found;
}

void register_history(unsigned thread, const History* history) {
  // pairs with: print_history's acquire load.
  if (thread < kMaxThreads) histories[thread].store(history, std::memory_order_release);
}

void set_repeat_line(const char* line) { std::strncpy(repeat_line, line, sizeof repeat_line - 1); }

void abort_on_failure() { aborting = true; }

void fail(const void* address, size_t size, const char* format, ...) {
  // relaxed: only decides who prints.
  if (failing.exchange(true, std::memory_order_relaxed)) {
    for (;;) pause();
  }
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  say("stress: FAILED: %s\nstress: repeat with: %s\n", line, repeat_line);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(address);
  if (begin != 0) print_history(begin, begin + std::max<size_t>(size, 1));
  if (aborting) {
    signal(SIGABRT, SIG_DFL);
    std::abort();
  }
  _exit(1);
}

void install_crash_reporter(const History* (*own)()) {
  own_history = own;
  for (const int number : {SIGSEGV, SIGBUS, SIGILL, SIGABRT}) signal(number, on_crash);
}

}  // namespace brimful::stress
