// SPDX-License-Identifier: MIT
//
// fill: how much of a pool is in use when it refuses for the first time.
//
//   fill [--pool tlsf|FILE] --bytes N --least 0 --most 2048 [--churn 0|1] [--seeds 20]
//
// Blocks of random sizes are made until one is refused; with --churn, one operation in three frees a block at random, so
// that the pool is full of holes when the end comes. The figure is the bytes asked for in live blocks, divided by all that
// the pool was given, its own structure included; one for each seed.
// Prints one line of JSON.
#include "loop.h"

using namespace pools;

namespace {

double share_at_first_failure(const Pool& pool, std::size_t bytes, const Loop& loop, bool churn, std::uint64_t seed,
                              Slot* live) {
  workload::Random random(seed);
  std::size_t count = 0;
  std::size_t held = 0;
  for (;;) {
    if (churn && count > 0 && random.below(3) == 0) {
      Slot& victim = live[random.below(count)];
      pool.deallocate(pool.state, victim.block, victim.bytes);
      held -= victim.bytes;
      victim = live[--count];
      continue;
    }
    const std::size_t drawn = random.between(loop.least, loop.most);
    const std::size_t size = drawn == 0 ? 1 : drawn;
    void* block = pool.allocate(pool.state, size);
    if (block == nullptr) return static_cast<double>(held) / static_cast<double>(bytes);
    live[count++] = {block, size};
    held += size;
  }
}

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  Loop loop;
  loop.least = arguments.integer("least", 0, 0, 1U << 30);
  loop.most = arguments.integer("most", 2048, loop.least, 1U << 30);
  const bool churn = arguments.integer("churn", 0, 0, 1) != 0;
  const auto seeds = arguments.integer("seeds", 20, 1, 100000);
  Choice choice(arguments, 1U << 20);
  arguments.check();
  if (choice.is("malloc") || choice.is("page") || choice.is("handle")) workload::usage("--pool: never full");

  auto* live = static_cast<Slot*>(map(choice.bytes() / 16 * sizeof(Slot)));
  std::printf("{\"shares\": [");
  for (std::uint64_t seed = 1; seed <= seeds; seed++) {
    const double share = share_at_first_failure(choice.open(), choice.bytes(), loop, churn, seed, live);
    std::printf("%s%.5f", seed == 1 ? "" : ", ", share);
  }
  std::printf("], \"bytes\": %zu, ", choice.bytes());
  print_proof();
  std::printf("}\n");
  return 0;
}
