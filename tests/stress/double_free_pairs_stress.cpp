// SPDX-License-Identifier: MIT
//
// Two or three threads free one object at the same moment, many times over.
//
// An object is handed out once, the threads meet at a spin barrier, and each frees it. Between the frees nobody gets the
// object again: it would be live then, and the second free a right one. So a thread that allocates meanwhile does so from
// a slab of its own, or, where contexts are CPUs' and slabs therefore everybody's, from another class.
//
//   tier:hardened    of each object all frees but one are reported, no more and no fewer, before they return. Whoever is
//                    told comes back by siglongjmp from the SIGABRT handler, so that one process lives through all of
//                    them; afterwards the heap counts what it counted before and hands out nothing twice.
//   default tier     each object has a child of its own, which the report ends. It may come late: when the free is told,
//                    collected, or the slab given back, which the child brings about in the end. It must not hang, die of
//                    anything else, or be silent: the gap that docs/design/0011 names needs the object to be handed out
//                    again, or its slab to be given back while a free is pending.
//
// Linked with the test library in every build, because it restores what a report left of a slow path. Not for
// ThreadSanitizer: a second free that comes late reads the header of a slab that the first one gives back.
//
// Threads that have no processor do not meet: each racer keeps to one of its own while there are enough, and waits there
// without giving it up for as long as the scheduler lets it. Two that yield to each other on one busy processor were never
// both inside free in five minutes.
//
// Arguments: --ops N objects whose frees overlapped in time (default 30,000, --long 1,000,000; default tier: children, 600,
// --long 10,000); --seconds T ends it sooner (default 60, --long 7,000). It prints how many there were; the hardened tier
// counts as skipped if none did, because nothing was shown then.
#include <brimful/brimful.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <vector>

#include "alloc/allocate.h"
#include "arch/spin.h"
#include "classes/size_classes.h"
#include "clock.h"
#include "config/options.h"
#include "meta/granule_table.h"
#include "options.h"
#include "report.h"
#include "slots/thread.h"
#include "stats/snapshot.h"

namespace brimful::stress {
namespace {

constexpr size_t kSizes[] = {16, 64, 192, 1024, 4096, 32768};
constexpr size_t kOtherBytes = 2000;  // a class that no object of the test is of
constexpr unsigned kMostRacers = 3;
constexpr unsigned kMostObjects = 256;
constexpr unsigned kSpins = 5000;
constexpr double kPatience = 0.002;  // seconds of waiting on a processor of one's own, about a time slice
constexpr int kSkipped = 77;
constexpr unsigned kNoiseObjects = 24;
constexpr unsigned kHangSeconds = 60;

enum class Source { kOwner, kOthers, kDetached, kCentral };
constexpr const char* kSourceNames[] = {"the owner and others", "others only", "a detached slab", "a central slab"};

struct Case {
  Source source;
  unsigned racers;
  bool noise;
};
constexpr Case kCases[] = {
    {Source::kOwner, 2, false},   {Source::kOwner, 2, true},     {Source::kOthers, 2, false},
    {Source::kOthers, 2, true},   {Source::kDetached, 2, false}, {Source::kDetached, 2, true},
    {Source::kCentral, 2, false}, {Source::kCentral, 2, true},   {Source::kOthers, 3, true},
    {Source::kOwner, 3, false},
};

struct Span {
  double begin;
  double end;
};

// One class, one case, some objects. Sequentially consistent throughout: between the frees of one object nobody reads
// or writes any of it.
struct Round {
  Case what;
  size_t bytes;
  unsigned objects;
  std::atomic<unsigned> arrived{0};
  std::atomic<bool> noise_runs{false};
  std::atomic<bool> noise_stops{false};
  std::atomic<unsigned> reports[kMostObjects] = {};
  void* object[kMostObjects] = {};
  std::vector<void*> companions;
  Span spans[kMostRacers][kMostObjects] = {};
};

struct Racer {
  Round* round;
  unsigned number;
};

thread_local sigjmp_buf on_report;
thread_local bool may_be_told = false;

// A report to anybody else is a false alarm, and takes its default course.
void handle_abort(int) {
  if (may_be_told) siglongjmp(on_report, 1);
}

// true: the library reported a double free.
[[gnu::noinline]] bool is_reported(void* object) {
  const uint32_t depth = slots::thread_state.depth;
  const volatile bool told = sigsetjmp(on_report, 1) != 0;
  if (!told) {
    may_be_told = true;
    brimful_free(object);
  }
  may_be_told = false;
  slots::thread_state.depth = depth;  // the slow path that reported did not return
  return told;
}

cpu_set_t allowed_cpus() {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) fail(nullptr, 0, "sched_getaffinity failed");
  return cpus;
}

// The caller runs on the allowed processor of that number, if there is one for each of `racers`. Returns whether.
bool keep_to_own_cpu(unsigned number, unsigned racers) {
  const cpu_set_t allowed = allowed_cpus();
  if (static_cast<unsigned>(CPU_COUNT(&allowed)) < racers) return false;
  unsigned cpu = 0;
  for (unsigned left = number; !CPU_ISSET(cpu, &allowed) || left-- != 0;) ++cpu;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cpu, &own);
  return pthread_setaffinity_np(pthread_self(), sizeof own, &own) == 0;
}

