// SPDX-License-Identifier: MIT
//
// pair: nanoseconds per malloc+free pair, or per other call, on a heap of K live objects, in random order.
//
//   pair CALL K SIZE SECONDS SEED      SIZE is a number of bytes or `mixed` (16 … 466, uniform)
//
// K objects are allocated; then each step frees the object in a random place and puts a new one there,
// whose first word is written, as a program would. That is CALL `malloc`; `calloc`, `aligned_alloc` (32) and
// `posix_memalign` (64) make the new object in their own way, `realloc-moves` gives the object the new one's size, and
// `realloc-stays` and `malloc_usable_size` leave all objects where they are. Memory therefore ages as in a real program: after a
// while neighbours in the heap have nothing to do with each other. The clock starts only then, after
// 2 K steps at least, and is read once per kChunk steps. It is the processor time of the process, threads of
// the allocator included: the loop never waits, so on a quiet machine that is the time that passes, and on a
// busy one it leaves out what other programs took. Both are reported.
//
// The loop itself must cost little: places and sizes are drawn beforehand into one array that is read in
// order (the processor prefetches it), so a step has no division and no generator in it. What remains
// (reading the array, the random access to the pointer's place, the store to the object) is timed too,
// as the second number: the same steps without free and malloc. It is not subtracted from the first,
// because much of it overlaps with the allocator's own waiting; it says how much of a pair could be the loop.
// At K = 1 M the place of the pointer and the object are cache misses for every allocator alike.
//
// One process measures one allocator once, whichever one is preloaded. The output is one line of JSON
// with the libraries that /proc/self/maps shows, so a preload that did not happen cannot pass for one.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>

#include <malloc.h>

