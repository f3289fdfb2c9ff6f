// SPDX-License-Identifier: MIT
//
// idle-threads: ten thousand threads; each makes a burst of objects, frees them all, and sleeps. How much memory does
// such a thread keep, right after and two seconds later?
//
// Written after servers with a thread for each connection, most of them idle: a cache that a thread fills once and
// never uses again is paid for ten thousand times. An allocator with caches per CPU, or one that empties the caches of
// idle threads, keeps next to nothing; one that does so only when the thread itself comes back keeps it all.
//
// The figure is what a thread costs ABOVE one that never allocated. That is measured first, by a child process in
// which as many threads are started and sleep, having touched the same part of their stacks, but never called the
// allocator. Nor is it what the process pays once, for the first burst of all: the main thread makes that one, before
// anything is measured. In the two seconds the main thread makes a few calls every 50 ms: the rest of the process is not idle.
//
// --threads are scaled (10000 at --scale 1 by default). An allocator that would need more than half of the memory that
// is free gets fewer threads: the figures are per thread, and `threads_started` says how many there were.
//
//   --objects N (of a burst, default 400)  --size BYTES (largest, default 1024)  --wait SECONDS (default 2)
// extra: threads_started, burst_kib_per_thread, idle_kib_per_thread. `seconds` is the time of the bursts.
#include <alloca.h>
#include <pthread.h>
#include <sys/wait.h>

#include "live.h"
#include "many_threads.h"

using namespace workload;

namespace {

constexpr std::size_t kStack = std::size_t{64} << 10;
constexpr std::size_t kTouched = std::size_t{20} << 10;  // of the stack, more than a call of an allocator needs
constexpr std::size_t kMostBurst = 4096;
constexpr unsigned kLookEvery = 128;  // threads, between two looks at the memory that they need
constexpr double kTick = 0.05;
constexpr std::size_t kTrickle = 5;  // objects in each tick

// The threads that sleep, and the one that waits for them.
struct Crowd {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;  // guards asleep and over
  pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
  pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
  unsigned asleep = 0;
  bool over = false;

  void sleep() {
    pthread_mutex_lock(&mutex);
    asleep++;
    pthread_cond_signal(&changed);
    while (!over) pthread_cond_wait(&wake, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  // Until so many sleep.
  void wait_for(unsigned threads) {
    pthread_mutex_lock(&mutex);
    while (asleep < threads) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
  }
  void end() {
    pthread_mutex_lock(&mutex);
    over = true;
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&mutex);
  }
};

struct Shared {
  const std::size_t objects;
  const std::size_t largest;
  LiveBytes live;
  Crowd crowd;
};

[[gnu::noinline]] void touch_stack() {
  auto* bytes = static_cast<volatile unsigned char*>(alloca(kTouched));
  for (std::size_t i = 0; i < kTouched; i += 1024) bytes[i] = 1;
}

void burst(Shared& shared, Random random) {
  LiveCounter counter(shared.live);
  // The objects are a list through their own first words, so the stack stays small.
  struct Link {
    Link* next;
    std::size_t bytes;
  };
  Link* first = nullptr;
  for (std::size_t i = 0; i < shared.objects; i++) {
    const std::size_t bytes = random.between(sizeof(Link) + sizeof(std::uint64_t), shared.largest);
    auto* link = static_cast<Link*>(std::malloc(bytes));
    if (link == nullptr) fail("malloc returned NULL");
    counter.made(bytes);
    *link = {first, bytes};
    const std::uint64_t mark = stamp_of(link, bytes);
    std::memcpy(reinterpret_cast<unsigned char*>(link) + bytes - sizeof mark, &mark, sizeof mark);
    first = link;
  }
  while (first != nullptr) {
    Link* link = first;
    first = link->next;
    std::uint64_t mark = 0;
    std::memcpy(&mark, reinterpret_cast<unsigned char*>(link) + link->bytes - sizeof mark, sizeof mark);
    if (mark != stamp_of(link, link->bytes)) fail("an object was overwritten");
    counter.freed(link->bytes);
    std::free(link);
  }
}

struct Sleeper {
  Shared* shared;
  std::uint64_t seed;  // 0: never allocates
  pthread_t thread;