// Waits until every racer has come `times` times.
void meet(Round& round, unsigned times, bool has_own_cpu) {
  round.arrived.fetch_add(1);
  const double until = has_own_cpu ? seconds_now() + kPatience : 0;
  for (unsigned spins = 0; round.arrived.load() < times * round.what.racers; ++spins) {
    const bool is_patient = spins < kSpins || seconds_now() < until;
    is_patient ? arch::spin_hint() : static_cast<void>(sched_yield());
  }
}

const Header* slab_of(void* object) { return meta::header_of(reinterpret_cast<uint64_t>(object)); }

// In the default tier the slab gets another object that stays: it must not be given back with the first free.
void allocate_objects(Round& round) {
  for (unsigned i = 0; i < round.objects; ++i) {
    for (;;) {
      round.object[i] = brimful_malloc(round.bytes);
      if (config::is_hardened()) break;
      round.companions.push_back(brimful_malloc(round.bytes));
      if (slab_of(round.companions.back()) == slab_of(round.object[i])) break;
      round.companions.push_back(round.object[i]);
    }
  }
}

void race(Round& round, unsigned racer) {
  const bool hardened = config::is_hardened();
  const bool has_own_cpu = keep_to_own_cpu(racer, round.what.racers);
  for (unsigned i = 0; i < round.objects; ++i) {
    meet(round, i + 1, has_own_cpu);
    Span& span = round.spans[racer][i];
    span.begin = seconds_now();
    if (hardened) {
      if (is_reported(round.object[i])) round.reports[i].fetch_add(1);
    } else {
      brimful_free(round.object[i]);
    }
    span.end = seconds_now();
  }
}

void* run_racer(void* argument) {
  const Racer& racer = *static_cast<Racer*>(argument);
  Round& round = *racer.round;
  brimful_free(brimful_malloc(kOtherBytes));
  std::vector<void*> rest;
  if (racer.number == 0 && (round.what.source == Source::kOwner || round.what.source == Source::kDetached)) {
    allocate_objects(round);
    // Until the slabs of all of them are full, and the next one is in use.
    const SizeClass& shape = kSizeClasses[class_of(round.bytes)];
    const size_t more = round.what.source == Source::kDetached ? shape.groups * kGroupObjects : 1;
    for (size_t i = 0; i < more; ++i) rest.push_back(brimful_malloc(round.bytes));
  }
  race(round, racer.number);
  for (void* object : rest) brimful_free(object);
  return nullptr;
}

// Leaves slabs with free and with live objects to the central index when it ends.
void* run_settler(void* argument) {
  Round& round = *static_cast<Round*>(argument);
  std::vector<void*> others;
  allocate_objects(round);
  for (unsigned i = 0; i < round.objects; ++i) others.push_back(brimful_malloc(round.bytes));
  for (void* object : others) brimful_free(object);
  return nullptr;
}

