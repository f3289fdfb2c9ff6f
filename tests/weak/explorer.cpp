// SPDX-License-Identifier: MIT
//
// weak/explorer.h, and the calls that the compiler makes of accesses (-fsanitize=thread). Compiled without it.
#include "explorer.h"

#include <link.h>
#include <linux/futex.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <set>
#include <unordered_set>
#include <vector>

namespace brimful::weak {
namespace {

// In here, or before the first exploration: accesses are our own, and just done.
bool is_busy = true;

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kLongestRun = 20000;  // steps

struct Step {
  unsigned thread;
  const char* what;
  std::uintptr_t site;
  std::uintptr_t address;
  std::uint64_t value;
};

struct Fiber {
  ucontext_t start;
  jmp_buf at;
  bool is_new;
  bool is_done;
  std::uintptr_t waits_on;  // a futex
  char* stack;
  std::vector<char> tls;
};

// What was said about a location by the runs so far.
struct Sharing {
  unsigned readers = 0;
  unsigned writers = 0;
  bool is_known = false;  // shared, in this pass
  [[nodiscard]] bool is_shared() const {
    const unsigned all = readers | writers;
    return writers != 0 && (all & (all - 1)) != 0;
  }
};

class Explorer final : public Chooser {
 public:
  Explorer() : memory_(*this) {
    find_tls();
    for (Fiber& fiber : fibers_) {
      fiber.stack = static_cast<char*>(
          mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      if (fiber.stack == MAP_FAILED) abort();
    }
    pristine_ = save_tls();
  }

  Result explore(const Scenario& scenario, Bounds bounds, std::uint64_t most_runs);

  unsigned choose_value(unsigned count) override {
    if (!is_choosing_) return 0;
    if (stale_left_ == 0) return 0;
    const unsigned chosen = choose(count);
    if (chosen != 0) --stale_left_;
    return chosen;
  }

  // --- accesses of the code

  // Whether others come to this location, too. One that nobody else comes to, or that nobody writes, holds one value.
  bool begin(std::uintptr_t site, std::uintptr_t address, unsigned bytes, bool is_write) {
    note_site(site);
    step_count_++;
    if (step_count_ > kLongestRun) leave("a run that does not end");
    Sharing& sharing = sharing_[address];
    (is_write ? sharing.writers : sharing.readers) |= 1U << current_;
    if (!sharing.is_known && sharing.is_shared()) is_news_ = true;
    is_choosing_ = sharing.is_known;
    if (sharing.is_known) point();
    if (is_write) log(address, bytes);
    if (!sharing.is_known) memory_.touch(current_, address, bytes, is_write);
    return sharing.is_known;
  }
  void finish(const char* what, std::uintptr_t site, std::uintptr_t address, std::uint64_t value) {
    if (is_tracing_) steps_.push_back({current_, what, site, address, value});
    if (!memory_.fault().empty()) leave(memory_.fault());
  }

  std::uint64_t load(std::uintptr_t site, std::uintptr_t address, unsigned bytes, Order order) {
    const bool is_shared = begin(site, address, bytes, false);
    const std::uint64_t value =
        is_shared ? memory_.load(current_, address, bytes, order_at(site, order)) : read_cell(address, bytes);
    finish("load", site, address, value);
    return value;
  }
  void store(std::uintptr_t site, std::uintptr_t address, unsigned bytes, std::uint64_t value, Order order) {
    if (begin(site, address, bytes, true)) {
      memory_.store(current_, address, bytes, value, order_at(site, order));
    } else {
      write_cell(address, bytes, value);
    }
    finish("store", site, address, value);
  }
  template <class Change>
  std::uint64_t modify(std::uintptr_t site, std::uintptr_t address, unsigned bytes, Order order, Change change) {
    const bool is_shared = begin(site, address, bytes, true);
    std::uint64_t before;
    if (is_shared) {
      before = memory_.modify(current_, address, bytes, order_at(site, order), change);
    } else {
      before = read_cell(address, bytes);
      write_cell(address, bytes, change(before));
    }
    finish("modify, found", site, address, before);
    return before;
  }
  bool compare_exchange(std::uintptr_t site, std::uintptr_t address, unsigned bytes, std::uint64_t& expected,
                        std::uint64_t value, Order success, Order failure) {
    const bool is_shared = begin(site, address, bytes, true);
    const auto weaker = weakened_.find(site);
    if (weaker != weakened_.end()) {
      success = weaker->second;
      if (failure > success) failure = success == Order::kAcquire ? Order::kAcquire : Order::kRelaxed;
    }
    bool done;
    if (is_shared) {
      done = memory_.compare_exchange(current_, address, bytes, expected, value, success, failure);
    } else {
      const std::uint64_t found = read_cell(address, bytes);
      done = found == expected;
      if (done) write_cell(address, bytes, value);
      expected = found;
    }
    finish(done ? "exchange" : "exchange failed, found", site, address, done ? value : expected);
    return done;
  }
  void fence(std::uintptr_t site, Order order) {
    note_site(site);
    const auto weaker = weakened_.find(site);
    if (weaker != weakened_.end()) order = weaker->second;
    if (order == Order::kSeqCst) point();
    if (order != Order::kRelaxed) memory_.fence(current_, order);
    finish("fence", site, 0, static_cast<std::uint64_t>(order));
  }
  void access(std::uintptr_t site, std::uintptr_t address, std::size_t bytes, bool is_write) {
    if (is_on_stack(address) || is_thread_local(address)) return;
    if (is_write) log(address, bytes);
    if (!is_active_) return;
    memory_.access(current_, address, bytes, is_write);
    if (!memory_.fault().empty()) finish(is_write ? "plain write" : "plain read", site, address, 0);
  }
  // Before a write outside of the model, too: it has to be undone.
  void log(std::uintptr_t address, std::size_t bytes) {
    if (!is_logging_ || is_on_stack(address) || is_thread_local(address)) return;
    for (std::uintptr_t word = address & ~std::uintptr_t{7}; word < address + bytes; word += 8) {
      if (!logged_.insert(word).second) continue;
      std::uint64_t value;
      std::memcpy(&value, reinterpret_cast<void*>(word), 8);
      undo_.push_back({word, value});
    }
  }

  // A thread that waits for the futex, or leaves its processor to others.
  long futex_wait(std::uintptr_t address, std::uint32_t value) {
    std::uint32_t now;
    std::memcpy(&now, reinterpret_cast<void*>(address), 4);
    if (now != value) return -1;
    fibers_[current_].waits_on = address;
    switch_from_blocked();
    return 0;
  }
  long futex_wake(std::uintptr_t address) {
    for (unsigned t = 0; t < threads_; ++t) {
      if (fibers_[t].waits_on != address) continue;
      fibers_[t].waits_on = 0;
      return 1;
    }
    return 0;
  }
  void yield() {
    if (!is_active_) return;
    std::vector<unsigned> others = others_that_can_go_on();
    if (others.empty()) return;
    others.push_back(current_);
    switch_to(others[choose(static_cast<unsigned>(others.size()))]);
  }

  // What a run shows that came upon a location it did not take for shared means nothing: the next pass knows better.
  [[noreturn]] void sleep() { end_fiber(); }
  [[noreturn]] void leave(const std::string& fault) {
    if (fault_.empty() && !is_news_) fault_ = fault;
    is_active_ = false;
    longjmp(main_, 1);
  }
  void fail(const std::string& fault) {
    if (is_active_) leave(fault);
    if (fault_.empty()) fault_ = fault;
  }

  void note_site(std::uintptr_t site) { sites_.insert(site); }
  Order order_at(std::uintptr_t site, Order order) const {
    const auto weaker = weakened_.find(site);
    return weaker != weakened_.end() ? weaker->second : order;
  }

  [[nodiscard]] bool is_active() const { return is_active_; }
  void weaken(std::uintptr_t site, Order order) { weakened_[site] = order; }
  void trace() { is_tracing_ = true; }
  void print_sites() const {
    for (const std::uintptr_t site : sites_) std::printf("site %lx\n", static_cast<unsigned long>(site));
  }
  void print_steps() const {
    for (const Step& step : steps_) {
      std::printf("  thread %u: %-22s %lx = %lx   @%lx\n", step.thread, step.what,
                  static_cast<unsigned long>(step.address), static_cast<unsigned long>(step.value),
                  static_cast<unsigned long>(step.site));
    }
  }

 private:
  struct Choice {
    unsigned count;
    unsigned next;
  };
  struct Undo {
    std::uintptr_t address;
    std::uint64_t value;
  };

  unsigned choose(unsigned count) {
    if (count == 1) return 0;
    if (depth_ < path_.size()) {
      if (path_[depth_].count != count) {
        std::fprintf(stderr, "the run is not the same again: %u alternatives, %u before\n", count, path_[depth_].count);
        _exit(3);
      }
      return path_[depth_++].next;
    }
    path_.push_back({count, 0});
    ++depth_;
    return 0;
  }

  // Somebody else may go on here.
  void point() {
    if (depth_ >= path_.size()) {
      std::uint64_t state = memory_.hash() * 4 + current_;
      state = (state ^ preemptions_left_ * 0x9E3779B97F4A7C15u ^ stale_left_ * 0xC2B2AE3D27D4EB4Fu) * 0xBF58476D1CE4E5B9u;
      for (unsigned t = 0; t < threads_; ++t) state = state * 31 + (fibers_[t].is_done ? 1 : 0) + (fibers_[t].waits_on != 0 ? 2 : 0);
      if (!seen_.insert(state).second) {
        is_active_ = false;
        longjmp(main_, 2);
      }
    }
    if (preemptions_left_ == 0) return;
    const std::vector<unsigned>& others = others_that_can_go_on();
    const unsigned chosen = choose(static_cast<unsigned>(others.size()) + 1);
    if (chosen == 0) return;
    --preemptions_left_;
    switch_to(others[chosen - 1]);
  }
  const std::vector<unsigned>& others_that_can_go_on() {
    others_.clear();
    for (unsigned t = 0; t < threads_; ++t) {
      if (t != current_ && !fibers_[t].is_done && fibers_[t].waits_on == 0) others_.push_back(t);
    }
    return others_;
  }
  void switch_from_blocked() {
    const std::vector<unsigned>& others = others_that_can_go_on();
    if (others.empty()) leave("deadlock");
    switch_to(others[choose(static_cast<unsigned>(others.size()))]);
  }
  void switch_to(unsigned next) {
    if (next == current_) return;
    const unsigned own = current_;
    load_tls(next, own);
    current_ = next;
    const bool was_choosing = is_choosing_;
    if (_setjmp(fibers_[own].at) == 0) enter(next);
    is_choosing_ = was_choosing;
    is_busy = true;
  }
  [[noreturn]] void enter(unsigned next) {
    if (fibers_[next].is_new) {
      fibers_[next].is_new = false;
      setcontext(&fibers_[next].start);
    } else {
      _longjmp(fibers_[next].at, 1);
    }
    abort();
  }
  static void begin_fiber();
  void run_fiber() {
    is_busy = false;
    scenario_->run(current_);
    is_busy = true;
    end_fiber();
  }
  // Its end, or a sleep, which lasts longer than the run.
  [[noreturn]] void end_fiber() {
    fibers_[current_].is_done = true;
    const std::vector<unsigned>& others = others_that_can_go_on();
    if (others.empty()) {
      for (unsigned t = 0; t < threads_; ++t) {
        if (!fibers_[t].is_done) leave("deadlock");
      }
      is_active_ = false;
      longjmp(main_, 3);
    }
    const unsigned next = others[choose(static_cast<unsigned>(others.size()))];
    load_tls(next, current_);
    current_ = next;
    enter(next);
  }

  bool one_run();
  // Code of a scenario, whose accesses are not modelled but put back.
  template <class Code>
  void outside_of_here(Code code) {
    is_busy = false;
    code();
    is_busy = true;
  }
  bool next_path() {
    while (!path_.empty() && path_.back().next + 1 >= path_.back().count) path_.pop_back();
    if (path_.empty()) return false;
    ++path_.back().next;
    return true;
  }
  void put_back() {
    for (std::size_t i = undo_.size(); i-- > 0;) {
      std::memcpy(reinterpret_cast<void*>(undo_[i].address), &undo_[i].value, 8);
    }
    undo_.clear();
    logged_.clear();
  }

  void find_tls() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* self) {
          auto* explorer = static_cast<Explorer*>(self);
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_tls_data == nullptr) continue;
            explorer->tls_ = static_cast<char*>(info->dlpi_tls_data);
            explorer->tls_bytes_ = info->dlpi_phdr[i].p_memsz;
          }
          return 1;  // the first is the program itself
        },
        this);
  }
  std::vector<char> save_tls() const { return {tls_, tls_ + tls_bytes_}; }
  void load_tls(unsigned next, unsigned own) {
    std::memcpy(fibers_[own].tls.data(), tls_, tls_bytes_);
    std::memcpy(tls_, fibers_[next].tls.data(), tls_bytes_);
  }
  [[nodiscard]] bool is_thread_local(std::uintptr_t address) const {
    // The C library's, too (errno): all fibers run in one of its threads.
    const auto end = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer()) + 4096;
    return end - address <= std::uintptr_t{64} << 10;
  }
  [[nodiscard]] bool is_on_stack(std::uintptr_t address) const {
    for (const Fiber& fiber : fibers_) {
      if (address - reinterpret_cast<std::uintptr_t>(fiber.stack) < kStackBytes) return true;
    }
    const auto here = reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0));
    return !is_active_ && address - here < (std::uintptr_t{1} << 20);
  }

 public:
  std::set<std::string> outcomes;

 private:
  Memory memory_;
  const Scenario* scenario_ = nullptr;
  unsigned threads_ = 0;
  unsigned current_ = 0;
  Bounds bounds_ = {};
  unsigned preemptions_left_ = 0;
  unsigned stale_left_ = 0;
  bool is_active_ = false;
  bool is_logging_ = false;
  bool is_choosing_ = false;
  bool is_news_ = false;
  bool is_tracing_ = false;
  std::size_t step_count_ = 0;
  std::string fault_;
  Fiber fibers_[kMostThreads];
  jmp_buf main_;
  char* tls_ = nullptr;
  std::size_t tls_bytes_ = 0;
  std::vector<char> pristine_;
  std::vector<char> images_[kMostThreads];
  std::vector<unsigned> others_;
  std::vector<Choice> path_;
  std::size_t depth_ = 0;
  std::unordered_set<std::uint64_t> seen_;
  std::unordered_map<std::uintptr_t, Sharing> sharing_;
  std::unordered_set<std::uintptr_t> logged_;
  std::vector<Undo> undo_;
  std::map<std::uintptr_t, Order> weakened_;
  std::unordered_set<std::uintptr_t> sites_;
  std::vector<Step> steps_;
};

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

