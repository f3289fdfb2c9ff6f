// SPDX-License-Identifier: MIT
//
// slots/background.h.
#include "slots/background.h"

#include <atomic>
#include <new>

#include "base/compiler.h"
#include "base/line.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/errno_guard.h"
#include "os/report.h"
#include "os/thread.h"
#include "pages/heap.h"
#include "pages/purger.h"
#include "slots/front_end.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::slots {

constinit std::atomic<std::uint32_t> thread_tries{0};

namespace {

// Of each 250 ms, what pages inside slabs may take of a processor: when the program has rested for a second, and before.
constexpr std::uint64_t kMostNsAtRest = 100'000'000;
constexpr std::uint64_t kMostNs = 10'000'000;
constexpr std::uint64_t kAtRestMs = 1000;
// With background_thread:auto, who has looked at the clock so lately purges by itself.
constexpr std::uint64_t kActiveMs = 100;
// A smaller heap is not worth a thread.
constexpr std::size_t kLeastBytes = std::size_t{4} << 20;
constexpr std::uint64_t kRestMs = 3000;
// Memory that can't be given back (mlock) must not keep the thread for ever.
constexpr std::uint64_t kMostRestMs = 10000;
// After pthread_create() has failed.
// A call that is no place for it says nothing about the next, but a program with no other calls shall not look each time.
constexpr std::uint32_t kTriesATick = 32;
constexpr std::uint64_t kRetryMs = 10000;
constexpr std::uint64_t kShortSleepMs = 10;
constexpr std::uint64_t kLongSleepMs = 250;

// In a page that is zero again in the child of a fork.
struct State {
  std::atomic<bool> is_running;
  std::atomic<std::uint64_t> active_ms;  // last tick of the program
  std::atomic<std::int64_t> process;     // whose page this is
};

constinit std::atomic<State*> state{nullptr};
constinit std::atomic<std::uint64_t> next_try_ms{0};
constinit std::atomic<bool> is_loaded{false};

// Before constructors run, the C library may not be ready for a thread.
__attribute__((constructor(101))) void note_loaded() {
  is_loaded.store(true, std::memory_order_relaxed);  // relaxed: the process has one thread
}

State* prepare_state() {
  State* known = state.load(std::memory_order_acquire);  // pairs with: the exchange below (the page)
  if (known != nullptr) return known;
  void* page = os::map_wiped_on_fork();
  if (page == nullptr) return nullptr;
  // pairs with: the load above (the page)
  if (state.compare_exchange_strong(known, static_cast<State*>(page), std::memory_order_acq_rel)) {
    return static_cast<State*>(page);
  }
  os::calls.unmap(reinterpret_cast<std::uintptr_t>(page), os::page_bytes());
  return known;
}

bool wants_threads_only() { return config::background_thread() == config::BackgroundThread::kAuto; }

std::uint64_t rest_ms(const State& now_state, std::uint64_t now_ms) {
  const std::uint64_t active = now_state.active_ms.load(std::memory_order_relaxed);  // relaxed: a rough age
  return now_ms > active ? now_ms - active : 0;
}

// A program that did not ask for the thread purges itself as long as it comes by.
bool leaves_it_to_program(const State& mine, std::uint64_t now_ms) {
  return wants_threads_only() && rest_ms(mine, now_ms) < kActiveMs;
}

// Everything that is due. Returns how long to sleep.
std::uint64_t work(std::uint64_t now_ms, bool is_at_rest) {
  const SlowScope scope;
  const std::size_t dirty = pages::purge_due(now_ms);
  reclaim_orphans();
  reclaim_idle(now_ms);
  purge_idle_pages(now_ms, is_at_rest ? kMostNsAtRest : kMostNs);
  if (dirty == 0) return kLongSleepMs;
  const std::int64_t delay_ms = pages::current_delay_ms();
  const std::uint64_t step_ms = delay_ms > 0 ? static_cast<std::uint64_t>(delay_ms) / 64 : 0;
  return step_ms < kShortSleepMs ? kShortSleepMs : step_ms > kLongSleepMs ? kLongSleepMs : step_ms;
}

// The program has a second thread, beside `own` ones of ours. At this moment: what it had and joined does not count.
bool has_threads(std::uint32_t own) { return os::thread_count() >= 2 + own; }

bool may_end(const State& mine, std::uint64_t now_ms) {
  if (config::options.background_thread == 0) return true;  // it was switched off meanwhile
  // The program's other threads have ended: perhaps it wants to be the only one.
  if (wants_threads_only() && !has_threads(1)) return true;
  const std::uint64_t rest = rest_ms(mine, now_ms);
  if (rest < kRestMs) return false;
  const std::int64_t delay_ms = pages::current_delay_ms();
  if (delay_ms < 0) return true;
  if (config::options.release_rate == 0 && rest > kMostRestMs + 4 * static_cast<std::uint64_t>(delay_ms)) return true;
  const sync::MutexLock guard(pages::heap.lock);
  return pages::heap.pages.stats().dirty_bytes == 0;
}

// The thread says that it is gone, and looks once more: a tick that came before then has relied on it.
bool end(State& mine, std::uint64_t seen_active_ms) {
  mine.is_running.store(false, std::memory_order_seq_cst);  // pairs with: keep_background_thread() (active_ms)
  // pairs with: as above
  if (mine.active_ms.load(std::memory_order_seq_cst) == seen_active_ms) return true;
  bool expected = false;
  // pairs with: as above; another thread may have been started
  return !mine.is_running.compare_exchange_strong(expected, true, std::memory_order_seq_cst);
}

void* run(void* /*unused*/) {
  State& mine = *state.load(std::memory_order_acquire);  // pairs with: prepare_state() (the page)
  thread_state.gone = true;                              // it needs no context
  for (;;) {
    const std::uint64_t seen = mine.active_ms.load(std::memory_order_relaxed);  // relaxed: looked at again in end()
    const std::uint64_t now_ms = os::calls.now_ms();
    const std::uint64_t sleep_ms =
        leaves_it_to_program(mine, now_ms) ? kActiveMs : work(now_ms, rest_ms(mine, now_ms) >= kAtRestMs);
    if (may_end(mine, now_ms)) {
      if (config::options.purge_delay_ms >= 0) {
        const SlowScope scope;
        purge_all_pages();
      }
      if (end(mine, seen)) return nullptr;
    }
    os::sleep_ms(sleep_ms);
  }
}

// Not for good: a process may be short of threads (pids.max) for a while.
void refuse(std::uint64_t now_ms, const char* reason, int error) {
  // relaxed: who misses it tries once more
  const bool is_first = next_try_ms.exchange(now_ms + kRetryMs, std::memory_order_relaxed) == 0;
  if (is_first && config::options.verbose != 0) {
    os::report(Line() << "no background thread: " << reason << ", error " << error);
  }
}

// No lock is held that pthread_create() takes, neither ours nor the C library's. A signal handler that interrupted one of
// its functions is not seen here, nor may it allocate by POSIX.
bool is_place_to_start(const void* caller, Call call) {
  if (thread_state.depth != 0) return false;
  const os::Code code = os::code_of(caller);
  return code == os::Code::kOther || (code == os::Code::kUnknown && call == Call::kMalloc);
}

bool is_worth_a_thread() {
  if (!pages::heap.lock.try_lock()) return false;
  const pages::PageStats stats = pages::heap.pages.stats();
  pages::heap.lock.unlock();
  return stats.used_bytes + stats.dirty_bytes >= kLeastBytes;
}

// Another process's thread of control on our memory: the child of vfork().
bool is_our_process(State& mine) {
  std::int64_t known = 0;
  const std::int64_t own = os::process_id();
  // relaxed: the number is all there is to know
  return mine.process.compare_exchange_strong(known, own, std::memory_order_relaxed) || known == own;
}

}  // namespace

