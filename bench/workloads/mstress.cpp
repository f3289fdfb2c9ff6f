// SPDX-License-Identifier: MIT
//
// mstress: a program that works in phases. In each phase, new threads make objects of very different sizes, keep some
// until the phase ends, free others early, and swap objects with all other threads through a shared array; then the
// threads die. What lies in the array survives them and is freed in later phases by threads not yet born.
//
// Imitates the stress test in mimalloc's repository, as its technical report (Leijen, Zorn and de Moura, "Mimalloc:
// free list sharding in action", MSR-TR-2019-18) and the README of mimalloc-bench describe it: sizes in powers of two,
// objects that migrate and objects that live long, threads with unequal work that die after each phase.
//
// It shows what becomes of the memory of dead threads, and whether the resident size stays flat from phase to phase.
// All threads of a phase are alive together: they wait for each other before the first object and before the last are
// freed, so that the live bytes at the phase's peak are the same under every allocator.
//
//   --phases N (default 20)  --transfer N (places in the shared array, default 1000)
#include "many_threads.h"

using namespace workload;

namespace {

using Places = std::atomic<Described*>;

// 1 to 32 words; one in a hundred has a hundred times as many, one in ten thousand a thousand times.
Described* make_mixed(Random& random, LiveCounter& counter) {
  std::size_t words = std::size_t{1} << random.below(6);
  const std::uint32_t luck = random.below(10000);
  if (luck == 0) {
    words *= 1000;
  } else if (luck <= 100) {
    words *= 100;
  }
  return make_described(words * sizeof(std::uint64_t), counter);
}

// One thread in one phase: makes `count` objects, two thirds to use and one to keep, in random order.
void work(std::uint64_t count, Places* places, std::size_t place_count, Barrier& barrier, Random random,
          LiveCounter& counter) {
  barrier.wait();
  std::uint64_t to_use = count - count / 3;
  std::uint64_t to_keep = count / 3;
  auto* used = make_table<Described*>(to_use + 1, counter);
  auto* kept = make_table<Described*>(to_keep + 1, counter);
  std::size_t used_count = 0;
  std::size_t kept_count = 0;
  const std::size_t used_most = to_use + 1;
  const std::size_t kept_most = to_keep + 1;
  while (to_use + to_keep > 0) {
    if (to_keep == 0 || (to_use > 0 && random.below(2) == 0)) {
      used[used_count++] = make_mixed(random, counter);
      to_use--;
    } else {
      kept[kept_count++] = make_mixed(random, counter);
      to_keep--;
    }
    if (used_count > 0 && random.below(3) < 2) {
      Described*& early = used[random.below(used_count)];
      drop_described(early, counter);
      early = used[--used_count];
    }
    if (used_count > 0 && random.below(4) == 0) {
      Described*& mine = used[random.below(used_count)];
      // acq_rel, pairs with: every other exchange of a place (the object's size and marks)
      mine = places[random.below(place_count)].exchange(mine, std::memory_order_acq_rel);
    }
  }
  barrier.wait();
  for (std::size_t i = 0; i < used_count; i++) drop_described(used[i], counter);
  for (std::size_t i = 0; i < kept_count; i++) drop_described(kept[i], counter);
  drop_table(used, used_most, counter);
  drop_table(kept, kept_most, counter);
}

// The threads' parts differ by up to three quarters: work is not evenly spread in a server either.
std::uint64_t weight(unsigned index) { return 4 + index % 4; }

// Between phases the main thread frees half of what lies in the array, at the end all.
void clear(Places* places, std::size_t count, std::size_t step, LiveCounter& counter) {
  for (std::size_t i = 0; i < count; i += step) {
    // relaxed: the threads that wrote here were joined
    drop_described(places[i].exchange(nullptr, std::memory_order_relaxed), counter);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 2);
  const auto phases = static_cast<unsigned>(arguments.integer("phases", 20, 1, 1U << 20));
  const auto place_count = arguments.integer("transfer", 1000, 1, 1U << 24);
  arguments.check();

  Report report("mstress", common.threads);
  const std::uint64_t objects = common.scaled(7e6);
  std::uint64_t weights = 0;
  std::uint64_t expected = 0;
  LiveBytes live(common.threads);
  Barrier barrier(common.threads);
  {
    LiveCounter counter(live);
    auto* places = make_table<Places>(place_count, counter);
    counter.settle();
    report.start();
    for (unsigned i = 0; i < common.threads; i++) weights += weight(i);
    for (unsigned phase = 0; phase < phases; phase++) {
      const std::uint64_t in_phase = share(objects, phase, phases);
      for (unsigned i = 0; i < common.threads; i++) expected += in_phase * weight(i) / weights;
      const auto body = [&](unsigned index) {
        LiveCounter mine(live);
        const Random random((common.seed * 4099 + phase) * 4099 + index);
        work(in_phase * weight(index) / weights, places, place_count, barrier, random, mine);
      };
      run_threads(common.threads, body);
      clear(places, place_count, phase + 1 == phases ? 1 : 2, counter);
      counter.settle();
    }
    report.stop();
    drop_table(places, place_count, counter);
  }
  live.finish(report, expected);
  return report.print();
}