  void operator()() {
    touch_stack();
    if (seed != 0) burst(*shared, Random(seed));
    shared->crowd.sleep();
  }
};

// Bytes that the system could still give.
std::uint64_t available_bytes() {
  char text[512] = {};
  const int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("cannot open /proc/meminfo");
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  const char* line = length > 0 ? std::strstr(text, "MemAvailable:") : nullptr;
  unsigned long long kib = 0;
  if (line == nullptr || std::sscanf(line, "MemAvailable: %llu", &kib) != 1) fail("cannot read /proc/meminfo");
  return kib << 10;
}

// Starts up to `threads` sleepers, fewer if they need more than `most` bytes, and waits until all sleep.
unsigned start_all(Shared& shared, Sleeper* sleepers, unsigned threads, std::uint64_t seed, std::uint64_t most) {
  unsigned started = 0;
  while (started < threads) {
    sleepers[started] = {&shared, seed == 0 ? 0 : seed * 4099 + started + 1, {}};
    sleepers[started].thread = start_thread(sleepers[started], kStack);
    started++;
    if (started % kLookEvery != 0) continue;
    shared.crowd.wait_for(started);
    if (resident_bytes() > most) break;
  }
  shared.crowd.wait_for(started);
  return started;
}

void end_all(Shared& shared, Sleeper* sleepers, unsigned started) {
  shared.crowd.end();
  for (unsigned i = 0; i < started; i++) pthread_join(sleepers[i].thread, nullptr);
}

// Bytes above the start for each thread that never allocates, by a child process.
double bytes_of_silent_thread(Shared& shared, Sleeper* sleepers, unsigned threads) {
  int ends[2];
  if (pipe(ends) != 0) fail("cannot make a pipe");
  const pid_t child = fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) {
    const std::uint64_t before = exact_resident_bytes();
    const unsigned started = start_all(shared, sleepers, threads, 0, UINT64_MAX);
    const std::uint64_t after = exact_resident_bytes();
    const double each = (static_cast<double>(after) - static_cast<double>(before)) / started;
    const bool told = write(ends[1], &each, sizeof each) == sizeof each;
    _exit(told ? 0 : 1);
  }
  close(ends[1]);
  double each = 0;
  const bool heard = read(ends[0], &each, sizeof each) == sizeof each;
  close(ends[0]);
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0 || !heard) fail("the threads that never allocate failed");
  return each;
}

// A few small objects every 50 ms, by the main thread; returns how many.
std::uint64_t trickle(double seconds, Random random, LiveCounter& counter) {
  std::uint64_t made = 0;
  for (const double end = now_s() + seconds; now_s() < end; sleep_s(kTick)) {
    Object objects[kTrickle];
    for (Object& object : objects) object = make_object(random.between(16, 512), counter);
    for (Object& object : objects) drop_object(object, counter);
    made += kTrickle;
  }
  return made;
}

double kib_above(std::uint64_t now, std::uint64_t before, unsigned threads, double silent) {
  const double each = (static_cast<double>(now) - static_cast<double>(before)) / threads - silent;
  return each > 0 ? each / 1024 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 10000);
  const auto objects = arguments.integer("objects", 400, 1, kMostBurst);
  const auto largest = arguments.integer("size", 1024, 32, 1U << 20);
  const double wait = arguments.number("wait", 2, 0, 3600);
  arguments.check();

  Report report("idle-threads", common.threads);
  const auto threads = std::min(static_cast<unsigned>(common.scaled(common.threads)), Common::kMostThreads);
  Shared shared = {objects, largest, LiveBytes(threads), {}};
  std::uint64_t expected = 0;
  {
    LiveCounter counter(shared.live);
    auto* sleepers = make_table<Sleeper>(threads, counter);
    counter.settle();
    std::memset(static_cast<void*>(sleepers), 0, threads * sizeof(Sleeper));  // resident before it is measured
    const double silent = bytes_of_silent_thread(shared, sleepers, threads);
    burst(shared, Random(common.seed));
    const std::uint64_t before = exact_resident_bytes();
    report.start();
    const unsigned started = start_all(shared, sleepers, threads, common.seed + 1, before + available_bytes() / 2);
    report.stop();
    const std::uint64_t after_burst = exact_resident_bytes();
    report.phase("burst");
    expected = objects * (std::uint64_t{started} + 1) + trickle(wait, Random(common.seed), counter);
    const std::uint64_t after_wait = exact_resident_bytes();
    report.phase("idle-end");
    report.extra("threads_started", started);
    report.extra("silent_kib_per_thread", silent / 1024);
    report.extra("burst_kib_per_thread", kib_above(after_burst, before, started, silent));
    report.extra("idle_kib_per_thread", kib_above(after_wait, before, started, silent));
    end_all(shared, sleepers, started);
    drop_table(sleepers, threads, counter);
  }
  shared.live.finish(report, expected);
  return report.print();
}
