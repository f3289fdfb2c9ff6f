// SPDX-License-Identifier: MIT
//
// Breakpoints in restartable sections; see injector.h.
#include "injector.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <type_traits>

#include "clock.h"
#include "crew.h"
#include "machine_code.h"
#include "report.h"

namespace brimful::stress {
namespace {

constexpr size_t kMaxTasks = 128;
constexpr int kPing = SIGUSR1;

const SectionTable* table = nullptr;
Code originals[SectionTable::kMaxSections][Section::kMaxInstructions];
std::atomic<uint64_t> kernel_hits = 0;
std::atomic<uint64_t> hand_hits = 0;
std::atomic<uint64_t> remaining = 0;  // traps until the handler disarms; meaningful if `limited`
std::atomic<bool> limited = false;
std::atomic<uintptr_t> armed = 0;  // the last armed address
std::atomic<Code> armed_original = 0;
std::atomic<uint64_t> pongs = 0;
std::atomic<pid_t> answers[2 * kMaxTasks];

// What other processors have fetched before stays what they run, for a while.
void store_text(uintptr_t address, Code code) {
  // pairs with: the membarrier in write_text().
  reinterpret_cast<std::atomic<Code>*>(address)->store(code, std::memory_order_seq_cst);
  auto* first = reinterpret_cast<char*>(address);
  __builtin___clear_cache(first, first + sizeof code);
}

void write_text(uintptr_t address, Code code) {
  store_text(address, code);
  // Makes every running thread fetch its instructions anew.
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0);
}

const Section* find_section(uintptr_t ip, bool* aborted) {
  for (size_t i = 0; i < table->count; ++i) {
    const Section& section = table->sections[i];
    *aborted = ip == section.abort;
    if (*aborted || section.contains(ip - kBehindBreakpoint)) return &section;
  }
  return nullptr;
}

void on_trap(int, siginfo_t*, void* context) {
  const int saved_errno = errno;
  auto& next = instruction_pointer(context);
  const auto ip = static_cast<uintptr_t>(next);
  bool aborted = false;
  const Section* section = find_section(ip, &aborted);
  if (section == nullptr) fail(nullptr, 0, "SIGTRAP at %#zx, outside every restartable section", ip);
  if (!aborted) next = static_cast<std::remove_reference_t<decltype(next)>>(section->abort);
  // relaxed: counts and a budget; the driver reads them after its pings, which order them.
  (aborted ? kernel_hits : hand_hits).fetch_add(1, std::memory_order_relaxed);
  // relaxed: as above.
  if (limited.load(std::memory_order_relaxed) && remaining.fetch_sub(1, std::memory_order_relaxed) == 1) {
    // pairs with: arm's release store (the original byte).
    const uintptr_t address = armed.load(std::memory_order_acquire);
    // relaxed: written before `armed`. A thread that still meets the breakpoint just aborts once more.
    store_text(address, armed_original.load(std::memory_order_relaxed));
  }
  errno = saved_errno;
}

void on_ping(int) {
  // pairs with: ping_all's acquire load (the hits that this thread has counted).
  const uint64_t place = pongs.fetch_add(1, std::memory_order_acq_rel);
  // pairs with: has_answered's acquire load (the same, for whoever sees the answer first).
  answers[place % std::size(answers)].store(gettid(), std::memory_order_release);
}

// The ids of all other threads of this process, by system calls only: opendir would allocate.
size_t list_tasks(pid_t* out) {
  const int folder = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  size_t count = 0;
  alignas(8) char buffer[4096];
  long length;
  while ((length = syscall(SYS_getdents64, folder, buffer, sizeof buffer)) > 0) {
    for (long at = 0; at < length;) {
      const char* entry = buffer + at;
      uint16_t size;
      std::memcpy(&size, entry + 16, sizeof size);  // linux_dirent64: ino, off, reclen, type, name
      const pid_t task = std::atoi(entry + 19);
      if (task > 0 && task != gettid() && count < kMaxTasks) out[count++] = task;
      at += size;
    }
  }
  close(folder);
  return count;
}

bool has_answered(pid_t task, uint64_t first, uint64_t last) {
  for (uint64_t i = first; i < last; ++i) {
    // pairs with: on_ping's release store (the hits that the thread has counted).
    if (answers[i % std::size(answers)].load(std::memory_order_acquire) == task) return true;
  }
  return false;
}

// Signals every thread and waits until each has answered or is gone. SIGTRAP's handler blocks the signal, so
// an answer means that the thread is not between a trap and the end of that handler.
void ping_all() {
  pid_t tasks[kMaxTasks];
  const size_t count = list_tasks(tasks);
  // pairs with: on_ping's release (the hits that the thread has counted).
  const uint64_t first = pongs.load(std::memory_order_acquire);
  for (auto& answer : answers) answer.store(0, std::memory_order_relaxed);  // relaxed: nobody answers now
  for (size_t i = 0; i < count; ++i) syscall(SYS_tgkill, getpid(), tasks[i], kPing);
  for (size_t i = 0; i < count; ++i) {
    // pairs with: on_ping's release (the hits that the thread has counted).
    while (!has_answered(tasks[i], first, pongs.load(std::memory_order_acquire))) {
      // A thread that ends answers late or never; signal 0 asks whether it exists.
      if (syscall(SYS_tgkill, getpid(), tasks[i], 0) != 0) break;
      sleep_microseconds(20);
      Crew::check_progress();
    }
  }
}

}  // namespace

const char* Injector::initialize(const SectionTable* sections) {
  table = sections;
  const long commands = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  if (commands < 0 || (commands & MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE) == 0 ||
      syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE, 0, 0) != 0) {
    return "membarrier(SYNC_CORE) is not available";
  }
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (size_t i = 0; i < table->count; ++i) {
    const Section& section = table->sections[i];
    const uintptr_t first = section.start / page * page;
    const uintptr_t last = (section.end + page - 1) / page * page;
    if (mprotect(reinterpret_cast<void*>(first), last - first, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) {
      return "this system forbids writable text";
    }
    for (size_t j = 0; j < section.count; ++j) {
      originals[i][j] = *reinterpret_cast<const Code*>(section.instructions[j]);
    }
  }
  struct sigaction action = {};
  action.sa_sigaction = on_trap;
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaddset(&action.sa_mask, kPing);
  sigaction(SIGTRAP, &action, nullptr);
  struct sigaction ping = {};
  ping.sa_handler = on_ping;
  ping.sa_flags = SA_RESTART;
  sigaction(kPing, &ping, nullptr);
  return nullptr;
}

void Injector::arm(size_t section, size_t instruction, uint64_t budget) {
  const uintptr_t address = table->sections[section].instructions[instruction];
  // relaxed: nothing is armed for these yet, or several places are and the budget is 0.
  kernel_hits.store(0, std::memory_order_relaxed);
  hand_hits.store(0, std::memory_order_relaxed);
  remaining.store(budget, std::memory_order_relaxed);
  limited.store(budget != 0, std::memory_order_relaxed);
  armed_original.store(originals[section][instruction], std::memory_order_relaxed);
  // pairs with: on_trap's acquire load (the original byte).
  armed.store(address, std::memory_order_release);
  write_text(address, kBreakpoint);
}

Hits Injector::disarm(size_t section, size_t instruction) {
  write_text(table->sections[section].instructions[instruction], originals[section][instruction]);
  ping_all();
  return hits();
}

Hits Injector::hits() {
  // relaxed: counts; after disarm() the pings have ordered them.
  return {kernel_hits.load(std::memory_order_relaxed), hand_hits.load(std::memory_order_relaxed)};
}

}  // namespace brimful::stress
