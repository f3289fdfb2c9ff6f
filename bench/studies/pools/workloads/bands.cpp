// SPDX-License-Identifier: MIT
//
// bands: what blocks of one size cost in the page pool, the handle pool and malloc: time, and memory held.
//
//   bands [--pool page|handle|malloc] [--pages kernel|list] --size BYTES [--live 16777216] [--operations 200000] [--seed 1]
//
// As many blocks as fill --live bytes are made, each of a size within 16 bytes of --size and written to entirely. Then the
// process's resident growth is taken, over what was asked for. Then blocks at random are freed, made again and
// written to: the processor's time for each such three, the best of three passes. Under the handle pool, writing means
// map, write, unmap. Then blocks at random are freed until three in ten are left, the handle pool is compacted, and the
// resident growth is taken again (of a pool whose pages go back to a list and not to the kernel it stays as it was).
// Prints one line of JSON; `refused` for a size that the pool does not serve.
#include "loop.h"

using namespace pools;

namespace {

class Blocks {
 public:
  Blocks(const Pool& pool, std::size_t size, std::size_t count) : pool_(pool), size_(size), count_(count) {
    slots_ = static_cast<Slot*>(map(count * sizeof(Slot)));
    std::memset(slots_, 0, count * sizeof(Slot));
  }

  bool make(Slot& slot, workload::Random& random) {
    const std::size_t bytes = size_ - random.below(size_ < 16 ? size_ : 16);
    slot = {pool_.allocate(pool_.state, bytes), bytes};
    if (slot.block == nullptr) return false;
    std::memset(pool_.enter(pool_.state, slot.block), static_cast<int>(bytes), bytes);
    pool_.leave(pool_.state, slot.block);
    live_ += bytes;
    return true;
  }
  bool fill(workload::Random& random) {
    for (std::size_t i = 0; i < count_; i++) {
      if (!make(slots_[i], random)) return false;
    }
    return true;
  }
  double churn_ns(workload::Random& random, std::uint64_t operations) {
    const double begin = cpu_s();
    for (std::uint64_t i = 0; i < operations; i++) {
      Slot& slot = slots_[random.below(count_)];
      pool_.deallocate(pool_.state, slot.block, slot.bytes);
      live_ -= slot.bytes;
      if (!make(slot, random)) fail("refused in the middle");
    }
    return (cpu_s() - begin) * 1e9 / static_cast<double>(operations);
  }
  // Frees blocks at random until `share` of them are left.
  void thin(workload::Random& random, double share) {
    const auto left = static_cast<std::size_t>(share * static_cast<double>(count_));
    while (count_ > left) {
      Slot& slot = slots_[random.below(count_)];
      pool_.deallocate(pool_.state, slot.block, slot.bytes);
      live_ -= slot.bytes;
      slot = slots_[--count_];
    }
  }
  std::size_t live() const { return live_; }

 private:
  Pool pool_;
  std::size_t size_;
  std::size_t count_;
  Slot* slots_;
  std::size_t live_ = 0;
};

// What the pool says that it holds, its own pages included; 0: it does not say.
std::size_t held_bytes(const Choice& choice, const Pool& pool) {
  if (choice.is("page")) {
    brimful_page_pool_stats stats = {};
    stats.size = sizeof stats;
    brimful_page_pool_get_stats(static_cast<brimful_page_pool*>(pool.state), &stats);
    return stats.pages * kPage + stats.metadata_bytes;
  }
  if (choice.is("handle")) {
    brimful_handle_stats stats = {};
    stats.size = sizeof stats;
    brimful_handle_get_stats(pool_of(pool.state), &stats, nullptr, 0);
    return stats.held_bytes + stats.metadata_bytes;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  workload::Arguments arguments(argc, argv);
  const auto size = arguments.integer("size", 64, 1, 1U << 20);
  const auto live = arguments.integer("live", 16U << 20, 1, std::uint64_t{1} << 32);
  const auto operations = arguments.integer("operations", 200000, 1, 1U << 30);
  workload::Random random(arguments.integer("seed", 1, 0, std::uint64_t{1} << 53));
  Choice choice(arguments, 1U << 20);
  arguments.check();

  const Pool pool = choice.open();
  Blocks blocks(pool, size, live / size + 1);
  const std::size_t before = resident_bytes();
  if (!blocks.fill(random)) {
    std::printf("{\"refused\": true, ");
    print_proof();
    std::printf("}\n");
    return 0;
  }
  const double asked = static_cast<double>(blocks.live());
  const double resident = static_cast<double>(resident_bytes() - before) / asked;
  const double held = static_cast<double>(held_bytes(choice, pool)) / asked;
  double best = 1e30;
  for (int pass = 0; pass < 3; pass++) {
    const double ns = blocks.churn_ns(random, operations);
    if (ns < best) best = ns;
  }
  blocks.thin(random, 0.3);
  int more = choice.is("handle") ? 1 : 0;
  while (more != 0) brimful_handle_compact(pool_of(pool.state), 0, &more);
  const double thinned = static_cast<double>(resident_bytes() - before) / static_cast<double>(blocks.live());
  std::printf("{\"refused\": false, \"ns\": %.3f, \"resident_per_live\": %.4f, \"held_per_live\": %.4f, ", best,
              resident, held);
  std::printf("\"thinned_per_live\": %.4f, ", thinned);
  print_proof();
  std::printf("}\n");
  return 0;
}
