// SPDX-License-Identifier: MIT
//
// glibc-simple: n blocks of one size are allocated one after the other, then freed in the same order; for 25, 100, 400
// and 1600 blocks of 16, 128 and 1024 bytes.
//
// Imitates bench-malloc-simple of the GNU C library's own benchtests (described in the announcement of the patch and
// at the head of that program, 2019). The numbers of blocks were chosen there to fit into a thread's cache, to just
// exceed it, and to exceed it by far, and that is what the figures by size and number show: how deep the fast path
// reaches. Its three scenarios are here too, because many allocators (and glibc) skip locks while there is one thread:
//   main           a process that never had a second thread
//   threaded-main  the first thread, while a second one exists and sleeps
//   thread         another thread than the first (in glibc: another arena)
//
//   --scenario main|threaded-main|thread (default main)
// extra: ns_<bytes>x<blocks>, nanoseconds for one malloc and its free.
#include "workload.h"

using namespace workload;

namespace {

constexpr std::size_t kSizes[] = {16, 128, 1024};
constexpr std::uint32_t kBlocks[] = {25, 100, 400, 1600};
constexpr const char* kNames[3][4] = {{"ns_16x25", "ns_16x100", "ns_16x400", "ns_16x1600"},
                                      {"ns_128x25", "ns_128x100", "ns_128x400", "ns_128x1600"},
                                      {"ns_1024x25", "ns_1024x100", "ns_1024x400", "ns_1024x1600"}};
constexpr std::uint32_t kMost = 1600;

struct Work {
  Report* report;
  std::uint64_t pairs;  // for each size and number of blocks
};

void run(const Work& work) {
  static void* blocks[kMost];
  for (int s = 0; s < 3; s++) {
    for (int n = 0; n < 4; n++) {
      const std::uint64_t rounds = work.pairs / kBlocks[n] + 1;
      const double begin = now_s();
      for (std::uint64_t round = 0; round < rounds; round++) {
        for (std::uint32_t i = 0; i < kBlocks[n]; i++) blocks[i] = make(kSizes[s]);
        for (std::uint32_t i = 0; i < kBlocks[n]; i++) drop(blocks[i], kSizes[s]);
      }
      const auto pairs = static_cast<double>(rounds * kBlocks[n]);
      work.report->extra(kNames[s][n], (now_s() - begin) * 1e9 / pairs);
      work.report->operations += rounds * kBlocks[n];
    }
  }
}

void* run_in_thread(void* work) {
  run(*static_cast<Work*>(work));
  return nullptr;
}

// Runs `work` in the first thread while another one waits for the end.
void run_beside_a_sleeper(const Work& work) {
  pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
  const auto sleep = [](void* mutex) -> void* {
    pthread_mutex_lock(static_cast<pthread_mutex_t*>(mutex));
    pthread_mutex_unlock(static_cast<pthread_mutex_t*>(mutex));
    return nullptr;
  };
  pthread_t sleeper;
  pthread_mutex_lock(&gate);
  if (pthread_create(&sleeper, nullptr, sleep, &gate) != 0) fail("cannot create a thread");
  run(work);
  pthread_mutex_unlock(&gate);
  pthread_join(sleeper, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const char* scenario = arguments.text("scenario", "main");
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("glibc-simple", 1);
  Work work = {&report, common.scaled(1e6)};
  report.start();
  if (std::strcmp(scenario, "main") == 0) {
    run(work);
  } else if (std::strcmp(scenario, "threaded-main") == 0) {
    run_beside_a_sleeper(work);
  } else if (std::strcmp(scenario, "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, nullptr, run_in_thread, &work) != 0) fail("cannot create a thread");
    pthread_join(thread, nullptr);
  } else {
    usage("--scenario");
  }
  report.stop();
  report.peak_live_bytes = kMost * kSizes[2];
  return report.print();
}