std::uintptr_t address_of(const volatile void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

// Our own accesses, and those of a thread that the explorer does not run, are what they are.
bool is_modelled() { return !is_busy && explorer().is_active(); }

class Busy {
 public:
  Busy() { is_busy = true; }
  ~Busy() { is_busy = was_; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  const bool was_ = is_busy;
};

void plain(std::uintptr_t site, const volatile void* pointer, std::size_t bytes, bool is_write) {
  if (is_busy) return;
  const Busy busy;
  explorer().access(site, address_of(pointer), bytes, is_write);
}

void outside(const volatile void* pointer, std::size_t bytes) {
  if (is_busy) return;
  const Busy busy;
  explorer().log(address_of(pointer), bytes);
}

}  // namespace

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

// What the compiler calls (gcc/tsan.def).
using namespace brimful::weak;
#define SITE reinterpret_cast<std::uintptr_t>(__builtin_return_address(0))

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}

#define PLAIN(bytes)                                                                          \
  void __tsan_read##bytes(void* p) { plain(SITE, p, bytes, false); }                          \
  void __tsan_write##bytes(void* p) { plain(SITE, p, bytes, true); }                          \
  void __tsan_unaligned_read##bytes(void* p) { plain(SITE, p, bytes, false); }                \
  void __tsan_unaligned_write##bytes(void* p) { plain(SITE, p, bytes, true); }                \
  void __tsan_volatile_read##bytes(void* p) { plain(SITE, p, bytes, false); }                 \
  void __tsan_volatile_write##bytes(void* p) { plain(SITE, p, bytes, true); }
PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)
void __tsan_read_range(void* p, std::size_t bytes) { plain(SITE, p, bytes, false); }
void __tsan_write_range(void* p, std::size_t bytes) { plain(SITE, p, bytes, true); }
void __tsan_vptr_update(void** p, void*) { plain(SITE, p, 8, true); }
void __tsan_vptr_read(void** p) { plain(SITE, p, 8, false); }

#define MODIFY(bits, type, name, expression)                                                                       \
  type __tsan_atomic##bits##_##name(volatile type* p, type v, int order) {                                         \
    if (!is_modelled()) {                                                                                          \
      outside(p, bits / 8);                                                                                        \
      const type b = *p;                                                                                           \
      *p = static_cast<type>(expression);                                                                          \
      return b;                                                                                                    \
    }                                                                                                              \
    const Busy busy;                                                                                               \
    return static_cast<type>(explorer().modify(SITE, address_of(p), bits / 8, static_cast<Order>(order),           \
                                               [v](std::uint64_t b) -> std::uint64_t { return expression; }));     \
  }
#define ATOMIC(bits, type)                                                                                         \
  type __tsan_atomic##bits##_load(const volatile type* p, int order) {                                             \
    if (!is_modelled()) return *p;                                                                                 \
    const Busy busy;                                                                                               \
    return static_cast<type>(explorer().load(SITE, address_of(p), bits / 8, static_cast<Order>(order)));           \
  }                                                                                                                \
  void __tsan_atomic##bits##_store(volatile type* p, type v, int order) {                                          \
    if (!is_modelled()) {                                                                                          \
      outside(p, bits / 8);                                                                                        \
      *p = v;                                                                                                      \
      return;                                                                                                      \
    }                                                                                                              \
    const Busy busy;                                                                                               \
    explorer().store(SITE, address_of(p), bits / 8, static_cast<std::uint64_t>(v), static_cast<Order>(order));     \
  }                                                                                                                \
  MODIFY(bits, type, exchange, (static_cast<void>(b), v))                                                          \
  MODIFY(bits, type, fetch_add, b + v)                                                                             \
  MODIFY(bits, type, fetch_sub, b - v)                                                                             \
  MODIFY(bits, type, fetch_and, b& v)                                                                              \
  MODIFY(bits, type, fetch_or, b | v)                                                                              \
  MODIFY(bits, type, fetch_xor, b ^ v)                                                                             \
  static int compare_exchange##bits(std::uintptr_t site, volatile type* p, type* expected, type v, int success,    \
                                    int failure) {                                                                 \
    if (!is_modelled()) {                                                                                          \
      outside(p, bits / 8);                                                                                        \
      const type b = *p;                                                                                           \
      if (b == *expected) {                                                                                        \
        *p = v;                                                                                                    \
        return 1;                                                                                                  \
      }                                                                                                            \
      *expected = b;                                                                                               \
      return 0;                                                                                                    \
    }                                                                                                              \
    const Busy busy;                                                                                               \
    std::uint64_t found = *expected;                                                                               \
    const bool done = explorer().compare_exchange(site, address_of(p), bits / 8, found, v,                         \
                                                  static_cast<Order>(success), static_cast<Order>(failure));       \
    *expected = static_cast<type>(found);                                                                          \
    return done ? 1 : 0;                                                                                           \
  }                                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* p, type* e, type v, int s, int f) {             \
    return compare_exchange##bits(SITE, p, e, v, s, f);                                                            \
  }                                                                                                                \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* p, type* e, type v, int s, int f) {               \
    return compare_exchange##bits(SITE, p, e, v, s, f);                                                            \
  }
ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned int)
ATOMIC(64, unsigned long)

