// SPDX-License-Identifier: MIT
//
// order: N objects of one size are made, then all are freed: in the order they were made (fifo), in the opposite order
// (lifo), or in a random one; and again.
//
// Imitates the programs test_small, test_large and test_huge that come with D. Micay's allocator of 2014 (rewritten for
// a course at National Cheng Kung University, 2023, whose report shows how the order of the frees decides): many
// 16-byte objects, objects of 16 KiB, objects of 4 MiB. The reports' finding: a free list kept as a stack serves one
// order and is walked from end to end in the other. Random order is what both leave out, and what scatters a free list
// over the memory, so that the next round of mallocs takes a cache miss each.
//
//   --order lifo|fifo|random (default fifo)  --size BYTES (default 16)  --count OBJECTS (default 500000)
//   --rounds N (rounds at --scale 1, default 60)
#include "workload.h"

using namespace workload;

namespace {

enum class Order { kLifo, kFifo, kRandom };

Order order_of(const char* name) {
  if (std::strcmp(name, "lifo") == 0) return Order::kLifo;
  if (std::strcmp(name, "fifo") == 0) return Order::kFifo;
  if (std::strcmp(name, "random") == 0) return Order::kRandom;
  usage("--order");
}

// The order of the frees as a table of places, so that all three orders pay the same for reading it.
std::uint32_t* places(Order order, std::uint32_t count, std::uint64_t seed) {
  auto* table = static_cast<std::uint32_t*>(std::malloc(count * sizeof(std::uint32_t)));
  if (table == nullptr) fail("malloc returned NULL");
  for (std::uint32_t i = 0; i < count; i++) table[i] = order == Order::kLifo ? count - 1 - i : i;
  if (order == Order::kRandom) {
    Random random(seed);
    for (std::uint32_t i = count - 1; i > 0; i--) {
      const std::uint32_t other = random.below(i + 1);
      const std::uint32_t kept = table[i];
      table[i] = table[other];
      table[other] = kept;
    }
  }
  return table;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const Order order = order_of(arguments.text("order", "fifo"));
  const auto size = arguments.integer("size", 16, 1, std::uint64_t{1} << 32);
  const auto count = static_cast<std::uint32_t>(arguments.integer("count", 500000, 1, 1U << 28));
  const auto at_scale_1 = arguments.integer("rounds", 60, 1, 1U << 30);
  arguments.check();

  Report report("order", common.threads);
  const std::uint64_t rounds = common.scaled(static_cast<double>(at_scale_1));
  const auto body = [&](unsigned index) {
    std::uint32_t* next = places(order, count, common.seed * 4099 + index);
    auto** objects = static_cast<void**>(std::calloc(count, sizeof(void*)));
    if (objects == nullptr) fail("calloc returned NULL");
    for (std::uint64_t round = 0; round < rounds; round++) {
      for (std::uint32_t i = 0; i < count; i++) objects[i] = make(size);
      for (std::uint32_t i = 0; i < count; i++) drop(objects[next[i]], size);
    }
    std::free(objects);
    std::free(next);
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  report.operations = rounds * count * common.threads;
  report.peak_live_bytes =
      common.threads * (static_cast<std::uint64_t>(count) * (size + sizeof(void*) + sizeof(std::uint32_t)));
  return report.print();
}
