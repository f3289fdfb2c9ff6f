// SPDX-License-Identifier: MIT
//
// Counts the instructions of calls of a TLSF pool, for tlsf_instructions.py: sets the trap flag in front of a call and
// clears it behind, and counts the traps between. Exact, call by call, so the slowest is known and not an average.
//
// For each pool size and fill it prints a line
//
//     size fill malloc free realloc_shrink realloc_grow churn
//
// The four are calls on a pool that was prepared for the longest way through the code: every branch that costs is taken
// (lists that become empty, and with them their words; both neighbours free; a search that looks at four blocks in vain,
// finds its word empty, and takes the last block of another; a rest that opens a list of its own). The rest of the pool
// is filled with live blocks. `churn` is the slowest of some random calls, which may not find a longer way.
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <vector>

#include "brimful/tlsf.h"

namespace {

volatile sig_atomic_t g_steps;

void count_step(int /*signal*/) { g_steps = g_steps + 1; }

#define SET_TRAP_FLAG() __asm__ volatile("pushfq; orl $0x100, (%%rsp); popfq" ::: "memory", "cc")
#define CLEAR_TRAP_FLAG() __asm__ volatile("pushfq; andl $~0x100, (%%rsp); popfq" ::: "memory", "cc")

// The steps of `call`, those of counting itself with them.
template <class Call>
__attribute__((noinline)) int steps_of(Call call) {
  g_steps = 0;
  SET_TRAP_FLAG();
  call();
  CLEAR_TRAP_FLAG();
  return g_steps;
}

int g_overhead;
uint64_t g_random = 0x9E3779B97F4A7C15U;

uint64_t next() {
  g_random ^= g_random << 13;
  g_random ^= g_random >> 7;
  g_random ^= g_random << 17;
  return g_random;
}

class Pool {
 public:
  explicit Pool(size_t bytes) : bytes_(bytes) {
    memory_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory_ == MAP_FAILED) exit(77);
    pool_ = brimful_tlsf_create(memory_, bytes);
  }
  ~Pool() {
    if (brimful_tlsf_check(pool_, nullptr) != nullptr) abort();
    munmap(memory_, bytes_);
  }

  // A block of `stride` bytes, header and all.
  void* block(size_t stride) { return brimful_tlsf_malloc(pool_, stride - 8); }
  void fence() { block(32); }
  void release(void* block) { brimful_tlsf_free(pool_, block); }

  // Puts back what was freed last, which the next free would do.
  void settle() const {
    brimful_tlsf_stats stats{};
    stats.size = sizeof(stats);
    brimful_tlsf_get_stats(pool_, &stats);
  }

  // Live blocks from the rest of the pool until `percent` of it are live; at least 8 KiB stay free.
  void fill(int percent) {
    brimful_tlsf_stats stats{};
    stats.size = sizeof(stats);
    brimful_tlsf_get_stats(pool_, &stats);
    const size_t wanted = stats.total / 100 * percent;
    size_t most = stats.largest_free - 8192;
    for (int blocks = 32; blocks > 0 && stats.used < wanted; --blocks) {
      size_t bytes = (wanted - stats.used) / blocks & ~size_t{15};
      if (bytes < 4096) bytes = 4096;
      if (bytes > most || block(bytes) == nullptr) break;
      most -= bytes;
      stats.used += bytes;
    }
  }

  int count_malloc(size_t stride) {
    void* block = nullptr;
    const int steps = steps_of([&] { block = brimful_tlsf_malloc(pool_, stride - 8); });
    if (block == nullptr) abort();
    return steps - g_overhead;
  }
  int count_free(void* block) {
    return steps_of([&] { brimful_tlsf_free(pool_, block); }) - g_overhead;
  }
  int count_realloc(void* block, size_t stride) {
    void* moved = nullptr;
    const int steps = steps_of([&] { moved = brimful_tlsf_realloc(pool_, block, stride - 8); });
    if (moved != block) abort();
    return steps - g_overhead;
  }

 private:
  size_t bytes_;
  void* memory_;
  brimful_tlsf* pool_;
};

