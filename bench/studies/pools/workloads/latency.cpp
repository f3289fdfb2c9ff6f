// SPDX-License-Identifier: MIT
//
// latency: how long each single call takes in the loop of loop.h.
//
//   latency [--pool …] [--slots 1000] [--operations 1000000] [--least 16 --most 1024] [--swing 0]
//           [--seed 1] --out FILE
//
// --swing N: every N operations half of the blocks are freed at once; their slots fill again as they are picked.
//
// Writes one 32-bit number for each call into FILE, in order: nanoseconds in the low 30 bits, the kind in the high two (0
// malloc, 1 free, 2 realloc that stayed in place, 3 realloc that moved). The same seed makes the same calls under every
// pool, so the files of several runs can be laid over each other: what a call takes in the best of them is the pool's
// doing, what only one of them shows is the machine's. Memory given to a pool is resident before the clock starts, and
// every block is written to outside of the timed interval: what is timed is the allocator, not the kernel's page faults,
// unless the allocator itself causes them.
// Prints one line of JSON.
#include "../../../workloads/ticks.h"
#include "loop.h"

using namespace pools;

namespace {

enum Kind : std::uint32_t { kMalloc, kFree, kReallocInPlace, kReallocMoved };

class Calls {
 public:
  Calls(const Pool& pool, const Loop& loop, std::uint64_t operations, std::uint64_t extra)
      : pool_(pool), loop_(loop), table_(pool, loop), most_(2 * operations + extra) {
    calls_ = static_cast<std::uint32_t*>(map(most_ * sizeof *calls_));
    std::memset(calls_, 0, most_ * sizeof *calls_);
  }

  void run(workload::Random& random, std::uint64_t operations, std::uint64_t swing, bool recorded) {
    recorded_ = recorded;
    for (std::uint64_t i = 0; i < operations; i++) {
      if (swing != 0 && i % swing == 0) drop_half();
      const std::uint64_t draw = random.next();
      Slot& slot = table_.slot((draw >> 32) * loop_.slots >> 32);
      const std::size_t bytes = table_.size(draw);
      const bool resized = random.below(10) == 0;
      if (slot.block != nullptr && resized) {
        resize(slot, bytes);
      } else {
        if (slot.block != nullptr) drop(slot);
        make(slot, bytes);
      }
      touch(slot);
    }
  }
  void fill(workload::Random& random) {
    table_.fill(random);
    if (table_.failed() != 0) fail("the pool is too small for its table");
  }
  void write(const char* path) const {
    std::FILE* file = std::fopen(path, "wb");
    if (file == nullptr || std::fwrite(calls_, sizeof *calls_, count_, file) != count_ || std::fclose(file) != 0) {
      fail("cannot write --out");
    }
  }
  std::uint64_t count() const { return count_; }
  double overhead_ns() const { return ticker_.overhead_ns(); }

 private:
  void record(Kind kind, std::uint64_t begin, std::uint64_t end) {
    if (!recorded_) return;
    constexpr std::uint64_t kMost = (1U << 30) - 1;
    const std::uint64_t ns = ticker_.nanoseconds(begin, end);
    calls_[count_++] = static_cast<std::uint32_t>(kind << 30 | (ns < kMost ? ns : kMost));
  }
  void make(Slot& slot, std::size_t bytes) {
    const std::uint64_t begin = workload::begin_ticks();
    void* block = pool_.allocate(pool_.state, bytes);
    record(kMalloc, begin, workload::end_ticks());
    if (block == nullptr) fail("a request was refused: the calls of two runs can't be compared");
    slot = {block, bytes};
  }
  void drop(Slot& slot) {
    const std::uint64_t begin = workload::begin_ticks();
    pool_.deallocate(pool_.state, slot.block, slot.bytes);
    record(kFree, begin, workload::end_ticks());
    slot.block = nullptr;
  }
  void drop_half() {
    for (std::size_t i = 0; i < loop_.slots; i += 2) {
      if (table_.slot(i).block != nullptr) drop(table_.slot(i));
    }
  }
  void resize(Slot& slot, std::size_t bytes) {
    const std::uint64_t begin = workload::begin_ticks();
    void* block = pool_.reallocate(pool_.state, slot.block, slot.bytes, bytes);
    const std::uint64_t end = workload::end_ticks();
    if (block == nullptr) fail("a request was refused: the calls of two runs can't be compared");
    record(block == slot.block ? kReallocInPlace : kReallocMoved, begin, end);
    slot = {block, bytes};
  }
  void touch(const Slot& slot) {
    auto* at = static_cast<volatile char*>(pool_.enter(pool_.state, slot.block));
    for (std::size_t i = 0; i < slot.bytes; i += 64) at[i] = 1;
    pool_.leave(pool_.state, slot.block);
  }

  Pool pool_;
  Loop loop_;
  Table table_;
  std::uint64_t most_;
  std::uint32_t* calls_;
  std::uint64_t count_ = 0;
  bool recorded_ = false;
  workload::Ticker ticker_;
};

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  Loop loop;
  loop.slots = arguments.integer("slots", 1000, 1, 1U << 24);
  loop.least = arguments.integer("least", 16, 1, 1U << 30);
  loop.most = arguments.integer("most", 1024, loop.least, 1U << 30);
  const auto operations = arguments.integer("operations", 1000000, 10, 1U << 30);
  workload::Random random(arguments.integer("seed", 1, 0, std::uint64_t{1} << 53));
  const auto swing = arguments.integer("swing", 0, 0, 1U << 30);
  const char* out = arguments.text("out", nullptr);
  Choice choice(arguments, 2 * loop.slots * (loop.most + 64) + (1U << 20));
  arguments.check();
  if (out == nullptr) workload::usage("--out");

  const std::uint64_t dropped = swing == 0 ? 0 : (operations / swing + 1) * loop.slots;
  Calls calls(choice.open(true), loop, operations, dropped);
  calls.fill(random);
  calls.run(random, operations / 10, swing, false);
  calls.run(random, operations, swing, true);
  calls.write(out);
  std::printf("{\"calls\": %" PRIu64 ", \"overhead_ns\": %.2f, ", calls.count(), calls.overhead_ns());
  print_proof();
  std::printf("}\n");
  return 0;
}
