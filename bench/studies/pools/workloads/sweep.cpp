// SPDX-License-Identifier: MIT
//
// sweep: the loop in loop.h over sizes or over runs, for charts of time against size and of time against run.
//
//   sweep [--pool …] --from 0 --to 16384 --step 64 --width 64     sizes [x, x + width) for each x; or
//   sweep [--pool …] --runs 50 --least 0 --most 2048              the same range again and again
//         [--slots 10000] [--operations 100000] [--repeats 3] [--seed 1]
//
// Imitates the charts of a course report of National Cheng Kung University (2023), in which requests that failed looked
// like fast ones. Here every point says how many failed. Each point begins with a fresh pool over the same memory (under
// malloc: with everything freed).
//
//   mean_ns   of the processor's time, over all operations of one pass
//   max_ns    the slowest operation, each timed by itself; every point's pass is done `repeats` times over from the same
//             state, and of each operation the best time counts, so that an interruption by the machine, which hits
//             another operation each time, is not taken for the pool's work
//
// Prints one line of JSON.
#include "../../../workloads/ticks.h"
#include "loop.h"

using namespace pools;

namespace {

struct Point {
  double mean_ns;
  std::uint64_t max_ns;
  std::uint64_t failed;
};

class Sweep {
 public:
  Sweep(const Choice& choice, std::uint64_t operations, unsigned repeats)
      : choice_(choice), operations_(operations), repeats_(repeats), best_(new std::uint32_t[operations]) {}

  Point measure(const Loop& loop, std::uint64_t seed) {
    Point point = {};
    with_table(loop, seed, [&](Table& table, workload::Random& random) {
      const double begin = cpu_s();
      for (std::uint64_t i = 0; i < operations_; i++) table.operate(random);
      point.mean_ns = (cpu_s() - begin) * 1e9 / static_cast<double>(operations_);
      point.failed = table.failed();
    });
    std::memset(best_, 0xff, operations_ * sizeof *best_);
    for (unsigned repeat = 0; repeat < repeats_; repeat++) {
      with_table(loop, seed, [&](Table& table, workload::Random& random) { time_each(table, random); });
    }
    for (std::uint64_t i = 0; repeats_ > 0 && i < operations_; i++) {
      if (best_[i] > point.max_ns) point.max_ns = best_[i];
    }
    return point;
  }

 private:
  template <class Body>
  void with_table(const Loop& loop, std::uint64_t seed, const Body& body) {
    // Pools of pages give everything back when their blocks are freed: one is enough.
    if (pool_.allocate == nullptr || !(choice_.is("page") || choice_.is("handle"))) pool_ = choice_.open();
    workload::Random random(seed);
    Table table(pool_, loop);
    table.fill(random);
    table.forget_failures();
    body(table, random);
  }
  void time_each(Table& table, workload::Random& random) {
    for (std::uint64_t i = 0; i < operations_; i++) {
      const std::uint64_t begin = workload::begin_ticks();
      table.operate(random);
      const std::uint64_t ns = ticker_.nanoseconds(begin, workload::end_ticks());
      const auto held = static_cast<std::uint32_t>(ns < UINT32_MAX ? ns : UINT32_MAX);
      if (held < best_[i]) best_[i] = held;
    }
  }

  Choice choice_;
  Pool pool_;
  std::uint64_t operations_;
  unsigned repeats_;
  std::uint32_t* best_;
  workload::Ticker ticker_;
};

void print(const char*& comma, std::uint64_t at, const Point& point) {
  std::printf("%s{\"at\": %" PRIu64 ", \"mean_ns\": %.2f, \"max_ns\": %" PRIu64 ", \"failed\": %" PRIu64 "}", comma, at,
              point.mean_ns, point.max_ns, point.failed);
  comma = ", ";
}

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  Loop loop;
  loop.slots = arguments.integer("slots", loop.slots, 1, 1U << 24);
  const auto runs = arguments.integer("runs", 0, 0, 100000);
  const auto from = arguments.integer("from", 0, 0, 1U << 30);
  const auto to = arguments.integer("to", 16384, from, 1U << 30);
  const auto step = arguments.integer("step", 64, 1, 1U << 30);
  const auto width = arguments.integer("width", 64, 0, 1U << 30);
  loop.least = arguments.integer("least", 0, 0, 1U << 30);
  loop.most = arguments.integer("most", 2048, loop.least, 1U << 30);
  const auto operations = arguments.integer("operations", 100000, 10, 1U << 30);
  const auto repeats = static_cast<unsigned>(arguments.integer("repeats", 3, 0, 100));
  const auto seed = arguments.integer("seed", 1, 0, std::uint64_t{1} << 53);
  const std::size_t largest = runs > 0 ? loop.most : to + width;
  const Choice choice(arguments, 2 * loop.slots * (largest + 64) + (1U << 20));
  arguments.check();

  Sweep sweep(choice, operations, repeats);
  const char* comma = "";
  std::printf("{\"points\": [");
  for (std::uint64_t run = 0; run < runs; run++) print(comma, run, sweep.measure(loop, seed + run));
  for (std::uint64_t size = from; runs == 0 && size < to; size += step) {
    loop.least = size;
    loop.most = size + width;
    print(comma, size, sweep.measure(loop, seed));
  }
  std::printf("], \"operations\": %" PRIu64 ", ", operations);
  print_proof();
  std::printf("}\n");
  return 0;
}
