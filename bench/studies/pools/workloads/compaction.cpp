// SPDX-License-Identifier: MIT
//
// compaction: what the handle pool holds after a long random life, before and after it is compacted, and how long a step
// of that takes.
//
//   compaction [--megabytes 256] [--least 16] [--most 4096] [--keep 0.3] [--moves 16] [--seed 1]
//
// Objects of random sizes fill --megabytes; as many again are replaced at random; then objects are freed at random until
// only --keep of the bytes live. Then brimful_handle_compact(pool, moves) is called until it says that nothing is left to
// do. Every object is filled with a pattern of its own number and looked at in the end. Reported are the pages held (the
// pool's statistics) and the growth of the process's resident size, each over the live bytes; and the time of every step,
// by the clock and by the processor's account for this thread, which leaves out what other programs took.
// Prints one line of JSON.
#include <algorithm>

#include "pool.h"

using namespace pools;

namespace {

struct Object {
  brimful_handle handle;
  std::uint32_t bytes;
  std::uint32_t number;
};

class Store {
 public:
  explicit Store(std::size_t most_objects) : objects_(static_cast<Object*>(map(most_objects * sizeof(Object)))) {
    std::memset(objects_, 0, most_objects * sizeof(Object));  // resident before anything is counted
    brimful_handle_options options = {};
    options.size = sizeof options;
    options.host = brimful_pool_host_linux();
    options.most_object_bytes = 4096;
    pool_ = brimful_handle_pool_create(&options);
    if (pool_ == nullptr) fail("handle pool not created");
  }

  void add(std::size_t bytes) { make(objects_[count_++], bytes); }
  void replace(workload::Random& random, std::size_t bytes) {
    Object& object = objects_[random.below(count_)];
    drop(object);
    make(object, bytes);
  }
  void remove(workload::Random& random) {
    Object& object = objects_[random.below(count_)];
    drop(object);
    object = objects_[--count_];
  }
  // How many objects are not what was written into them.
  std::size_t damaged() {
    std::size_t found = 0;
    for (std::size_t i = 0; i < count_; i++) {
      const Object& object = objects_[i];
      void* pointer = nullptr;
      if (brimful_handle_map(pool_, object.handle, BRIMFUL_HANDLE_READ, &pointer) != BRIMFUL_HANDLE_OK) {
        found++;
        continue;
      }
      const auto* at = static_cast<const unsigned char*>(pointer);
      bool whole = true;
      for (std::size_t place = 0; place < object.bytes; place++) whole &= at[place] == pattern(object, place);
      if (!whole) found++;
      brimful_handle_unmap(pool_, object.handle);
    }
    return found;
  }
  brimful_handle_stats stats() const {
    brimful_handle_stats stats = {};
    stats.size = sizeof stats;
    brimful_handle_get_stats(pool_, &stats, nullptr, 0);
    return stats;
  }
  brimful_handle_pool* pool() const { return pool_; }
  std::size_t live() const { return live_; }
  std::size_t count() const { return count_; }

 private:
  static unsigned char pattern(const Object& object, std::size_t place) {
    return static_cast<unsigned char>(object.number * 31 + place);
  }
  void make(Object& object, std::size_t bytes) {
    object = {0, static_cast<std::uint32_t>(bytes), next_number_++};
    void* pointer = nullptr;
    if (brimful_handle_alloc(pool_, bytes, &object.handle) != BRIMFUL_HANDLE_OK ||
        brimful_handle_map(pool_, object.handle, BRIMFUL_HANDLE_WRITE, &pointer) != BRIMFUL_HANDLE_OK) {
      fail("no object");
    }
    auto* at = static_cast<unsigned char*>(pointer);
    for (std::size_t place = 0; place < bytes; place++) at[place] = pattern(object, place);
    brimful_handle_unmap(pool_, object.handle);
    live_ += bytes;
  }
  void drop(const Object& object) {
    if (brimful_handle_free(pool_, object.handle) != BRIMFUL_HANDLE_OK) fail("a live handle was not freed");
    live_ -= object.bytes;
  }

