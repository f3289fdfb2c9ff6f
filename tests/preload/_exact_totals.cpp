// SPDX-License-Identifier: MIT
//
// Stands before the library in LD_PRELOAD and counts all that a program allocates, exactly: blocks, usable bytes, and
// the variance that an estimate of the bytes has, if one in `EXACT_INTERVAL` bytes is sampled. At exit they go to the
// file EXACT_TOTALS. A block counts again when realloc() moves it, and when a large one gets another length.
#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kMaxClassBytes = 32768;

std::atomic<unsigned long> blocks;
std::atomic<double> bytes;
std::atomic<double> variance;
double interval = 65536;

template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void* counted(void* block) {
  if (block == nullptr) return block;
  const auto usable = static_cast<double>(malloc_usable_size(block));
  const double p = -std::expm1(-usable / interval);
  blocks.fetch_add(1, std::memory_order_relaxed);
  for (double old = bytes; !bytes.compare_exchange_weak(old, old + usable);) {
  }
  for (double old = variance; !variance.compare_exchange_weak(old, old + usable * usable * (1 - p) / p);) {
  }
  return block;
}

[[gnu::constructor]] void begin() {
  if (const char* text = std::getenv("EXACT_INTERVAL")) interval = std::atof(text);
}

[[gnu::destructor]] void end() {
  const char* path = std::getenv("EXACT_TOTALS");
  std::FILE* file = path != nullptr ? std::fopen(path, "w") : nullptr;
  if (file == nullptr) return;
  std::fprintf(file, "%lu %.0f %.0f\n", blocks.load(), bytes.load(), variance.load());
  std::fclose(file);
}

}  // namespace

#define COUNTED(name, parameters, arguments)                  \
  void* name parameters {                                     \
    static const auto call = next<void*(*)parameters>(#name); \
    return counted(call arguments);                           \
  }

extern "C" {
COUNTED(malloc, (std::size_t size), (size))
COUNTED(calloc, (std::size_t count, std::size_t size), (count, size))
COUNTED(memalign, (std::size_t alignment, std::size_t size), (alignment, size))
COUNTED(aligned_alloc, (std::size_t alignment, std::size_t size), (alignment, size))

int posix_memalign(void** block, std::size_t alignment, std::size_t size) {
  static const auto call = next<int (*)(void**, std::size_t, std::size_t)>("posix_memalign");
  const int result = call(block, alignment, size);
  if (result == 0) counted(*block);
  return result;
}

void* realloc(void* old, std::size_t size) {
  static const auto call = next<void* (*)(void*, std::size_t)>("realloc");
  const std::size_t before = malloc_usable_size(old);
  void* block = call(old, size);
  // A small object that stays is not a new one; a large block is, whether it stays or not.
  return block == old && (before <= kMaxClassBytes || size <= kMaxClassBytes) ? block : counted(block);
}
}

#define OPERATOR(symbol, parameters, arguments)                 \
  extern "C" void* symbol parameters {                          \
    static const auto call = next<void*(*)parameters>(#symbol); \
    return counted(call arguments);                             \
  }
OPERATOR(_Znwm, (std::size_t size), (size))
OPERATOR(_Znam, (std::size_t size), (size))
OPERATOR(_ZnwmRKSt9nothrow_t, (std::size_t size, const std::nothrow_t& tag), (size, tag))
OPERATOR(_ZnamRKSt9nothrow_t, (std::size_t size, const std::nothrow_t& tag), (size, tag))
OPERATOR(_ZnwmSt11align_val_t, (std::size_t size, std::align_val_t alignment), (size, alignment))