void* run_noise(void* argument) {
  Round& round = *static_cast<Round*>(argument);
  const size_t bytes = slots::is_per_cpu() ? kOtherBytes : round.bytes;
  void* anchor = brimful_malloc(bytes);  // keeps the slab: an empty one may be changed for the central one
  round.noise_runs.store(true);
  while (!round.noise_stops.load()) {
    void* mine[kNoiseObjects];
    for (void*& object : mine) object = brimful_malloc(bytes);
    for (void* object : mine) brimful_free(object);
    sched_yield();
  }
  brimful_free(anchor);
  return nullptr;
}

pthread_t start(void* (*body)(void*), void* argument) {
  pthread_t thread;
  const int error = pthread_create(&thread, nullptr, body, argument);
  if (error != 0) fail(nullptr, 0, "pthread_create failed with %d", error);
  return thread;
}

void run_round(Round& round) {
  pthread_t noise = {};
  if (round.what.noise) {
    noise = start(run_noise, &round);
    while (!round.noise_runs.load()) sched_yield();
  }
  if (round.what.source == Source::kOthers) allocate_objects(round);
  if (round.what.source == Source::kCentral) pthread_join(start(run_settler, &round), nullptr);
  Racer racers[kMostRacers];
  pthread_t threads[kMostRacers];
  for (unsigned i = 0; i < round.what.racers; ++i) {
    racers[i] = {&round, i};
    threads[i] = start(run_racer, &racers[i]);
  }
  for (unsigned i = 0; i < round.what.racers; ++i) pthread_join(threads[i], nullptr);
  round.noise_stops.store(true);
  if (round.what.noise) pthread_join(noise, nullptr);
}

// What lies in a magazine counts as live, so the magazines are emptied first.
uint64_t live_objects(size_t bytes) {
  alloc::trim();
  static stats::Snapshot snapshot;
  stats::take_snapshot(snapshot);
  return snapshot.classes[class_of(bytes)].live;
}

// The free objects of the class are handed out once each.
void check_distinct(size_t bytes) {
  constexpr size_t kMostBytes = size_t{16} << 20;
  std::vector<void*> all(std::min<size_t>(2 * kMostObjects, kMostBytes / bytes));
  for (void*& object : all) object = brimful_malloc(bytes);
  std::sort(all.begin(), all.end());
  const auto twice = std::adjacent_find(all.begin(), all.end());
  if (twice != all.end()) fail(*twice, bytes, "an object is handed out twice");
  for (void* object : all) brimful_free(object);
}

// Two of the object's frees ran at the same time.
bool overlaps(const Round& round, unsigned object) {
  for (unsigned i = 1; i < round.what.racers; ++i) {
    for (unsigned j = 0; j < i; ++j) {
      const Span& one = round.spans[i][object];
      const Span& other = round.spans[j][object];
      if (one.begin < other.end && other.begin < one.end) return true;
    }
  }
  return false;
}

std::unique_ptr<Round> make_round(const Case& what, size_t bytes, unsigned objects) {
  auto round = std::make_unique<Round>();
  round->what = what;
  round->bytes = bytes;
  round->objects = objects;
  return round;
}

struct Count {
  uint64_t objects = 0;
  uint64_t overlapping = 0;
  uint64_t reports = 0;
};

void race_hardened(const Case& what, size_t bytes, Count& count) {
  const auto round = make_round(what, bytes, kMostObjects);
  const uint64_t live = live_objects(bytes);
  run_round(*round);
  for (unsigned i = 0; i < round->objects; ++i) {
    const unsigned reports = round->reports[i].load();
    if (reports != what.racers - 1) {
      fail(round->object[i], bytes, "%u reports of %u frees of one object", reports, what.racers);
    }
    ++count.objects;
    count.overlapping += overlaps(*round, i) ? 1 : 0;
    count.reports += reports;
  }
  const uint64_t left = live_objects(bytes);
  if (left != live) {
    fail(nullptr, 0, "%llu live objects of %zu bytes before, %llu after", static_cast<unsigned long long>(live), bytes,
         static_cast<unsigned long long>(left));
  }
  check_distinct(bytes);
}

