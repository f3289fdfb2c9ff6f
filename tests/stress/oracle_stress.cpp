// SPDX-License-Identifier: MIT
//
// Oracle stress: random allocator calls from many threads, everything checked (oracle.h says what).
//
// The threads: mixers, a producer, a consumer that never allocates, and a host that starts short-lived guests
// (which exit leaving their objects in mailboxes and to a TLS destructor) and forks children that go on
// allocating. Beside them a storm thread moves the workers from CPU to CPU with sched_setaffinity, so that
// sections are aborted and contexts change hands in the middle of slow paths.
//
// Before the real run the program tests itself: for each way in which an allocator can be wrong (subject.h)
// it runs with that fault built in, and must exit with 1.
//
// Without arguments: both front-end modes, a few seconds each. --long: 60 million operations per mode. Exit:
// 0, 1 (fault found: see stderr), 2 (usage or no memory).
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "options.h"
#include "oracle.h"
#include "shadow.h"
#include "subject.h"
#include "workload.h"

namespace brimful::stress {
namespace {

constexpr uint64_t kDefaultOperations = 6'000'000;
constexpr unsigned kDefaultSeconds = 7;
constexpr uint64_t kLongOperations = 60'000'000;
constexpr unsigned kLongSeconds = 3000;
constexpr unsigned kHangSeconds = 60;
constexpr uint64_t kGuestOperations = 3000;
constexpr size_t kKeptByGuest = 48;
constexpr unsigned kGuests = 2;
constexpr unsigned kGuestsPerFork = 64;
constexpr unsigned kForkedSeconds = 60;
constexpr uint64_t kNoOperationLimit = uint64_t{1} << 62;

Options options;
PostOffice* office = nullptr;
Worker* workers =
    nullptr;  // options.threads of them, then the guests' records, then one for the final clearing
pthread_key_t guest_key;
std::atomic<pid_t>* thread_ids = nullptr;
std::atomic<uint64_t> streams = 0;
std::atomic<uint64_t> guests_run = 0;
std::atomic<uint64_t> forks_done = 0;

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
  worker->run(kNoOperationLimit);
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
  if (child < 0 || waitpid(child, &status, 0) != child)
    return;  // out of processes: not the allocator's fault
  if (status != 0) fail(nullptr, 0, "a forked child ended with wait status %#x", status);
  forks_done.fetch_add(1, std::memory_order_relaxed);  // relaxed: a statistic.
}

void* run_host(void* argument) {
  Worker* worker = static_cast<Worker*>(argument);
  register_thread(worker->oracle().index());
  Worker* guests = workers + options.threads;
  for (unsigned round = 1; !is_stopped(); ++round) {
    pthread_t threads[kGuests];
    for (unsigned i = 0; i < kGuests; ++i) {
      guests[i].initialize(options.threads + i, next_stream(), options.seed, Role::kGuest, office);
      if (pthread_create(&threads[i], nullptr, run_guest, &guests[i]) != 0) {
        fail(nullptr, 0, "pthread_create failed after %u rounds", round);
      }
    }
    for (pthread_t thread : threads) pthread_join(thread, nullptr);
    guests_run.fetch_add(kGuests, std::memory_order_relaxed);  // relaxed: a statistic.
    worker->run(500);
    if (options.fork && round % (kGuestsPerFork / kGuests) == 0) run_forked(*worker);
  }
  return nullptr;
}

// Moves a random worker to a random CPU (or frees it to run anywhere) every millisecond or so.
void* run_storm(void*) {
  Random random(options.seed, ~uint64_t{0});
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  while (!is_stopped()) {
    // relaxed: see register_thread.
    const pid_t thread = thread_ids[random.below(worker_count())].load(std::memory_order_relaxed);
    cpu_set_t set = allowed;
    if (!random.one_in(4)) {
      size_t cpu = random.below(CPU_SETSIZE);
      while (!CPU_ISSET(cpu, &allowed)) cpu = (cpu + 1) % CPU_SETSIZE;
      CPU_ZERO(&set);
      CPU_SET(cpu, &set);
    }
    if (thread != 0) sched_setaffinity(thread, sizeof set, &set);
    const timespec pause = {0, static_cast<long>(random.between(50'000, 1'500'000))};
    nanosleep(&pause, nullptr);
  }
  return nullptr;
}

uint64_t operations_so_far() {
  uint64_t sum = 0;
  for (unsigned i = 0; i < worker_count(); ++i) sum += workers[i].oracle().operations();
  return sum;
}

double seconds_now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Waits for the end of the run, prints progress, and calls a standstill what it is.
void watch(uint64_t operations, unsigned seconds) {
  const double start = seconds_now();
  double last_progress = start;
  double last_print = start;
  uint64_t last_operations = 0;
  for (;;) {
    const timespec pause = {0, 50'000'000};
    nanosleep(&pause, nullptr);
    const double now = seconds_now();
    const uint64_t done = operations_so_far();
    if (done != last_operations) last_progress = now;
    last_operations = done;
    if (now - last_progress > kHangSeconds) {
      fail(nullptr, 0, "no operation finished for %u seconds; %llu were done", kHangSeconds,
           static_cast<unsigned long long>(done));
    }
    if (options.long_run && now - last_print >= 10) {
      last_print = now;
      say("stress: %.0f s: %.1f of %.1f million operations\n", now - start, static_cast<double>(done) * 1e-6,
          static_cast<double>(operations) * 1e-6);
    }
    if (done >= operations || now - start >= seconds) break;
  }
  totals.stop.store(true, std::memory_order_relaxed);  // relaxed: only says when to end.
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

void self_test(char** arguments) {
  for (size_t kind = 1; kind < kSabotageCount; ++kind) {
    const char* const extra[] = {"--sabotage", kSabotageNames[kind], "--threads", "1", "--seconds", "20",
                                 nullptr};
    const int status = run_self(arguments, extra, false);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 1) {
      fail(nullptr, 0, "self-test: the oracle did not find the fault '%s' (wait status %#x)",
           kSabotageNames[kind], status);
    }
  }
}

void* (*body_of(unsigned index, Role* role))(void*) {
  constexpr Role kRoles[] = {Role::kMixer,    Role::kMixer, Role::kConsumer,
                             Role::kProducer, Role::kMixer, Role::kMixer};
  *role = kRoles[index % std::size(kRoles)];
  return index == 5 ? run_host : run_worker;
}

void run() {
  const uint64_t operations = options.operations != 0 ? options.operations
                              : options.long_run      ? kLongOperations
                                                      : kDefaultOperations;
  const unsigned seconds = options.seconds != 0      ? options.seconds
                           : options.long_run        ? kLongSeconds
                           : options.operations != 0 ? kLongSeconds
                                                     : kDefaultSeconds;
  pthread_t threads[64];
  for (unsigned i = 0; i < worker_count(); ++i) {
    Role role = Role::kMixer;
    if (i < options.threads) body_of(i, &role);
    workers[i].initialize(i, next_stream(), options.seed, role, office);
  }
  for (unsigned i = 0; i < options.threads; ++i) {
    Role role;
    if (pthread_create(&threads[i], nullptr, body_of(i, &role), &workers[i]) != 0) {
      fail(nullptr, 0, "pthread_create failed for worker %u", i);
    }
  }
  pthread_t storm;
  if (pthread_create(&storm, nullptr, run_storm, nullptr) != 0) fail(nullptr, 0, "pthread_create failed");
  watch(operations, seconds);
  for (unsigned i = 0; i < options.threads; ++i) pthread_join(threads[i], nullptr);
  pthread_join(storm, nullptr);
  const uint64_t done = operations_so_far();
  balance();
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const char* configuration = std::getenv("BRIMFUL_CONF");
  say("stress: ok: %.2f million operations, %u threads, %llu guests, %llu forks, %s, seed %llu, peak %ld "
      "MiB\n",
      static_cast<double>(done) * 1e-6, options.threads,
      static_cast<unsigned long long>(
          guests_run.load(std::memory_order_relaxed)),  // relaxed: after the join.
      static_cast<unsigned long long>(
          forks_done.load(std::memory_order_relaxed)),  // relaxed: after the join.
      configuration == nullptr ? "" : configuration, static_cast<unsigned long long>(options.seed),
      usage.ru_maxrss >> 10);
  if (options.long_run && done < operations) fail(nullptr, 0, "too slow: the time ran out");
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  options =
      parse_options(count, arguments, "Random allocator calls from many threads, every result checked.");
  run_in_both_modes(arguments);
  if (options.self_test && options.sabotage == Sabotage::kNone) self_test(arguments);
  set_sabotage(options.sabotage);
  Shadow::initialize();
  office = static_cast<PostOffice*>(map_zeroed(sizeof(PostOffice)));
  office->initialize();
  workers = static_cast<Worker*>(map_zeroed(worker_count() * sizeof(Worker)));
  thread_ids = static_cast<std::atomic<pid_t>*>(map_zeroed(worker_count() * sizeof(std::atomic<pid_t>)));
  pthread_key_create(&guest_key, clear_guest);
  install_crash_reporter(current_history);
  run();
  return 0;
}
