// SPDX-License-Identifier: MIT
//
// The threads of a stress run; see crew.h.
#include "crew.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>

#include "clock.h"
#include "live.h"
#include "oracle.h"
#include "shadow.h"
#include "subject.h"
#include "workload.h"

namespace brimful::stress {
namespace {

constexpr unsigned kMaxThreads = 250;  // with the guests they fit into the table of report.cpp
constexpr double kHangSeconds = 60;
constexpr uint64_t kGuestOperations = 3000;
constexpr size_t kKeptByGuest = 48;
constexpr unsigned kGuests = 2;
constexpr unsigned kRoundsPerFork = 32;
constexpr unsigned kForkedSeconds = 60;
constexpr size_t kTolerance = 64 << 10;
constexpr double kLeakSeconds = 5;
constexpr uint64_t kNoLimit = uint64_t{1} << 62;

struct Member {
  Role role;
  bool is_host;
};
constexpr Member kMembers[] = {{Role::kMixer, false},    {Role::kMixer, false}, {Role::kConsumer, false},
                               {Role::kProducer, false}, {Role::kMixer, false}, {Role::kMixer, true}};

Options options;
PostOffice* office = nullptr;
Worker* workers = nullptr;  // options.threads of them, then the guests' records, then one for the final clearing
pthread_t threads[kMaxThreads + 1];  // the workers' and the storm's
pthread_key_t guest_key;
std::atomic<pid_t>* thread_ids = nullptr;
std::atomic<uint64_t> streams = 0;
std::atomic<uint64_t> guests_run = 0;
std::atomic<uint64_t> forks_done = 0;
std::atomic<uint64_t> moves_done = 0;
size_t live_before = 0;
double last_progress = 0;
uint64_t last_operations = 0;

unsigned worker_count() { return options.threads + kGuests + 1; }

uint64_t next_stream() {
  // relaxed: only has to be unique.
  return streams.fetch_add(1, std::memory_order_relaxed);
}

bool is_stopped() {
  // relaxed: only says when to end; the join orders the rest.
  return totals.stop.load(std::memory_order_relaxed);
}

void register_thread(unsigned index) {
  // relaxed: the storm may use an old id, then sched_setaffinity fails or hits a newer thread: both harmless.
  thread_ids[index].store(gettid(), std::memory_order_relaxed);
}

void* run_worker(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  register_thread(worker->oracle().index());
  worker->run(kNoLimit);
  return nullptr;
}

// The guest's TLS destructor: runs after the thread's function, frees what the guest still holds.
void clear_guest(void* argument) { static_cast<Worker*>(argument)->drain(); }

void* run_guest(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  register_thread(worker->oracle().index());
  pthread_setspecific(guest_key, worker);
  worker->run(kGuestOperations);
  worker->hand_over_all(kKeptByGuest);
  return nullptr;
}

// Goes on allocating in a forked child, where only this thread is left.
void run_forked(Worker& worker) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(kForkedSeconds);  // a child that hangs dies by SIGALRM, which the parent reports
    worker.forget_office();
    worker.run(2000);
    worker.drain();
    _exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return;  // out of processes: not the allocator's fault
  if (status != 0) fail(nullptr, 0, "a forked child ended with wait status %#x", status);
  forks_done.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic.
}

void start_thread(pthread_t* thread, void* (*body)(void*), void* argument) {
  const int error = pthread_create(thread, nullptr, body, argument);
  if (error != 0) fail(nullptr, 0, "pthread_create failed with %d", error);
}

void* run_host(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  register_thread(worker->oracle().index());
  Worker* guests = workers + options.threads;
  for (unsigned round = 1; !is_stopped(); ++round) {
    pthread_t guest_threads[kGuests];
    for (unsigned i = 0; i < kGuests; ++i) {
      guests[i].initialize(options.threads + i, next_stream(), options.seed, Role::kGuest, office);
      start_thread(&guest_threads[i], run_guest, &guests[i]);
    }
    for (const pthread_t thread : guest_threads) pthread_join(thread, nullptr);
    guests_run.fetch_add(kGuests, std::memory_order_relaxed);  // relaxed: a statistic.
    worker->run(500);
    if (options.fork && round % kRoundsPerFork == 0) run_forked(*worker);
  }
  return nullptr;
}

void move_thread(unsigned index, const cpu_set_t& set) {
  // relaxed: see register_thread.
  const pid_t thread = thread_ids[index].load(std::memory_order_relaxed);
  if (thread == 0 || sched_setaffinity(thread, sizeof set, &set) != 0) return;
  // relaxed: a statistic, written by the storm alone.
  moves_done.store(moves_done.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

size_t draw_cpu(Random& random, const cpu_set_t& allowed) {
  size_t cpu = random.below(CPU_SETSIZE);
  while (!CPU_ISSET(cpu, &allowed)) cpu = (cpu + 1) % CPU_SETSIZE;
  return cpu;
}

// One CPU, or with it each other that is allowed with a chance of one in `others` (0: none).
cpu_set_t draw_mask(Random& random, const cpu_set_t& allowed, uint64_t others) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(draw_cpu(random, allowed), &set);
  for (size_t cpu = 0; others != 0 && cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed) && random.one_in(others)) CPU_SET(cpu, &set);
  }
  return set;
}

