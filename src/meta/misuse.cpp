// SPDX-License-Identifier: MIT
//
// meta/misuse.h. Tests match the beginning of these lines: `brimful: <fault>: <call>(<pointer>`.
#include "meta/misuse.h"

#include <stdlib.h>

#include <atomic>

#include "config/options.h"
#include "meta/sample_record.h"
#include "os/calls.h"
#include "os/errno_guard.h"
#include "os/probe.h"
#include "os/report.h"

namespace brimful::meta {

const char kMisuseNames[kMisuseKinds][20] = {
    "double free",    "interior pointer", "misaligned pointer", "foreign pointer",   "wrong size",
    "use after free", "buffer overflow",  "buffer underflow",   "use after destroy", "foreign heap",
};

constinit std::atomic<std::uint64_t> misuse_counts[kMisuseKinds] = {};

namespace {

// Printed whole from the start on; behind them one in so many ms.
constexpr std::uint64_t kPrintedReports = 10;
constexpr std::uint64_t kPauseMs = 1000;

constinit std::atomic<std::uint64_t> printed{0};
constinit std::atomic<std::uint64_t> unprinted{0};  // since the last one that was
constinit std::atomic<std::uint64_t> last_ms{0};
constinit std::atomic<MisuseHook> hook{nullptr};

const void* as_pointer(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

// Whether this one of those that the program survives is printed.
bool takes_turn() {
  // relaxed: of reports at one moment any may be the one that is printed
  if (printed.load(std::memory_order_relaxed) < kPrintedReports) {
    printed.fetch_add(1, std::memory_order_relaxed);               // relaxed: as above
    last_ms.store(os::calls.now_ms(), std::memory_order_relaxed);  // relaxed: as above
    return true;
  }
  const std::uint64_t now_ms = os::calls.now_ms();
  std::uint64_t before = last_ms.load(std::memory_order_relaxed);  // relaxed: the exchange below verifies it
  if (now_ms - before >= kPauseMs &&
      last_ms.compare_exchange_strong(
          before, now_ms, std::memory_order_relaxed,
          std::memory_order_relaxed)) {  // relaxed: a time by itself; a failure reads nothing
    return true;
  }
  unprinted.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count for readers
  return false;
}

Decision decide(const Report& report, const Line& line) {
  switch (config::on_misuse()) {
    case config::OnMisuse::kAbort:
      return Decision::kAbort;
    case config::OnMisuse::kWarn:
      return Decision::kWarn;
    case config::OnMisuse::kHook:
      // pairs with: set_misuse_hook() (what the program set up before)
      if (const MisuseHook chosen = hook.load(std::memory_order_acquire)) return chosen(report, line.data());
      return Decision::kAbort;
  }
  return Decision::kAbort;
}

os::StackWords words_of(const char* title, const History& history, const SampleStack& stack) {
  const char* top = static_cast<const char*>(history.record) + stack.stack_offset;
  return {title, 0, 0, reinterpret_cast<const std::uint64_t*>(top), stack.stack_bytes / sizeof(std::uint64_t)};
}

// The stack of what is going on, then those of the object's life.
void report_all_stacks(const os::StackWords& now, const History& history) {
  Line allocated;
  Line freed;
  os::StackWords stacks[3] = {now};
  std::size_t count = 1;
  if (history.allocation != nullptr) {
    allocated << "allocated by thread " << history.allocation->tid << ":";
    stacks[count++] = words_of(allocated.data(), history, *history.allocation);
  }
  if (history.release != nullptr) {
    freed << "freed by thread " << history.release->tid << ":";
    stacks[count++] = words_of(freed.data(), history, *history.release);
  }
  os::report_stacks(stacks, count);
}

// `now`: nullptr: this thread's stack, where stacks are wanted.
bool tell_with(const Report& report, const Line& line, const os::StackWords* now) {
  const os::ErrnoGuard errno_guard;
  // relaxed: a count for readers
  misuse_counts[static_cast<std::size_t>(report.kind)].fetch_add(1, std::memory_order_relaxed);
  const Decision decision = decide(report, line);
  const bool goes_on = decision != Decision::kAbort;
  if (decision == Decision::kIgnore || (goes_on && !takes_turn())) return true;
  const bool wants_stacks =
      now != nullptr || report.history.allocation != nullptr || config::report_kind() == config::Report::kStack;
  const bool has_turn = wants_stacks && os::begin_stacks();
  os::report(line);
  if (has_turn) {
    Line title;
    title << report.call << " called by thread " << os::thread_id() << ":";
    report_all_stacks(now != nullptr ? *now : os::own_stack(title.data(), __builtin_frame_address(0)), report.history);
    // Others wait a while for the process's end, so that the first report is the last.
    if (goes_on) os::end_stacks();
  } else if (wants_stacks) {
    os::report(Line() << "  (its stacks are left out: another report is being written)");
  }
  const std::uint64_t silent = unprinted.exchange(0, std::memory_order_relaxed);  // relaxed: a count for readers
  if (silent != 0) os::report(Line() << "  " << silent << " reports of misuse before this one were not printed");
  return goes_on;
}

}  // namespace

Line begin_line(const Report& report) {
  return Line() << kMisuseNames[static_cast<std::size_t>(report.kind)] << ": " << report.call << "("
                << as_pointer(report.address) << "): ";
}

void tell(const Report& report, const Line& line) {
  if (!tell_with(report, line, nullptr)) abort();
}

bool tell_fault(const Report& report, const Line& line, const os::StackWords& now) {
  return tell_with(report, line, &now);
}

void report_double_free(const char* call, const Slab& slab, std::uint64_t index, const History& history) {
  const std::uint64_t object = slab.object(index);
  const std::uint32_t bytes = slab.shape().bytes;
  const Report report = {Misuse::kDoubleFree, call, object, object, bytes, history};
  tell(report, begin_line(report) << "this " << bytes << "-byte object (size class " << bytes << ") is already free");
}

void report_bad_pointer(const char* call, std::uint64_t pointer, bool was_used, const Header* owner,
                        const History& history) {
  const bool is_misaligned = pointer % kObjectAlignment != 0;
  Report report = {is_misaligned ? Misuse::kMisalignedPointer : Misuse::kInteriorPointer, call, pointer, 0, 0, history};
  if (owner != nullptr && owner->kind == Kind::kSlab) {
    const auto& slab = *static_cast<const Slab*>(owner);
    const std::uint32_t bytes = slab.shape().bytes;
    const std::uint64_t inside = (pointer - slab.start) % bytes;
    if (inside != 0 && (pointer - slab.start) / bytes < slab.count()) {
      report.object = pointer - inside;
      report.bytes = bytes;
      return tell(report, begin_line(report) << (is_misaligned ? "not a multiple of 16; " : "") << inside
                                             << " bytes into a " << bytes << "-byte object (size class " << bytes
                                             << ") that starts at " << as_pointer(report.object));
    }
  } else if (owner != nullptr) {
    const auto& run = *static_cast<const Run*>(owner);
    report.object = run.start;
    report.bytes = run.bytes;
    return tell(report, begin_line(report) << (is_misaligned ? "not a multiple of 16; " : "") << pointer - run.start
                                           << " bytes into a block of " << run.bytes << " bytes that starts at "
                                           << as_pointer(run.start));
  }
  if (is_misaligned) return tell(report, begin_line(report) << "not a multiple of 16");
  report.kind = was_used ? Misuse::kDoubleFree : Misuse::kForeignPointer;
  tell(report, begin_line(report) << (was_used ? "its memory was already given back, or never allocated"
                                               : "not from this heap"));
}

void report_overflow(std::uint64_t object, std::size_t usable, std::size_t offset) {
  const Report report = {Misuse::kBufferOverflow, "free", object, object, usable};
  tell(report, begin_line(report) << "the byte at " << as_pointer(object + usable + offset) << " was written to, "
                                  << std::uint64_t{offset} << (offset == 1 ? " byte" : " bytes")
                                  << " behind the end of the " << std::uint64_t{usable} << "-byte object "
                                  << as_pointer(object) << " to " << as_pointer(object + usable));
}

void report_written_when_free(std::uint64_t object, std::size_t usable, std::size_t offset) {
  const Report report = {Misuse::kUseAfterFree, "malloc", object, object, usable};
  tell(report, begin_line(report) << "the byte at " << as_pointer(object + offset) << " was written to, "
                                  << std::uint64_t{offset} << (offset == 1 ? " byte" : " bytes") << " into the "
                                  << std::uint64_t{usable} << "-byte object " << as_pointer(object) << " to "
                                  << as_pointer(object + usable) << ", while it was free");
}

void report_destroyed(const char* call, std::uint64_t pointer) {
  const Report report = {Misuse::kUseAfterDestroy, call, pointer};
  tell(report, begin_line(report) << "the heap of this block was destroyed");
}

void report_bad_heap(const char* call, std::uint64_t handle, bool was_heap) {
  const Report report = {was_heap ? Misuse::kUseAfterDestroy : Misuse::kForeignHeap, call, handle};
  tell(report, begin_line(report) << (was_heap ? "this heap was destroyed" : "there never was such a heap"));
}

void report_wrong_size(std::uint64_t pointer, std::size_t claimed, std::size_t usable) {
  const Report report = {Misuse::kWrongSize, "free_sized", pointer, pointer, usable};
  tell(report, Line() << "wrong size: free_sized(" << as_pointer(pointer) << ", " << std::uint64_t{claimed}
                      << "): the object is of size class " << std::uint64_t{usable});
}

void set_misuse_hook(MisuseHook chosen) {
  hook.store(chosen, std::memory_order_release);  // pairs with: decide() (what the program set up before)
}

std::uint64_t misuse_count() {
  std::uint64_t sum = 0;
  for (std::size_t kind = 0; kind < kMisuseKinds; ++kind) sum += misuse_count(static_cast<Misuse>(kind));
  return sum;
}

}  // namespace brimful::meta
