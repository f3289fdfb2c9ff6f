// SPDX-License-Identifier: MIT
//
// glibc-thread: each thread owns a working set of 1024 objects; a step frees a random one and puts a new one in its
// place. Sizes from 4 to 32768 bytes, the number of objects falling with the square of the size.
//
// Imitates bench-malloc-thread of glibc's benchtests, as its author describes it (Newton, "benchtests: Add malloc
// microbenchmark", libc-alpha, April 2014): random sizes in random order, with an inverse square distribution because
// real programs ask for many more small blocks than large ones.
//
// The sum of the steps is fixed and divided among the threads, and all of them are alive, with a full working set each,
// from before the first step until the last thread has done its part. Only the steps are timed: neither the starts and
// exits of threads nor the filling of the working sets, which grow with their number. So the same program sweeps the
// number of threads from 1 to thousands with the same work at each point: time that grows is the cost of having many
// threads alone, and so is memory beyond the live bytes.
//
//   --set N (objects of a thread, default 1024)
#include "many_threads.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::size_t kLeast = 4;
constexpr std::size_t kMost = 32768;

struct Shared {
  explicit Shared(const Common& common, std::size_t objects)
      : set(objects),
        sizes(Distribution::kPower, kLeast, kMost, common.seed),
        live(common.threads),
        barrier(common.threads) {}

  const std::size_t set;
  const Sizes sizes;
  LiveBytes live;
  Barrier barrier;
  TimedPart timed;
};

void work(Shared& shared, std::uint64_t steps, Random random) {
  LiveCounter counter(shared.live);
  auto* objects = make_table<Object>(shared.set, counter);
  std::uint64_t next = random.below(Sizes::kCount);
  for (std::size_t i = 0; i < shared.set; i++) objects[i] = make_object(shared.sizes[next++], counter);
  shared.barrier.wait();
  shared.timed.begin();
  for (std::uint64_t i = 0; i < steps; i++) {
    Object& object = objects[random.below(shared.set)];
    drop_object(object, counter);
    object = make_object(shared.sizes[next++], counter);
  }
  counter.settle();
  shared.timed.end();
  shared.barrier.wait();
  for (std::size_t i = 0; i < shared.set; i++) drop_object(objects[i], counter);
  drop_table(objects, shared.set, counter);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto set = arguments.integer("set", 1024, 1, 1U << 24);
  arguments.check();

  Report report("glibc-thread", common.threads);
  const std::uint64_t steps = common.scaled(24e6);
  Shared shared(common, set);
  const auto body = [&](unsigned index) {
    work(shared, share(steps, index, common.threads), Random(common.seed * 4099 + index));
  };
  run_threads(common.threads, body);
  shared.timed.finish(report);
  shared.live.finish(report, steps + set * common.threads);
  report.extra("timed_operations", static_cast<double>(steps));
  return report.print();
}
