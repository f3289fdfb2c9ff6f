// SPDX-License-Identifier: MIT
//
// Heaps of the program under load: threads allocate in heaps that they share, directly and as their current heap, free
// and resize each other's blocks, leave frees to ordinary free() with and without a current heap, and destroy heaps in
// between, full as they are. Every block's contents are checked when it is freed, resized or destroyed, and at each
// destroy the heap's own counts. A child of fork() destroys a heap now and then.
//
// A *place* holds a heap and its blocks. Who works in a place holds its lock for reading; who destroys, for writing:
// the contract of brimful_heap_destroy(). Blocks of one place have a lock each, so that any thread may free any block
// while others work in the same heap. Some blocks of a place are ordinary ones, so that the two kinds meet everywhere.
//
// Without arguments: the front end that BRIMFUL_CONF names, else both, some seconds each. Exit: 0, or 1 and the fault.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "clock.h"
#include "options.h"
#include "random.h"
#include "report.h"

namespace brimful::stress {
namespace {

constexpr unsigned kPlaces = 5;
constexpr unsigned kBlocks = 512;
constexpr unsigned kStay = 400;  // operations in one place
constexpr unsigned kMostThreads = 64;
constexpr size_t kLimit = size_t{8} << 20;
constexpr uint64_t kDefaultOperations = 600'000;
constexpr uint64_t kLongOperations = 60'000'000;

struct Block {
  pthread_mutex_t lock;
  unsigned char* memory;
  size_t bytes;
  uint64_t seed;
  bool is_ordinary;  // of no heap
};

struct Place {
  pthread_rwlock_t lock;
  brimful_heap* heap;
  size_t limit;
  Block blocks[kBlocks];
};

Place places[kPlaces];
std::atomic<uint64_t> operations_left;
std::atomic<uint64_t> destroyed;
std::atomic<uint64_t> destroyed_blocks;

// The first and the last bytes of a block, so that large ones cost little.
constexpr size_t kEdge = 64;

unsigned char byte_at(uint64_t seed, size_t i) { return static_cast<unsigned char>(mix(seed + i) | 1); }

void fill(Block& block) {
  for (size_t i = 0; i < block.bytes; ++i) {
    if (i == kEdge && block.bytes > 2 * kEdge) i = block.bytes - kEdge;
    block.memory[i] = byte_at(block.seed, i);
  }
}

// Checks the first `bytes` of the block as it was filled.
void check(const Block& block, size_t bytes, const char* when) {
  for (size_t i = 0; i < bytes; ++i) {
    if (i == kEdge && block.bytes > 2 * kEdge) i = block.bytes - kEdge;
    if (i < bytes && block.memory[i] != byte_at(block.seed, i)) {
      fail(block.memory, block.bytes, "%s: byte %zu of %zu is %#x", when, i, block.bytes, block.memory[i]);
    }
  }
}

size_t draw_size(Random& random) {
  if (random.one_in(60)) return random.between(32769, 300'000);
  if (random.one_in(8)) return random.between(1, 32768);
  return random.between(1, 600);
}

// A block of the place's heap, or an ordinary one; nullptr: the heap's limit.
unsigned char* allocate(Place& place, Random& random, size_t bytes, bool is_current, bool* is_ordinary) {
  *is_ordinary = !is_current && random.one_in(5);
  void* memory = nullptr;
  if (*is_ordinary || is_current) {
    memory = random.one_in(4) ? brimful_calloc(1, bytes) : brimful_malloc(bytes);
  } else if (random.one_in(6)) {
    const size_t alignment = size_t{16} << random.below(9);
    memory = brimful_heap_aligned_alloc(place.heap, alignment, bytes);
    if (reinterpret_cast<uintptr_t>(memory) % alignment != 0) fail(memory, bytes, "not on %zu", alignment);
  } else {
    memory = random.one_in(4) ? brimful_heap_calloc(place.heap, 1, bytes) : brimful_heap_malloc(place.heap, bytes);
  }
  if (memory == nullptr && (*is_ordinary || place.limit == 0)) fail(nullptr, bytes, "no memory");
  if (memory != nullptr && brimful_heap_of(memory) != (*is_ordinary ? nullptr : place.heap)) {
    fail(memory, bytes, "of another heap");
  }
  return static_cast<unsigned char*>(memory);
}

void resize(Place& place, Block& block, Random& random) {
  const size_t bytes = draw_size(random);
  check(block, block.bytes, "before realloc");
  auto* moved = static_cast<unsigned char*>(brimful_realloc(block.memory, bytes));
  if (moved == nullptr) {
    if (block.is_ordinary || place.limit == 0) fail(block.memory, bytes, "no memory for realloc");
    return check(block, block.bytes, "after a realloc that failed");
  }
  if (brimful_heap_of(moved) != (block.is_ordinary ? nullptr : place.heap)) fail(moved, bytes, "left its heap");
  block.memory = moved;
  // What check() left out in the middle may be at the new end.
  const size_t kept = block.bytes < bytes ? block.bytes : bytes;
  check(block, kept < kEdge ? kept : kEdge, "after realloc");
  block.bytes = bytes;
  fill(block);
}

void step(Place& place, Random& random, bool is_current) {
  Block& block = place.blocks[random.below(kBlocks)];
  pthread_mutex_lock(&block.lock);
  if (block.memory == nullptr) {
    block.bytes = draw_size(random);
    block.seed = random.next();
    block.memory = allocate(place, random, block.bytes, is_current, &block.is_ordinary);
    if (block.memory != nullptr) fill(block);
  } else if (random.one_in(6)) {
    resize(place, block, random);
  } else {
    check(block, block.bytes, "before free");
    brimful_free(block.memory);
    block.memory = nullptr;
  }
  pthread_mutex_unlock(&block.lock);
}

void visit(Place& place, Random& random) {
  pthread_rwlock_rdlock(&place.lock);
  const bool is_current = random.one_in(2);
  if (is_current && brimful_heap_set_current(place.heap) != 0) fail(nullptr, 0, "no current heap");
  for (unsigned i = 0; i < kStay; ++i) step(place, random, is_current);
  if (is_current && brimful_heap_set_current(nullptr) != 0) fail(nullptr, 0, "no way back");
  pthread_rwlock_unlock(&place.lock);
}

void renew(Place& place, Random& random) {
  place.limit = random.one_in(3) ? kLimit : 0;
  place.heap = brimful_heap_create(place.limit);
  if (place.heap == nullptr) fail(nullptr, 0, "no heap");
}

// The place's heap goes with all it holds. Nobody else is in the place.
void destroy(Place& place) {
  brimful_heap_stats stats = {};
  stats.size = sizeof stats;
  if (brimful_heap_get_stats(place.heap, &stats) != 0) fail(nullptr, 0, "no statistics");
  uint64_t live = 0;
  size_t bytes = 0;
  for (Block& block : place.blocks) {
    if (block.memory == nullptr) continue;
    check(block, block.bytes, "before destroy");
    if (block.is_ordinary) {
      brimful_free(block.memory);
    } else {
      ++live;
      bytes += brimful_usable_size(block.memory);
    }
    block.memory = nullptr;
  }
  if (stats.live_blocks != live || stats.live_bytes != bytes) {
    fail(nullptr, 0, "the heap counts %llu blocks of %zu bytes, there are %llu of %zu",
         static_cast<unsigned long long>(stats.live_blocks), stats.live_bytes, static_cast<unsigned long long>(live),
         bytes);
  }
  if (stats.limit_bytes != 0 && stats.peak_bytes > stats.limit_bytes) fail(nullptr, 0, "above the limit");
  if (brimful_heap_destroy(place.heap) != 0) fail(nullptr, 0, "the heap is some thread's current one");
  destroyed.fetch_add(1, std::memory_order_relaxed);            // relaxed: a count
  destroyed_blocks.fetch_add(live, std::memory_order_relaxed);  // relaxed: a count
}

// A child makes, fills and destroys a heap, and one that the others may be working in at this moment.
void destroy_in_child(brimful_heap* other) {
  const pid_t child = fork();
  if (child < 0) return;
  if (child == 0) {
    alarm(60);
    brimful_heap* heap = brimful_heap_create(0);
    for (size_t i = 0; i < 3000; ++i) *static_cast<char*>(brimful_heap_malloc(heap, 1 + i)) = 1;
    _exit(brimful_heap_destroy(heap) == 0 && brimful_heap_destroy(other) == 0 ? 0 : 1);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) fail(nullptr, 0, "a child ended with status %#x", status);
}

bool may_fork;

void* work(void* generator) {
  Random random = *static_cast<Random*>(generator);
  // relaxed: a count
  while (static_cast<int64_t>(operations_left.fetch_sub(kStay, std::memory_order_relaxed)) > 0) {
    Place& place = places[random.below(kPlaces)];
    visit(place, random);
    if (random.one_in(20)) {
      pthread_rwlock_wrlock(&place.lock);
      if (may_fork && random.one_in(30)) destroy_in_child(place.heap);
      destroy(place);
      renew(place, random);
      pthread_rwlock_unlock(&place.lock);
    }
  }
  return nullptr;
}

void run(const Options& options) {
  may_fork = options.fork;
  Random random(options.seed, 0);
  for (Place& place : places) {
    pthread_rwlock_init(&place.lock, nullptr);
    for (Block& block : place.blocks) pthread_mutex_init(&block.lock, nullptr);
    renew(place, random);
  }
  const unsigned count = options.threads < kMostThreads ? options.threads : kMostThreads;
  static Random generators[kMostThreads];
  static pthread_t threads[kMostThreads];
  for (unsigned i = 0; i < count; ++i) {
    generators[i] = Random(options.seed, i + 1);
    if (pthread_create(&threads[i], nullptr, work, &generators[i]) != 0) fail(nullptr, 0, "no thread");
  }
  for (unsigned i = 0; i < count; ++i) pthread_join(threads[i], nullptr);
  for (Place& place : places) destroy(place);
}

}  // namespace
}  // namespace brimful::stress

int main(int count, char** arguments) {
  using namespace brimful::stress;
  Options options = parse_options(count, arguments, "Threads share heaps, and destroy them.");
  run_in_both_modes(arguments);
  if (options.operations == 0) options.operations = options.long_run ? kLongOperations : kDefaultOperations;
  operations_left.store(options.operations, std::memory_order_relaxed);  // relaxed: no thread runs yet
  const double begin = seconds_now();
  run(options);
  say("stress: ok: %llu operations, %llu heaps destroyed with %llu live blocks, %.1f s\n",
      static_cast<unsigned long long>(options.operations),
      static_cast<unsigned long long>(destroyed.load(std::memory_order_relaxed)),         // relaxed: all threads ended
      static_cast<unsigned long long>(destroyed_blocks.load(std::memory_order_relaxed)),  // relaxed: as above
      seconds_now() - begin);
  return 0;
}
