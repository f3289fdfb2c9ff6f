// SPDX-License-Identifier: MIT
//
// A program under a single-stepping debugger must still get through malloc and free.
//
// Each step is a stop in the kernel, and each stop aborts the restartable section it falls in: while it is
// stepped, a thread never commits one. So this runs the last resort of every path, for whole calls, from
// outside: a parent steps a child (PTRACE_SINGLESTEP) through 100 calls (20,000 with --long) and fails if one of them takes more
// than a generous number of instructions. The child frees its own objects and those that a helper thread (not
// stepped, alive all the time) allocated, allocates new ones, and checks contents and overlap between the
// windows, at full speed.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include <sys/mman.h>

#include "clock.h"
#include "machine_code.h"
#include "object.h"
#include "options.h"
#include "random.h"
#include "report.h"
#include "sections.h"
#include "shadow.h"
#include "subject.h"

namespace brimful::stress {
namespace {

constexpr unsigned kCalls = 100;
constexpr unsigned kLongCalls = 20'000;
constexpr unsigned kWindowFrees = 25;  // and as many allocations
constexpr uint64_t kMaxStepsPerCall = 2'000'000;
constexpr double kMaxSeconds = 280;
constexpr uint64_t kWatchedSteps = 100'000;  // how many are asked for their address: it costs a third of the time

// Seen by both processes.
struct Shared {
  std::atomic<bool> stepping;
  std::atomic<uint64_t> calls;
};
Shared* shared = nullptr;
cpu_set_t all_cpus;

// What the helper thread allocates for the child to free.
struct Helper {
  std::atomic<bool> wanted;
  std::atomic<bool> stop;
  uint64_t rounds;
  Random random;
  Object objects[kWindowFrees / 2];
};

Object adopt(void* address, size_t size, uint64_t id) {
  if (address == nullptr) fail(nullptr, 0, "NULL for %zu bytes", size);
  const Object object = {static_cast<std::byte*>(address), size, subject::usable_size(address), id, 0};
  const uintptr_t overlap = Shadow::claim(reinterpret_cast<uintptr_t>(address), object.usable);
  if (overlap != 0) fail(address, size, "%p (%zu bytes) overlaps a live object at %#zx", address, size, overlap);
  stamp(object);
  return object;
}

void disown(const Object& object) {
  const size_t damage = find_damage(object.address, object, object.size);
  if (damage != SIZE_MAX) {
    fail(object.address, object.size, "byte %zu of %p (%zu bytes) was overwritten", damage,
         static_cast<void*>(object.address), object.size);
  }
  Shadow::release(reinterpret_cast<uintptr_t>(object.address), object.usable);
}

size_t draw_size(Random& random) {
  if (random.one_in(200)) return random.between(40'000, 3'000'000);
  return random.one_in(8) ? random.between(1, 32'768) : random.between(1, 300);
}

void* run_helper(void* argument) {
  Helper& helper = *static_cast<Helper*>(argument);
  sched_setaffinity(0, sizeof all_cpus, &all_cpus);
  // relaxed: only says when to end.
  while (!helper.stop.load(std::memory_order_relaxed)) {
    // pairs with: ask_helper's release store (the objects may be overwritten).
    if (!helper.wanted.load(std::memory_order_acquire)) {
      sched_yield();
      continue;
    }
    for (Object& object : helper.objects) {
      const size_t size = draw_size(helper.random);
      object = adopt(subject::allocate(size), size, uint64_t{1} << 40 | ++helper.rounds);
    }
    // pairs with: ask_helper's acquire load (the objects).
    helper.wanted.store(false, std::memory_order_release);
  }
  return nullptr;
}

void ask_helper(Helper& helper) {
  // pairs with: run_helper's acquire load.
  helper.wanted.store(true, std::memory_order_release);
  // pairs with: run_helper's release store.
  while (helper.wanted.load(std::memory_order_acquire)) sched_yield();
}

// The stepped part: nothing but allocator calls, on arrays that were prepared before.
[[gnu::noinline]] void step_window(void* const* victims, const size_t* sizes, void** fresh) {
  shared->stepping.store(true, std::memory_order_relaxed);  // relaxed: the signal stops this thread right behind it.
  raise(SIGUSR1);
  for (unsigned i = 0; i < kWindowFrees; ++i) {
    subject::release(victims[i]);
    fresh[i] = subject::allocate(sizes[i]);
    // relaxed: a statistic for the parent, which looks while this thread is stopped.
    shared->calls.fetch_add(2, std::memory_order_relaxed);
  }
  shared->stepping.store(false,
                         std::memory_order_relaxed);  // relaxed: read by the parent while this is stopped.
}

[[noreturn]] void run_child(unsigned calls, uint64_t seed) {
  Shadow::initialize();
  Helper* helper = static_cast<Helper*>(map_zeroed(sizeof(Helper)));
  helper->random = Random(seed, 1);
  Random random(seed, 0);
  pthread_t thread;
  if (pthread_create(&thread, nullptr, run_helper, helper) != 0) fail(nullptr, 0, "pthread_create failed");

  constexpr unsigned kHeld = 400;
  static Object held[kHeld];
  uint64_t id = 0;
  for (Object& object : held) {
    const size_t size = draw_size(random);
    object = adopt(subject::allocate(size), size, ++id);
  }
  for (unsigned done = 0; done < calls; done += 2 * kWindowFrees) {
    ask_helper(*helper);
    void* victims[kWindowFrees];
    size_t sizes[kWindowFrees];
    void* fresh[kWindowFrees];
    unsigned places[kWindowFrees];
    const unsigned first = static_cast<unsigned>(random.below(kHeld));
    for (unsigned i = 0; i < kWindowFrees; ++i) {
      // Every other victim is the helper's; the new objects stay in the places of the own ones, or are freed
      // here.
      const bool own = i % 2 == 0;
      places[i] = own ? (first + i * 7) % kHeld : kHeld;
      const Object& victim = own ? held[places[i]] : helper->objects[i / 2];
      disown(victim);
      victims[i] = victim.address;
      sizes[i] = draw_size(random);
    }
    step_window(victims, sizes, fresh);
    for (unsigned i = 0; i < kWindowFrees; ++i) {
      const Object object = adopt(fresh[i], sizes[i], ++id);
      if (places[i] < kHeld) {
        held[places[i]] = object;
      } else {
        disown(object);
        subject::release(object.address);
      }
    }
  }
  helper->stop.store(true, std::memory_order_relaxed);  // relaxed: only says when to end.
  pthread_join(thread, nullptr);
  for (const Object& object : held) {
    disown(object);
    subject::release(object.address);
  }
  const size_t units = Shadow::count_live_units();
  if (units != 0) fail(nullptr, 0, "%zu units of shadow are live although everything is freed", units);
  _exit(0);
}

struct Count {
  uint64_t steps = 0;
  uint64_t most_steps = 0;
  uint64_t in_sections = 0;
  uint64_t by_section[SectionTable::kMaxSections] = {};
  uint64_t commits = 0;
  uintptr_t last_ip = 0;
};

// A stop inside a section is resumed at its abort handler, so only the first instruction's address is ever
// seen, and the end of a section only by a thread that nobody aborts (one without an rseq area).
void look(pid_t child, const SectionTable& table, Count* count) {
  if (table.count == 0 || count->steps > kWatchedSteps) return;
  const uintptr_t ip = instruction_pointer_of(child);
  for (size_t i = 0; i < table.count; ++i) {
    const Section& section = table.sections[i];
    count->in_sections += section.contains(ip);
    count->by_section[i] += section.contains(ip);
    count->commits += ip == section.end && section.contains(count->last_ip);
  }
  count->last_ip = ip;
}

// Steps the child until it says that the window is over.
void step_through(pid_t child, const SectionTable& table, Count* count, double end) {
  uint64_t since_call = 0;
  uint64_t calls = 0;
  int status = 0;
  // relaxed: the child is stopped; wait and ptrace order the two.
  while (shared->stepping.load(std::memory_order_relaxed)) {
    if (ptrace(PTRACE_SINGLESTEP, child, nullptr, nullptr) != 0 || waitpid(child, &status, __WALL) != child) {
      fail(nullptr, 0, "the child got lost while stepping (errno %d)", errno);
    }
    if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP) {
      kill(child, SIGKILL);
      fail(nullptr, 0, "wait status %#x while stepping, after %llu steps", status,
           static_cast<unsigned long long>(count->steps));
    }
    ++count->steps;
    ++since_call;
    // relaxed: see above.
    const uint64_t now = shared->calls.load(std::memory_order_relaxed);
    if (now != calls) since_call = 0;
    calls = now;
    count->most_steps = std::max(count->most_steps, since_call);
    look(child, table, count);
    if (since_call > kMaxStepsPerCall || (count->steps % 4096 == 0 && seconds_now() > end)) {
      kill(child, SIGKILL);
      fail(nullptr, 0, "a single-stepped call does not come to an end: %llu steps in it, %llu calls done",
           static_cast<unsigned long long>(since_call), static_cast<unsigned long long>(calls));
    }
  }
}

int skip(const char* reason) {
  say("stress: skipped: %s\n", reason);
  return 77;
}

int run_parent(pid_t child, const SectionTable& table, double seconds) {
  const double end = seconds_now() + seconds;
  Count count;
  int status = 0;
  while (waitpid(child, &status, __WALL) == child && WIFSTOPPED(status)) {
    int pass_on = WSTOPSIG(status);
    if (pass_on == SIGUSR1) {
      step_through(child, table, &count, end);
      pass_on = 0;
    } else if (pass_on == SIGSTOP || pass_on == SIGTRAP) {
      pass_on = 0;
    }
    ptrace(PTRACE_CONT, child, nullptr, pass_on);
  }
  // relaxed: the child has ended.
  const uint64_t calls = shared->calls.load(std::memory_order_relaxed);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) return skip("this system forbids ptrace");
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    fail(nullptr, 0, "the stepped child ended with wait status %#x after %llu calls", status,
         static_cast<unsigned long long>(calls));
  }
  say("stress: ok: %llu calls in %llu steps, at most %llu in one; %llu stops in sections, %llu commits\n",
      static_cast<unsigned long long>(calls), static_cast<unsigned long long>(count.steps),
      static_cast<unsigned long long>(count.most_steps), static_cast<unsigned long long>(count.in_sections),
      static_cast<unsigned long long>(count.commits));
  for (size_t i = 0; i < table.count; ++i) {
    if (count.by_section[i] == 0) continue;  // those behind a section that never commits can't be reached
    say("stress: %-28s stopped %llu times\n", table.sections[i].name,
        static_cast<unsigned long long>(count.by_section[i]));
  }
  if (calls == 0 || count.steps < calls) fail(nullptr, 0, "nothing was stepped");
  if (table.count > 0 && count.in_sections == 0) fail(nullptr, 0, "no section was ever stepped");
  return 0;
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  const Options options = parse_options(count, arguments, "Allocator calls under a single-stepping parent.");
  run_in_both_modes(arguments);
  static SectionTable table;  // empty where the build has no sections; then only the progress is checked
  if (const char* reason = read_sections(&table)) say("stress: sections are not watched: %s\n", reason);
  shared =
      static_cast<Shared*>(mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED) return skip("no shared memory");
  const unsigned calls = options.operations != 0 ? static_cast<unsigned>(options.operations)
                         : options.long_run      ? kLongCalls
                                                 : kCalls;
  // Parent and child take turns, so they share a CPU: a step is then one switch and no interrupt to another CPU.
  sched_getaffinity(0, sizeof all_cpus, &all_cpus);
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(sched_getcpu()), &one);
  sched_setaffinity(0, sizeof one, &one);
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
    run_child(calls, options.seed);
  }
  if (child < 0) return skip("fork failed");
  return run_parent(child, table, options.seconds != 0 ? options.seconds : options.long_run ? 3600 : kMaxSeconds);
}