bool has_background_thread() {
  if (config::background_thread() != config::BackgroundThread::kOn) return false;
  const State* mine = state.load(std::memory_order_acquire);  // pairs with: prepare_state()
  // relaxed: who is wrong purges once more, or at the next tick
  return mine != nullptr && mine->is_running.load(std::memory_order_relaxed);
}

void keep_background_thread(std::uint64_t now_ms) {
  if (config::options.background_thread == 0) return;
  // relaxed: it changes once
  if (!is_loaded.load(std::memory_order_relaxed)) return;
  if (wants_threads_only() && os::is_single_threaded()) return;
  State* mine = prepare_state();
  if (mine == nullptr) return refuse(now_ms, "no page that fork clears", 0);
  mine->active_ms.store(now_ms, std::memory_order_seq_cst);  // pairs with: end() (is_running)
  // pairs with: as above
  if (mine->is_running.load(std::memory_order_seq_cst) || !is_worth_a_thread()) return;
  // relaxed: a time to try again
  if (now_ms < next_try_ms.load(std::memory_order_relaxed)) return;
  thread_tries.store(kTriesATick, std::memory_order_relaxed);  // relaxed: who misses it leaves it to the next
}

BRIMFUL_COLD void start_background_thread(const void* caller, Call call) {
  const os::ErrnoGuard guard;
  const bool is_place = is_place_to_start(caller, call);
  const std::uint32_t tries = thread_tries.load(std::memory_order_relaxed);  // relaxed: as above
  // relaxed: two that try at once count as one
  thread_tries.store(is_place || tries == 0 ? 0 : tries - 1, std::memory_order_relaxed);
  if (!is_place) return;
  State* mine = state.load(std::memory_order_acquire);  // pairs with: prepare_state() (the page)
  if (mine == nullptr || !is_our_process(*mine) || (wants_threads_only() && !has_threads(0))) return;
  // pairs with: end() (there is one at a time)
  if (mine->is_running.exchange(true, std::memory_order_seq_cst)) return;
  int error = 0;
  {
    // What the C library allocates for the thread is nobody's current heap's, and comes from what malloc was offered before or
    // from the reserve of handlers: not from what was freed just now, of which a second free is to be found.
    const OutsideHeap outside;
    const SlowScope scope;
    error = os::start_thread(run, "brimful-purge");
  }
  if (error == 0) return;
  mine->is_running.store(false, std::memory_order_seq_cst);  // pairs with: as above
  refuse(os::calls.now_ms(), "it can't be started", error);
}

}  // namespace brimful::slots