// Four blocks of 1056 bytes head the list that 1072 belongs to; the only longer one is the pool's rest, in another word.
int slowest_malloc(size_t bytes, int percent) {
  Pool pool(bytes);
  void* short_ones[4];
  for (void*& one : short_ones) {
    one = pool.block(1056);
    pool.fence();
  }
  pool.fill(percent);
  for (void* const one : short_ones) pool.release(one);
  pool.settle();
  const int found = pool.count_malloc(1072);

  // Nothing is found, but what was freed last makes a block with both its neighbours, each alone in its list and word.
  Pool full(bytes);
  for (void*& one : short_ones) {
    one = full.block(1056);
    full.fence();
  }
  void* const front = full.block(512);
  void* const block = full.block(64);
  void* const behind = full.block(960);
  full.fence();
  full.fill(percent);
  while (full.block(4096) != nullptr) {
  }
  while (full.block(32) != nullptr) {
  }
  for (void* const one : short_ones) full.release(one);
  full.release(front);
  full.release(behind);
  full.release(block);
  const int joined = full.count_malloc(1072);
  return found > joined ? found : joined;
}

// A block between two free ones, each alone in its list and its word.
int slowest_free(size_t bytes, int percent) {
  Pool pool(bytes);
  void* const front = pool.block(512);
  void* const block = pool.block(64);
  void* const behind = pool.block(1536);
  pool.fence();
  void* const last = pool.block(32);
  pool.fill(percent);
  pool.release(front);
  pool.release(behind);
  pool.release(block);
  return pool.count_free(last);
}

// In front of a free block that is alone in its word; what is left of it, or comes to it, opens another.
int slowest_realloc(size_t bytes, int percent, size_t stride) {
  Pool pool(bytes);
  void* const front = pool.block(64);
  void* const block = pool.block(1024);
  void* const behind = pool.block(1536);
  pool.fence();
  pool.fill(percent);
  pool.release(front);
  pool.release(behind);
  pool.settle();
  const int put_back = pool.count_realloc(block, stride);

  // The block behind was freed last, and a free one is behind that.
  Pool other(bytes);
  void* const growing = other.block(1024);
  void* const last = other.block(512);
  void* const next = other.block(1024);
  other.fence();
  other.fill(percent);
  other.release(next);
  other.release(last);
  const int freed_last = other.count_realloc(growing, stride);
  return put_back > freed_last ? put_back : freed_last;
}

int slowest_of_churn(size_t bytes, int percent, int calls) {
  Pool pool(bytes);
  pool.fill(percent);
  std::vector<void*> blocks;
  int slowest = 0;
  for (int i = 0; i < calls; ++i) {
    const size_t stride = 32 + (next() % (size_t{16} << next() % 8) & ~size_t{15});
    if (blocks.size() < 4 || next() % 2 == 0) {
      blocks.push_back(pool.block(stride));
      if (blocks.back() == nullptr) blocks.pop_back();
      continue;
    }
    const size_t which = next() % blocks.size();
    const int steps = pool.count_free(blocks[which]);
    if (steps > slowest) slowest = steps;
    blocks[which] = blocks.back();
    blocks.pop_back();
    const int taken = pool.count_malloc(stride);
    if (taken > slowest) slowest = taken;
  }
  return slowest;
}

}  // namespace

int main() {
  struct sigaction action = {};
  action.sa_handler = count_step;
  sigaction(SIGTRAP, &action, nullptr);
  g_overhead = steps_of([] {});
  if (g_overhead < 1 || g_overhead > 20) {
    printf("single steps are not counted here\n");
    return 77;
  }
  for (const unsigned power : {16U, 18U, 20U, 24U, 28U, 32U}) {
    for (const int percent : {1, 10, 30, 50, 70, 90, 99}) {
      const size_t bytes = size_t{1} << power;
      printf("%zu %d %d %d %d %d %d\n", bytes, percent, slowest_malloc(bytes, percent), slowest_free(bytes, percent),
             slowest_realloc(bytes, percent, 256), slowest_realloc(bytes, percent, 2048),
             slowest_of_churn(bytes, percent, 40));
      fflush(stdout);
    }
  }
}