int run_hardened(uint64_t wanted, unsigned seconds) {
  const int silent = open("/dev/null", O_WRONLY);
  const int messages = dup(STDERR_FILENO);
  struct sigaction action = {};
  action.sa_handler = handle_abort;
  sigaction(SIGABRT, &action, nullptr);
  const double begin = seconds_now();
  Count sum;
  for (unsigned number = 0; sum.overlapping < wanted && seconds_now() < begin + seconds; ++number) {
    Count count;
    dup2(silent, STDERR_FILENO);
    race_hardened(kCases[number % std::size(kCases)], kSizes[number / std::size(kCases) % std::size(kSizes)], count);
    dup2(messages, STDERR_FILENO);
    sum.objects += count.objects;
    sum.overlapping += count.overlapping;
    sum.reports += count.reports;
  }
  if (sum.overlapping == 0) {
    say("stress: skipped: no two frees met in %u seconds: the threads never had a processor each\n", seconds);
    return kSkipped;
  }
  say("stress: ok: %llu objects freed by several threads at once (%llu overlapping in time), %llu double frees, each "
      "reported once; %.0f s\n",
      static_cast<unsigned long long>(sum.objects), static_cast<unsigned long long>(sum.overlapping),
      static_cast<unsigned long long>(sum.reports), seconds_now() - begin);
  return 0;
}

// A child frees one object, lets everything be told that is pending, and gives the slab back.
void race_in_child(const Case& what, size_t bytes) {
  alarm(kHangSeconds);
  const int silent = open("/dev/null", O_WRONLY);
  dup2(silent, STDERR_FILENO);
  const auto round = make_round(what, bytes, 1);
  run_round(*round);
  alloc::trim();
  for (void* object : round->companions) brimful_free(object);
  alloc::trim();
  _exit(0);
}

int run_default(uint64_t children, unsigned seconds) {
  const double end = seconds_now() + seconds;
  uint64_t silent[std::size(kSourceNames)] = {};
  uint64_t reported[std::size(kSourceNames)] = {};
  for (uint64_t number = 0; number < children && seconds_now() < end; ++number) {
    const Case& what = kCases[number % std::size(kCases)];
    const size_t bytes = kSizes[number / std::size(kCases) % std::size(kSizes)];
    const pid_t child = fork();
    if (child == 0) race_in_child(what, bytes);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) fail(nullptr, 0, "fork failed");
    const bool told = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
    if (!told && status != 0) fail(nullptr, 0, "a child with %zu bytes ended with wait status %#x", bytes, status);
    ++(told ? reported : silent)[static_cast<unsigned>(what.source)];
  }
  uint64_t all_silent = 0;
  for (unsigned i = 0; i < std::size(kSourceNames); ++i) {
    say("stress: freed by %-22s %6llu reported, %llu not\n", kSourceNames[i],
        static_cast<unsigned long long>(reported[i]), static_cast<unsigned long long>(silent[i]));
    all_silent += silent[i];
  }
  if (all_silent != 0) fail(nullptr, 0, "double frees without a report, although nothing was handed out again");
  return 0;
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  const Options options = parse_options(count, arguments, "Threads free one object at the same moment.");
  run_in_both_modes(arguments);
  brimful_free(brimful_malloc(1));
  const auto wanted = [&options](uint64_t usual, uint64_t longest) {
    return options.operations != 0 ? options.operations : options.long_run ? longest : usual;
  };
  const unsigned seconds = options.seconds != 0 ? options.seconds : options.long_run ? 7000 : 60;
  return brimful::config::is_hardened() ? run_hardened(wanted(30'000, 1'000'000), seconds)
                                        : run_default(wanted(600, 10'000), seconds);
}
