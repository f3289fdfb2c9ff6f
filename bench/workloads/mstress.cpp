// SPDX-License-Identifier: MIT
//
// mstress: a program that works in phases. In each phase, new threads make objects of very different sizes, keep some
// until the phase ends, free others early, and swap objects with all other threads through a shared array; then the
// threads die. What lies in the array survives them and is freed in later phases by threads not yet born.
//
// Imitates the stress test in mimalloc's repository, which its technical report describes (Leijen, Zorn and de Moura,
// "Mimalloc: free list sharding in action", MSR-TR-2019-18): threads, retained objects, transfer by atomic exchange.
//
// It shows what becomes of the memory of dead threads, and whether the resident size stays flat from phase to phase.
// Every object carries its own size in its first word, mixed with its address and repeated in each page and in the last
// word, because the thread that finds it in the array has nothing but the pointer.
//
//   --phases N (default 20)  --transfer N (places in the shared array, default 1000)
#include "many_threads.h"

using namespace workload;

namespace {

constexpr std::uint64_t kCookie = 0xBF58476D1CE4E5B9U;
constexpr std::size_t kPageWords = 512;
constexpr std::size_t kMostBytes = 32 * 1000 * sizeof(std::uint64_t);

using Words = std::uint64_t*;
using Places = std::atomic<Words>;

std::uint64_t mark_of(const std::uint64_t* object, std::size_t bytes) {
  return bytes ^ kCookie ^ reinterpret_cast<std::uint64_t>(object);
}

// 1 to 32 words; one in a hundred has a hundred times as many, one in ten thousand a thousand times.
Words make_words(Random& random, LiveCounter& counter) {
  std::size_t words = std::size_t{1} << random.below(6);
  const std::uint32_t luck = random.below(10000);
  if (luck == 0) {
    words *= 1000;
  } else if (luck <= 100) {
    words *= 100;
  }
  const std::size_t bytes = words * sizeof(std::uint64_t);
  auto* object = static_cast<Words>(std::malloc(bytes));
  if (object == nullptr) fail("malloc returned NULL");
  counter.made(bytes);
  for (std::size_t i = 0; i < words; i += kPageWords) object[i] = mark_of(object, bytes);  // it is lived in
  object[words - 1] = mark_of(object, bytes);
  return object;
}

void drop_words(Words object, LiveCounter& counter) {
  if (object == nullptr) return;
  const std::size_t bytes = object[0] ^ mark_of(object, 0);
  if (bytes > kMostBytes || bytes % sizeof(std::uint64_t) != 0 || bytes == 0) fail("an object was overwritten");
  if (object[bytes / sizeof(std::uint64_t) - 1] != mark_of(object, bytes)) fail("an object was overwritten");
  counter.freed(bytes);
  std::free(object);
}

// One thread in one phase: makes `count` objects to use and half as many to keep, in random order.
void work(std::uint64_t count, Places* places, std::size_t place_count, Random random, LiveCounter& counter) {
  std::uint64_t to_use = count - count / 3;
  std::uint64_t to_keep = count / 3;
  auto* used = make_table<Words>(to_use + 1, counter);
  auto* kept = make_table<Words>(to_keep + 1, counter);
  std::size_t used_count = 0;
  std::size_t kept_count = 0;
  const std::size_t used_most = to_use + 1;
  const std::size_t kept_most = to_keep + 1;
  while (to_use + to_keep > 0) {
    if (to_keep == 0 || (to_use > 0 && random.below(2) == 0)) {
      used[used_count++] = make_words(random, counter);
      to_use--;
    } else {
      kept[kept_count++] = make_words(random, counter);
      to_keep--;
    }
    if (used_count > 0 && random.below(3) < 2) {
      Words& early = used[random.below(used_count)];
      drop_words(early, counter);
      early = used[--used_count];
    }
    if (used_count > 0 && random.below(4) == 0) {
      Words& mine = used[random.below(used_count)];
      // acq_rel, pairs with: every other exchange of a place (the object's words)
      mine = places[random.below(place_count)].exchange(mine, std::memory_order_acq_rel);
    }
  }
  for (std::size_t i = 0; i < used_count; i++) drop_words(used[i], counter);
  for (std::size_t i = 0; i < kept_count; i++) drop_words(kept[i], counter);
  drop_table(used, used_most, counter);
  drop_table(kept, kept_most, counter);
}

// Between phases the main thread frees half of what lies in the array, at the end all.
void clear(Places* places, std::size_t count, std::size_t step, LiveCounter& counter) {
  for (std::size_t i = 0; i < count; i += step) {
    // relaxed: the threads that wrote here were joined
    drop_words(places[i].exchange(nullptr, std::memory_order_relaxed), counter);
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
  const std::uint64_t objects = common.scaled(5e6);
  LiveBytes live(common.threads);
  {
    LiveCounter counter(live);
    auto* places = make_table<Places>(place_count, counter);
    counter.settle();
    report.start();
    for (unsigned phase = 0; phase < phases; phase++) {
      const std::uint64_t in_phase = share(objects, phase, phases);
      const auto body = [&](unsigned index) {
        LiveCounter mine(live);
        const Random random((common.seed * 4099 + phase) * 4099 + index);
        work(share(in_phase, index, common.threads), places, place_count, random, mine);
      };
      run_threads(common.threads, body);
      clear(places, place_count, phase + 1 == phases ? 1 : 2, counter);
      counter.settle();
    }
    report.stop();
    drop_table(places, place_count, counter);
  }
  live.finish(report, objects);
  return report.print();
}