namespace {

constexpr std::size_t kChunk = 16384;
constexpr std::size_t kLeastSteps = std::size_t{1} << 16;
constexpr std::size_t kLeastWarmUp = 200'000;

struct Step {
  std::uint32_t place;
  std::uint32_t size;
};

double now(clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
  timespec t;
  clock_gettime(clock, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

// The compiler must believe that the object is looked at, or it may drop the pair altogether.
inline void escape(void* pointer) { asm volatile("" : : "r"(pointer) : "memory"); }

void* written(void* object, std::size_t size) {
  if (object == nullptr) {
    std::fprintf(stderr, "pair: no memory\n");
    std::exit(1);
  }
  *static_cast<volatile std::uint64_t*>(object) = size;
  return object;
}

void* allocate(std::size_t size) { return written(std::malloc(size), size); }

// Runs `one` for at least `ns` nanoseconds over the steps, in circles; returns nanoseconds per step.
template <class F>
double per_step(const Step* steps, std::size_t count, double ns, F one) {
  std::size_t done = 0, at = 0;
  const double start = now();
  double end;
  do {
    for (std::size_t i = 0; i < kChunk; i++) one(steps[at + i]);
    at = at + kChunk == count ? 0 : at + kChunk;
    done += kChunk;
    end = now();
  } while (end - start < ns);
  return (end - start) / double(done);
}

// Prints the mapped files whose names smell of an allocator, as a JSON list.
void print_allocators() {
  static char line[4096], last[4096];
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  const char* comma = "";
  std::printf("[");
  while (maps != nullptr && std::fgets(line, sizeof line, maps) != nullptr) {
    line[std::strcspn(line, "\n")] = 0;
    const char* const path = std::strchr(line, '/');
    const char* const name = path == nullptr ? nullptr : std::strrchr(path, '/');
    if (name == nullptr || std::strcmp(path, last) == 0) continue;
    if (std::strstr(name, "malloc") == nullptr && std::strstr(name, "brimful") == nullptr) continue;
    std::printf("%s\"%s\"", comma, path);
    comma = ", ";
    std::strcpy(last, path);
  }
  std::printf("]");
}

// All objects and what is done with them.
struct Heap {
  const Step* steps;
  std::size_t count;
  std::size_t warm_up;
  double ns;
  void** objects;
};

// Nanoseconds per step of `one`, in processor time, and the wall's share of it.
struct Cost {
  double ns;
  double wall_share;
};

template <class F>
Cost measure(const Heap& heap, F one) {
  const auto step = [&heap, &one](const Step& s) { one(heap.objects[s.place], s); };
  for (std::size_t i = 0; i < heap.warm_up; i++) step(heap.steps[i % heap.count]);
  const double cpu_start = now(), wall_start = now(CLOCK_MONOTONIC);
  const double ns = per_step(heap.steps, heap.count, heap.ns, step);
  return {ns, (now(CLOCK_MONOTONIC) - wall_start) / (now() - cpu_start)};
}

// The call of this name, measured; a negative time when there is none.
Cost measure_call(const char* call, const Heap& heap) {
  const auto is = [call](const char* name) { return std::strcmp(call, name) == 0; };
  if (is("malloc")) {
    return measure(heap, [](void*& place, const Step& step) {
      std::free(place);
      place = allocate(step.size);
    });
  }
  if (is("calloc")) {
    return measure(heap, [](void*& place, const Step& step) {
      std::free(place);
      place = written(std::calloc(1, step.size), step.size);
    });
  }
  if (is("aligned_alloc")) {
    return measure(heap, [](void*& place, const Step& step) {
      std::free(place);
      place = written(std::aligned_alloc(32, step.size), step.size);
    });
  }
  if (is("posix_memalign")) {
    return measure(heap, [](void*& place, const Step& step) {
      std::free(place);
      place = posix_memalign(&place, 64, step.size) == 0 ? written(place, step.size) : nullptr;
    });
  }
  if (is("realloc-moves")) {
    return measure(heap, [](void*& place, const Step& step) {
      place = written(std::realloc(place, step.size), step.size);
    });
  }
  // Each object says how long it is.
  if (is("realloc-stays")) {
    return measure(heap, [](void*& place, const Step&) {
      place = std::realloc(place, *static_cast<const std::uint64_t*>(place));
    });
  }
  if (is("malloc_usable_size")) {
    return measure(heap, [](void*& place, const Step&) {
      const std::size_t usable = malloc_usable_size(place);
      asm volatile("" : : "r"(usable));
    });
  }
  return {-1, 0};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fprintf(stderr, "usage: pair CALL K SIZE|mixed SECONDS SEED\n");
    return 2;
  }
  const char* const call = argv[1];
  const std::size_t live = std::strtoull(argv[2], nullptr, 10);
  const std::size_t fixed = std::strtoull(argv[3], nullptr, 10);
  const bool mixed = std::strcmp(argv[3], "mixed") == 0;
  const double ns = std::strtod(argv[4], nullptr) * 1e9;
  if (live == 0 || live > UINT32_MAX || (fixed < 8 && !mixed) || ns <= 0) {
    std::fprintf(stderr, "pair: bad argument\n");
    return 2;
  }

  // Twice as many steps as objects, so that a circle does not replay the order of the one before it
  // in lockstep with the heap; whole chunks.
  std::size_t count = live * 2 > kLeastSteps ? live * 2 : kLeastSteps;
  count = (count + kChunk - 1) / kChunk * kChunk;
  auto* const steps = static_cast<Step*>(std::malloc(count * sizeof(Step)));
  auto** const objects = static_cast<void**>(std::malloc(live * sizeof(void*)));
  if (steps == nullptr || objects == nullptr) return 1;
  std::mt19937_64 random(std::strtoull(argv[5], nullptr, 10));
  for (std::size_t i = 0; i < count; i++) {
    const std::uint64_t draw = random();
    steps[i].place = std::uint32_t((draw >> 32) * live >> 32);
    steps[i].size = mixed ? 16 + std::uint32_t((draw & 0xffffffff) * 451 >> 32) : std::uint32_t(fixed);
  }
  for (std::size_t i = 0; i < live; i++) objects[i] = allocate(steps[i].size);

  const std::size_t warm_up = live * 2 > kLeastWarmUp ? live * 2 : kLeastWarmUp;
  const Cost cost = measure_call(call, {steps, count, warm_up, ns, objects});
  if (cost.ns < 0) {
    std::fprintf(stderr, "pair: no such call: %s\n", call);
    return 2;
  }

  const double loop = per_step(steps, count, ns / 4, [objects](const Step& step) {
    void*& place = objects[step.place];
    escape(place);
    *static_cast<volatile std::uint64_t*>(place) = step.size;
    place = *const_cast<void* volatile*>(&place);
  });

  std::printf("{\"ns_per_pair\": %.4f, \"ns_wall\": %.4f, \"ns_loop\": %.4f, ", cost.ns, cost.ns * cost.wall_share, loop);
  std::printf("\"allocators\": ");
  print_allocators();
  std::printf("}\n");
  return 0;
}
