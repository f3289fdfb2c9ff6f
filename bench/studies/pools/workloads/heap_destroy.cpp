// SPDX-License-Identifier: MIT
//
// heap_destroy: what it costs to be rid of N live objects: by destroying their heap (brimful/heap.h), by freeing each,
// and by freeing as many ordinary objects of malloc.
//
//   LD_PRELOAD=libbrimful.so heap_destroy [N [SIZE [SEED]]]      default 1000000 mixed 1
//
// SIZE is a number of bytes or `mixed` (16 ... 512, half of them below 64, as small objects of programs are). All
// objects are made by one thread and written, then freed in the order in which they were made (`free_ns`), which is
// the best order for every allocator, or in a random one (`free_random_ns`). Each way has a heap of its own, made
// right before, so that no way finds the caches warmer than another. Nanoseconds of the thread's processor time, all
// objects together. `create_ns`: to allocate them in the heap; `malloc_ns`: by malloc. One line of JSON.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <utility>

#include "brimful/heap.h"
#include "pool.h"
#pragma weak brimful_heap_create
#pragma weak brimful_heap_destroy
#pragma weak brimful_heap_malloc
#pragma weak brimful_heap_get_stats

namespace {

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) * 1e9 + double(t.tv_nsec);
}

template <class Work>
double time_of(Work work) {
  const double begin = now_ns();
  work();
  return now_ns() - begin;
}

struct Objects {
  std::size_t count;
  std::uint32_t* sizes;
  void** pointers;

  // NULL: by malloc.
  void make(brimful_heap* heap) {
    for (std::size_t i = 0; i < count; ++i) {
      void* object = heap != nullptr ? brimful_heap_malloc(heap, sizes[i]) : std::malloc(sizes[i]);
      if (object == nullptr) {
        std::fprintf(stderr, "heap_destroy: no memory\n");
        std::exit(1);
      }
      *static_cast<volatile std::uint64_t*>(object) = i;
      pointers[i] = object;
    }
  }
  void free_all() {
    for (std::size_t i = 0; i < count; ++i) std::free(pointers[i]);
  }
  void shuffle(std::mt19937_64& random) {
    for (std::size_t i = count - 1; i > 0; --i) std::swap(pointers[i], pointers[random() % (i + 1)]);
  }
};

brimful_heap* new_heap() {
  brimful_heap* heap = brimful_heap_create(0);
  if (heap == nullptr) std::exit(1);
  return heap;
}

void destroy(brimful_heap* heap) {
  if (brimful_heap_destroy(heap) != 0) std::exit(1);
}

}  // namespace

int main(int count, char** arguments) {
  if (brimful_heap_create == nullptr) {
    std::fprintf(stderr, "heap_destroy: this malloc has no heaps; preload libbrimful.so\n");
    return 77;
  }
  const std::size_t objects = count > 1 ? std::strtoull(arguments[1], nullptr, 0) : 1'000'000;
  const char* size = count > 2 ? arguments[2] : "mixed";
  std::mt19937_64 random(count > 3 ? std::strtoull(arguments[3], nullptr, 0) : 1);
  const bool mixed = std::strcmp(size, "mixed") == 0;
  // Arrays outside of the heaps that are measured; touched before the clock starts.
  Objects all = {objects, static_cast<std::uint32_t*>(std::malloc(objects * sizeof(std::uint32_t))),
                 static_cast<void**>(std::calloc(objects, sizeof(void*)))};
  for (std::size_t i = 0; i < objects; ++i) {
    all.sizes[i] = mixed ? std::uint32_t(random() % 2 ? 16 + random() % 48 : 64 + random() % 449)
                         : std::uint32_t(std::strtoul(size, nullptr, 0));
  }
  brimful_heap* heap = new_heap();
  const double create = time_of([&] { all.make(heap); });
  brimful_heap_stats stats = {};
  stats.size = sizeof stats;
  brimful_heap_get_stats(heap, &stats);
  const double destroyed = time_of([&] { destroy(heap); });

  heap = new_heap();
  all.make(heap);
  const double freed = time_of([&] { all.free_all(); });
  destroy(heap);

  heap = new_heap();
  all.make(heap);
  all.shuffle(random);
  const double freed_random = time_of([&] { all.free_all(); });
  destroy(heap);

  const double malloc_ns = time_of([&] { all.make(nullptr); });
  const double ordinary = time_of([&] { all.free_all(); });
  all.make(nullptr);
  all.shuffle(random);
  const double ordinary_random = time_of([&] { all.free_all(); });

  std::printf(
      "{\"objects\":%zu,\"size\":\"%s\",\"live_bytes\":%zu,\"slabs\":%llu,\"create_ns\":%.0f,\"destroy_ns\":%.0f,"
      "\"free_ns\":%.0f,\"free_random_ns\":%.0f,\"malloc_ns\":%.0f,\"malloc_free_ns\":%.0f,"
      "\"malloc_free_random_ns\":%.0f,",
      objects, size, stats.live_bytes, static_cast<unsigned long long>(stats.slabs), create, destroyed, freed,
      freed_random, malloc_ns, ordinary, ordinary_random);
  pools::print_proof();
  std::printf("}\n");
  return 0;
}