// Everybody onto one CPU for a while, then free to run anywhere.
void herd(Random& random, const cpu_set_t& allowed) {
  const cpu_set_t one = draw_mask(random, allowed, 0);
  for (unsigned i = 0; i < worker_count(); ++i) move_thread(i, one);
  sleep_microseconds(static_cast<long>(random.between(1000, 20'000)));
  for (unsigned i = 0; i < worker_count(); ++i) move_thread(i, allowed);
}

// Moves a random worker to a random CPU, or frees it to run anywhere, every millisecond or so; a fierce storm does not
// wait.
void* run_storm(void*) {
  Random random(options.seed, ~uint64_t{0});
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  while (!is_stopped()) {
    const auto index = static_cast<unsigned>(random.below(worker_count()));
    if (!options.fierce_storm) {
      move_thread(index, random.one_in(4) ? allowed : draw_mask(random, allowed, 0));
      sleep_microseconds(static_cast<long>(random.between(50, 1500)));
    } else if (random.one_in(2000)) {
      herd(random, allowed);
    } else {
      move_thread(index, draw_mask(random, allowed, random.one_in(2) ? 2 : 0));
      if (random.one_in(16)) sleep_microseconds(static_cast<long>(random.between(1, 100)));
    }
  }
  return nullptr;
}

// Everything that was allocated must be freed once, and nobody may hold a byte then.
void balance() {
  Worker& cleaner = workers[worker_count() - 1];
  set_current_oracle(&cleaner.oracle());
  for (unsigned i = 0; i < worker_count(); ++i) workers[i].drain();
  while (cleaner.receive(~size_t{0}) > 0) {
  }
  uint64_t allocated = 0;
  uint64_t released = 0;
  for (unsigned i = 0; i < worker_count(); ++i) {
    allocated += workers[i].oracle().allocated();
    released += workers[i].oracle().released();
  }
  if (allocated != released) {
    fail(nullptr, 0, "%llu objects allocated, %llu freed", static_cast<unsigned long long>(allocated),
         static_cast<unsigned long long>(released));
  }
  const size_t units = Shadow::count_live_units();
  if (units != 0) fail(nullptr, 0, "%zu units of shadow are live although everything is freed", units);
}

// The allocator must come to the same result: nothing is live but what was before, and what the threads left
// in the C library's caches. Frees that wait in other contexts are told when these have been idle for a
// second.
void check_leaks() {
  const size_t limit = live_before + kTolerance;
  const double end = seconds_now() + kLeakSeconds;
  size_t live;
  do {
    subject::release(subject::allocate(1));
    trim();
    live = live_bytes();
    if (live <= limit) return;
    sleep_microseconds(50'000);
  } while (seconds_now() < end);
  fail(nullptr, 0, "everything is freed, but the allocator counts %zu live bytes; before the run %zu", live,
       live_before);
}

}  // namespace

void Crew::start(const Options& chosen) {
  options = chosen;
  subject::release(subject::allocate(1));
  live_before = live_bytes();
  Shadow::initialize();
  office = static_cast<PostOffice*>(map_zeroed(sizeof(PostOffice)));
  office->initialize();
  workers = static_cast<Worker*>(map_zeroed(worker_count() * sizeof(Worker)));
  thread_ids = static_cast<std::atomic<pid_t>*>(map_zeroed(worker_count() * sizeof(std::atomic<pid_t>)));
  pthread_key_create(&guest_key, clear_guest);
  install_crash_reporter(current_history);
  for (unsigned i = 0; i < worker_count(); ++i) {
    workers[i].initialize(i, next_stream(), options.seed, kMembers[i % std::size(kMembers)].role, office);
  }
  for (unsigned i = 0; i < options.threads; ++i) {
    start_thread(&threads[i], i < std::size(kMembers) && kMembers[i].is_host ? run_host : run_worker, &workers[i]);
  }
  start_thread(&threads[options.threads], run_storm, nullptr);
  last_progress = seconds_now();
}

uint64_t Crew::operations() {
  uint64_t sum = 0;
  for (unsigned i = 0; i < worker_count(); ++i) sum += workers[i].oracle().operations();
  return sum;
}

void Crew::check_progress() {
  const uint64_t done = operations();
  const double now = seconds_now();
  if (done != last_operations) last_progress = now;
  last_operations = done;
  if (now - last_progress > kHangSeconds) {
    fail(nullptr, 0, "no operation finished for %.0f seconds; %llu were done", kHangSeconds,
         static_cast<unsigned long long>(done));
  }
}

uint64_t Crew::watch(uint64_t operations_wanted, unsigned seconds, bool print) {
  const double start = seconds_now();
  double last_print = start;
  for (;;) {
    sleep_microseconds(50'000);
    check_progress();
    const uint64_t done = operations();
    const double now = seconds_now();
    if (print && now - last_print >= 10) {
      last_print = now;
      say("stress: %.0f s: %.1f of %.1f million operations\n", now - start, static_cast<double>(done) * 1e-6,
          static_cast<double>(operations_wanted) * 1e-6);
    }
    if (done >= operations_wanted || now - start >= seconds) return done;
  }
}

uint64_t Crew::moves() { return moves_done.load(std::memory_order_relaxed); }  // relaxed: a statistic.

void Crew::finish() {
  totals.stop.store(true, std::memory_order_relaxed);  // relaxed: only says when to end.
  alarm(static_cast<unsigned>(kHangSeconds));          // a thread that never comes back is a failure too
  for (unsigned i = 0; i <= options.threads; ++i) pthread_join(threads[i], nullptr);
  alarm(0);
  const uint64_t done = operations();
  balance();
  check_leaks();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const char* configuration = std::getenv("BRIMFUL_CONF");
  say("stress: ok: %.2f million operations, %u threads, %llu guests, %llu forks, %llu moves, %s, seed %llu, peak %ld "
      "MiB\n",
      static_cast<double>(done) * 1e-6, options.threads,
      static_cast<unsigned long long>(guests_run.load(std::memory_order_relaxed)),  // relaxed: after the join.
      static_cast<unsigned long long>(forks_done.load(std::memory_order_relaxed)),  // relaxed: after the join.
      static_cast<unsigned long long>(moves()), configuration == nullptr ? "" : configuration,
      static_cast<unsigned long long>(options.seed), usage.ru_maxrss >> 10);
}

}  // namespace brimful::stress
