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
#include <condition_variable>
#include <mutex>

#include "many_threads.h"

using namespace workload;

namespace {

constexpr std::size_t kLeast = 8;
constexpr std::size_t kBatch = 1024;
constexpr unsigned kMostQueue = 1024;

struct Batch {
  std::size_t count;
  Object objects[kBatch];
};

// First in, first out, bounded; who finds it full or empty sleeps.
class Queue {
 public:
  Queue(unsigned capacity, unsigned producers) : capacity_(capacity), producers_(producers) {}

  void put(Batch* batch) {
    std::unique_lock lock(mutex_);
    not_full_.wait(lock, [this] { return waiting_ < capacity_; });
    ring_[(first_ + waiting_++) % capacity_] = batch;
    lock.unlock();
    not_empty_.notify_one();
  }

  // NULL when every producer has left and nothing is waiting.
  Batch* take() {
    std::unique_lock lock(mutex_);
    not_empty_.wait(lock, [this] { return waiting_ > 0 || producers_ == 0; });
    if (waiting_ == 0) return nullptr;
    Batch* batch = ring_[first_];
    first_ = (first_ + 1) % capacity_;
    waiting_--;
    lock.unlock();
    not_full_.notify_one();
    return batch;
  }

  void leave() {
    const std::lock_guard lock(mutex_);
    if (--producers_ == 0) not_empty_.notify_all();
  }

 private:
  const unsigned capacity_;
  std::mutex mutex_;  // guards all that follows
  std::condition_variable not_full_;
  std::condition_variable not_empty_;
  unsigned producers_;
  unsigned first_ = 0;
  unsigned waiting_ = 0;
  Batch* ring_[kMostQueue];
};

void produce(Queue& queue, std::uint64_t objects, std::size_t largest, Random random, LiveCounter& counter) {
  while (objects > 0) {
    auto* batch = make_table<Batch>(1, counter);
    batch->count = std::min<std::uint64_t>(objects, kBatch);
    for (std::size_t i = 0; i < batch->count; i++) {
      batch->objects[i] = make_object(random.between(kLeast, largest), counter);
    }
    objects -= batch->count;
    queue.put(batch);
  }
  queue.leave();
}

std::uint64_t consume(Queue& queue, LiveCounter& counter) {
  std::uint64_t objects = 0;
  while (Batch* batch = queue.take()) {
    for (std::size_t i = 0; i < batch->count; i++) drop_object(batch->objects[i], counter);
    objects += batch->count;
    drop_table(batch, 1, counter);
  }
  return objects;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto largest = arguments.integer("size", 256, kLeast, 1U << 20);
  const auto capacity = static_cast<unsigned>(arguments.integer("queue", 16, 1, kMostQueue));
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
      consumed.fetch_add(consume(queue, counter), std::memory_order_relaxed);  // relaxed: read after the threads' end
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
