// SPDX-License-Identifier: MIT
//
// xmalloc: half the threads only make objects, the other half only free them. Batches of objects travel through one
// bounded queue, so every object is freed by another thread than the one that made it, and no freer ever allocates.
//
// Imitates xmalloc-test, from Lever and Boreham, "malloc() Performance in a Multithreaded Linux Environment", USENIX
// 2000, in the later form that the README of mimalloc-bench describes: purely allocating and purely deallocating
// threads, objects of various sizes migrating between them. Here the work is fixed and the queue bounded.
//
// It shows how freed memory finds its way back to the thread that can use it. An allocator that keeps it with the
// freeing thread grows until the queue's bound stops mattering: look at the peak resident size too.
//
//   --size BYTES (largest, default 256)  --queue N (most batches waiting, default 16)
#include "batches.h"

using namespace workload;

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto largest = arguments.integer("size", 256, kLeastInBatch, 1U << 20);
  const auto capacity = static_cast<unsigned>(arguments.integer("queue", 16, 1, Queue::kMost));
  arguments.check();
  if (common.threads < 2) usage("threads (at least 2: one makes, one frees)");

  Report report("xmalloc", common.threads);
  const std::uint64_t objects = common.scaled(10e6);
  const unsigned producers = common.threads / 2;
  LiveBytes live(common.threads);
  Queue queue(capacity, producers);
  std::atomic<std::uint64_t> consumed{0};
  const auto body = [&](unsigned index) {
    LiveCounter counter(live);
    if (index < producers) {
      produce(queue, share(objects, index, producers), largest, Random(common.seed * 4099 + index), counter);
    } else {
      std::uint64_t mine = 0;
      while (Batch* batch = queue.take()) mine += consume(batch, counter);
      consumed.fetch_add(mine, std::memory_order_relaxed);  // relaxed: read after the threads' end
    }
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  // relaxed: the threads have ended
  if (consumed.load(std::memory_order_relaxed) != objects) fail("objects were lost on the way");
  live.finish(report, objects);
  return report.print();
}
