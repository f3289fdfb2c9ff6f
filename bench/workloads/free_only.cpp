// SPDX-License-Identifier: MIT
//
// free-only: many threads only make objects, and one thread that never makes any frees all of them. Does the memory
// find its way back, for as long as the program runs?
//
// Written after what users report of pipelines whose last stage frees what all others made: an allocator that keeps
// freed objects with the thread that frees them hands them to a thread that has no use for them, and one that returns
// them only when their owner looks depends on how often it looks. The queue between the threads is bounded (see
// batches.h), so the live bytes are, too.
//
// The thread that frees reads the resident size when a tenth of the objects has passed, which is warm enough, and at
// the end, while the last producers are still alive or just dead.
//
//   --size BYTES (largest, default 1024)  --queue N (most batches waiting, default 16)
// --threads are the producers (default 16); the thread that frees comes on top.
// extra: resident_warm_mib, resident_end_mib, growth_percent.
#include "batches.h"
#include "live.h"

using namespace workload;

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 16);
  const auto largest = arguments.integer("size", 1024, kLeastInBatch, 1U << 20);
  const auto capacity = static_cast<unsigned>(arguments.integer("queue", 16, 1, Queue::kMost));
  arguments.check();

  Report report("free-only", common.threads);
  const std::uint64_t objects = common.scaled(10e6);
  LiveBytes live(common.threads + 1);
  Queue queue(capacity, common.threads);
  std::uint64_t freed = 0;
  std::uint64_t warm = 0;
  std::uint64_t end = 0;
  const auto free_all = [&] {
    LiveCounter counter(live);
    while (Batch* batch = queue.take()) {
      freed += consume(batch, counter);
      if (warm == 0 && freed >= objects / 10) warm = exact_resident_bytes();
    }
    end = exact_resident_bytes();
  };
  const auto body = [&](unsigned index) {
    if (index == common.threads) return free_all();
    LiveCounter counter(live);
    produce(queue, share(objects, index, common.threads), largest, Random(common.seed * 4099 + index), counter);
  };
  report.start();
  run_threads(common.threads + 1, body);
  report.stop();
  if (freed != objects) fail("objects were lost on the way");
  live.finish(report, objects);
  report.extra("resident_warm_mib", mib(warm));
  report.extra("resident_end_mib", mib(end));
  report.extra("growth_percent", growth_percent(warm, end));
  return report.print();
}
