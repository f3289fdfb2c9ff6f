// SPDX-License-Identifier: MIT
//
// rptest: a loop frees objects scattered over the thread's pool and then makes as many in scattered places; every so
// many loops the thread makes a batch of objects for another thread and frees the batch that was left for it.
//
// Imitates rpmalloc's benchmark, as rpmalloc's BENCHMARKS.md describes it (Jansson, 2016-2017): random sizes with an
// even, a linearly or an exponentially falling distribution, a rate of cross-thread frees, so many loops of so many
// operations over a pool of so many blocks.
//
// It shows an allocator over a wide range of sizes with a steady trickle of remote frees. A thread's letter box holds
// one batch; a batch that finds it full pushes the old one out, which the pusher then frees. So what is on its way is
// bounded, however few CPUs serve however many threads. Only the loops are timed, not the starts and exits of threads.
//
//   --distribution linear|even|exponential  --least BYTES (8)  --most BYTES (16000)  --ops N (of a loop)
//   --blocks N (of a pool)  --cross N (a batch every N loops, default 2; 0: never)
// Default are 100 operations and 1000 blocks; with hundreds of threads fewer, so that all of them take 100 MB or so.
#include "many_threads.h"
#include "sizes.h"

using namespace workload;

namespace {

constexpr std::size_t kMostOps = 1000;

struct Batch {
  std::size_t count;
  Object objects[kMostOps];
};

using Box = std::atomic<Batch*>;

struct Shared {
  const unsigned threads;
  const Sizes sizes;
  const std::size_t blocks;
  const std::size_t ops;
  const std::uint64_t cross;
  Box* boxes;
  LiveBytes live;
  Barrier barrier;
  TimedPart timed;

  // Batches that a thread makes in so many loops.
  std::uint64_t batches(std::uint64_t loops) const {
    return cross == 0 || threads == 1 ? 0 : (loops + cross - 1) / cross;
  }
};

std::size_t bytes_of(std::size_t objects) { return offsetof(Batch, objects) + objects * sizeof(Object); }

void drop_batch(Batch* batch, LiveCounter& counter) {
  if (batch == nullptr) return;
  for (std::size_t i = 0; i < batch->count; i++) drop_object(batch->objects[i], counter);
  counter.freed(bytes_of(batch->count));
  std::free(batch);
}

class Worker {
 public:
  Worker(Shared& shared, unsigned index, std::uint64_t seed)
      : shared_(shared),
        index_(index),
        random_(seed),
        counter_(shared.live),
        pool_(make_table<Object>(shared.blocks, counter_)),
        next_(random_.below(Sizes::kCount)) {}

  void run(std::uint64_t loops) {
    shared_.barrier.wait();
    shared_.timed.begin();
    for (std::uint64_t loop = 0; loop < loops; loop++) {
      for (std::size_t i = 0; i < shared_.ops; i++) drop_object(pool_[random_.below(shared_.blocks)], counter_);
      for (std::size_t i = 0; i < shared_.ops; i++) {
        Object& object = pool_[random_.below(shared_.blocks)];
        drop_object(object, counter_);
        object = make_object(shared_.sizes[next_++], counter_);
      }
      if (shared_.batches(1) == 0 || loop % shared_.cross != 0) continue;
      send((index_ + 1 + random_.below(shared_.threads - 1)) % shared_.threads);
      post(index_, nullptr);
    }
    counter_.settle();
    shared_.timed.end();
    shared_.barrier.wait();
    post(index_, nullptr);
    for (std::size_t i = 0; i < shared_.blocks; i++) drop_object(pool_[i], counter_);
    drop_table(pool_, shared_.blocks, counter_);
  }

 private:
  // Puts `batch` into a box and frees what was in it.
  void post(unsigned box, Batch* batch) {
    // acq_rel, pairs with: every other exchange of a box (the batch and its objects)
    drop_batch(shared_.boxes[box].exchange(batch, std::memory_order_acq_rel), counter_);
  }

  void send(unsigned box) {
    auto* batch = static_cast<Batch*>(std::malloc(bytes_of(shared_.ops)));
    if (batch == nullptr) fail("malloc returned NULL");
    counter_.grew(bytes_of(shared_.ops));
    batch->count = shared_.ops;
    for (std::size_t i = 0; i < shared_.ops; i++) {
      batch->objects[i] = make_object(shared_.sizes[next_++], counter_);
    }
    post(box, batch);
  }

  Shared& shared_;
  const unsigned index_;
  Random random_;
  LiveCounter counter_;
  Object* const pool_;
  std::uint64_t next_;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  constexpr Distribution kChoices[] = {Distribution::kLinear, Distribution::kEven, Distribution::kExponential};
  const Distribution distribution = kChoices[choice(arguments, "distribution", {"linear", "even", "exponential"})];
  const auto least = arguments.integer("least", 8, 1, 1U << 24);
  const auto most = arguments.integer("most", std::max<std::uint64_t>(16000, least), least, 1U << 24);
  const auto ops = arguments.integer("ops", std::clamp(20000U / common.threads, 10U, 100U), 1, kMostOps);
  const auto blocks = arguments.integer("blocks", std::clamp(20000U / common.threads, 10U, 1000U), 1, 1U << 24);
  const auto cross = arguments.integer("cross", 2, 0, 1U << 20);
  arguments.check();

  Report report("rptest", common.threads);
  const std::uint64_t loops = common.scaled(4e6 / static_cast<double>(ops));
  auto* boxes = static_cast<Box*>(std::calloc(common.threads, sizeof(Box)));
  if (boxes == nullptr) fail("calloc returned NULL");
  Shared shared = {common.threads,
                   Sizes(distribution, least, most, common.seed),
                   blocks,
                   ops,
                   cross,
                   boxes,
                   LiveBytes(common.threads),
                   Barrier(common.threads),
                   TimedPart()};
  const auto body = [&](unsigned index) {
    Worker(shared, index, common.seed * 4099 + index).run(share(loops, index, common.threads));
  };
  run_threads(common.threads, body);
  shared.timed.finish(report);
  std::uint64_t expected = loops * ops;
  for (unsigned i = 0; i < common.threads; i++) expected += shared.batches(share(loops, i, common.threads)) * ops;
  std::free(boxes);
  shared.live.finish(report, expected);
  return report.print();
}