void __tsan_atomic_thread_fence(int order) {
  if (!is_modelled()) return;
  const Busy busy;
  explorer().fence(SITE, static_cast<Order>(order));
}
// A thread has one fiber and no signal handlers.
void __tsan_atomic_signal_fence(int) {}

// Calls of the C library that write memory or wait (linked with --wrap).
void* __real_memset(void*, int, std::size_t);
void* __real_memcpy(void*, const void*, std::size_t);
void* __real_memmove(void*, const void*, std::size_t);
void* __wrap_memset(void* to, int value, std::size_t bytes) {
  plain(SITE, to, bytes, true);
  return __real_memset(to, value, bytes);
}
void* __wrap_memcpy(void* to, const void* from, std::size_t bytes) {
  plain(SITE, from, bytes, false);
  plain(SITE, to, bytes, true);
  return __real_memcpy(to, from, bytes);
}
void* __wrap_memmove(void* to, const void* from, std::size_t bytes) {
  plain(SITE, from, bytes, false);
  plain(SITE, to, bytes, true);
  return __real_memmove(to, from, bytes);
}

long __real_syscall(long, ...);
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  long a[6];
  for (long& one : a) one = va_arg(list, long);
  va_end(list);
  if (is_modelled()) {
    const Busy busy;
    if (number == SYS_nanosleep || number == SYS_clock_nanosleep) explorer().sleep();
    if (number == SYS_futex) {
      const auto address = static_cast<std::uintptr_t>(a[0]);
      if ((a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT) return explorer().futex_wait(address, static_cast<std::uint32_t>(a[2]));
      return explorer().futex_wake(address);
    }
  }
  return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

[[noreturn]] void __real_abort();
[[noreturn]] void __wrap_abort() {
  if (is_modelled()) {
    is_busy = true;
    explorer().leave("the library ends the process");
  }
  __real_abort();
}

}  // extern "C"