  brimful_handle_pool* pool_;
  Object* objects_;
  std::size_t count_ = 0;
  std::size_t live_ = 0;
  std::uint32_t next_number_ = 0;
};

std::uint64_t now_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// The times of all steps: room for them is resident before anything is counted.
class Times {
 public:
  static constexpr std::size_t kMost = 1U << 20;

  Times() : ns_(static_cast<std::uint64_t*>(map(kMost * sizeof(std::uint64_t)))) {
    std::memset(ns_, 0, kMost * sizeof *ns_);
  }
  bool full() const { return count_ == kMost; }
  std::size_t count() const { return count_; }
  void add(std::uint64_t ns) { ns_[count_++] = ns; }
  void print(const char* name) {
    std::sort(ns_, ns_ + count_);
    std::printf("\"%s\": {\"p50_ns\": %" PRIu64 ", \"p99_ns\": %" PRIu64 ", \"max_ns\": %" PRIu64 "}, ", name,
                ns_[count_ / 2], ns_[count_ * 99 / 100], ns_[count_ - 1]);
  }

 private:
  std::uint64_t* ns_;
  std::size_t count_ = 0;
};

void compact(const Store& store, std::size_t moves, Times& wall, Times& cpu) {
  int more = 1;
  while (more != 0 && !wall.full()) {
    const std::uint64_t wall_begin = now_ns(CLOCK_MONOTONIC);
    const std::uint64_t cpu_begin = now_ns(CLOCK_THREAD_CPUTIME_ID);
    brimful_handle_compact(store.pool(), moves, &more);
    cpu.add(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_begin);
    wall.add(now_ns(CLOCK_MONOTONIC) - wall_begin);
  }
}

void print_held(const char* when, const Store& store, std::size_t resident_before) {
  const brimful_handle_stats stats = store.stats();
  const auto live = static_cast<double>(store.live());
  std::printf("\"%s\": {\"held_per_live\": %.5f, \"with_metadata_per_live\": %.5f, \"resident_per_live\": %.5f}, ",
              when, static_cast<double>(stats.held_bytes) / live,
              static_cast<double>(stats.held_bytes + stats.metadata_bytes) / live,
              static_cast<double>(resident_bytes() - resident_before) / live);
}

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  const std::size_t bytes = arguments.integer("megabytes", 256, 1, 1U << 16) << 20;
  const auto least = arguments.integer("least", 16, 1, 4096);
  const auto most = arguments.integer("most", 4096, least, 4096);
  const double keep = arguments.number("keep", 0.3, 0.001, 1);
  const auto moves = arguments.integer("moves", 16, 1, 1U << 20);
  workload::Random random(arguments.integer("seed", 1, 0, std::uint64_t{1} << 53));
  arguments.check();

  Times wall;
  Times cpu;
  Store store(bytes / ((least + most) / 2) * 2 + 1024);
  const std::size_t resident_before = resident_bytes();
  while (store.live() < bytes) store.add(random.between(least, most));
  for (std::size_t i = store.count(); i > 0; i--) store.replace(random, random.between(least, most));
  const auto kept = static_cast<std::size_t>(keep * static_cast<double>(bytes));
  while (store.live() > kept) store.remove(random);

  std::printf("{");
  print_held("before", store, resident_before);
  compact(store, moves, wall, cpu);
  print_held("after", store, resident_before);
  wall.print("step_wall");
  cpu.print("step_cpu");
  const char* broken = brimful_handle_check(store.pool(), nullptr);
  std::printf("\"steps\": %zu, \"moves_per_step\": %" PRIu64 ", \"moved\": %" PRIu64
              ", \"live_bytes\": %zu, \"objects\": %zu, \"damaged\": %zu, \"broken\": \"%s\", ",
              wall.count(), moves, store.stats().moved, store.live(), store.count(), store.damaged(),
              broken == nullptr ? "" : broken);
  print_proof();
  std::printf("}\n");
  return 0;
}
