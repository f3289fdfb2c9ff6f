// SPDX-License-Identifier: MIT
//
// loop: nanoseconds for each operation of the loop in loop.h.
//
//   loop [--pool …] [--slots 10000] [--operations 10000000] [--least 512 --most 512] [--touch 0|1] [--seed 1]
//
// The table is filled and a tenth of the operations are done before the clock starts, so that the memory is resident and
// its free blocks lie as they will. The time is the processor's, of this process alone. What the loop costs without the
// pool (random numbers, the walk through the table) is measured, too, and not subtracted: `ns_loop`.
// Prints one line of JSON.
#include "loop.h"

using namespace pools;

namespace {

double seconds_of(Table& table, workload::Random& random, std::uint64_t operations) {
  const double begin = cpu_s();
  for (std::uint64_t i = 0; i < operations; i++) table.operate(random);
  return cpu_s() - begin;
}

// The same loop around a pool that does nothing.
double empty_seconds(const Loop& loop, std::uint64_t operations) {
  static char block[1];
  Pool none;
  none.allocate = [](void*, std::size_t) { return static_cast<void*>(block); };
  none.deallocate = [](void*, void*, std::size_t) {};
  none.reallocate = [](void*, void* same, std::size_t, std::size_t) { return same; };
  Loop untouched = loop;
  untouched.touch = false;
  Table table(none, untouched);
  workload::Random random(1);
  table.fill(random);
  return seconds_of(table, random, operations);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  Loop loop;
  loop.slots = arguments.integer("slots", loop.slots, 1, 1U << 24);
  loop.least = arguments.integer("least", loop.least, 0, 1U << 30);
  loop.most = arguments.integer("most", loop.least, loop.least, 1U << 30);
  loop.touch = arguments.integer("touch", 0, 0, 1) != 0;
  const auto operations = arguments.integer("operations", 10000000, 10, std::uint64_t{1} << 40);
  workload::Random random(arguments.integer("seed", 1, 0, std::uint64_t{1} << 53));
  Choice choice(arguments, 2 * loop.slots * (loop.most + 64) + (1U << 20));
  arguments.check();

  const Pool pool = choice.open();
  Table table(pool, loop);
  table.fill(random);
  seconds_of(table, random, operations / 10);
  table.forget_failures();
  const double spent = seconds_of(table, random, operations);
  const std::uint64_t fewer = operations < 1000000 ? operations : 1000000;
  std::printf("{\"ns_per_operation\": %.4f, \"ns_loop\": %.4f, \"operations\": %" PRIu64 ", \"failed\": %" PRIu64 ", ",
              spent * 1e9 / static_cast<double>(operations),
              empty_seconds(loop, fewer) * 1e9 / static_cast<double>(fewer), operations, table.failed());
  print_proof();
  std::printf("}\n");
  return 0;
}
