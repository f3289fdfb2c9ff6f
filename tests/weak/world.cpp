// SPDX-License-Identifier: MIT
//
// weak/world.h.
#include "world.h"

#include <pthread.h>

#include <atomic>
#include <cstring>

#include "brimful/brimful.h"
#include "meta/granule_table.h"
#include "os/calls.h"
#include "slots/front_end.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::weak {

using namespace brimful::slots;

Context* contexts[kMostThreads];
Slab* slab = nullptr;
std::uint64_t* objects[128];

bool has_ended_thread = false;

namespace {

void* (*started_body)(void*) = nullptr;

Slab* slab_of(void* object) {
  return static_cast<Slab*>(meta::header_of(reinterpret_cast<std::uint64_t>(object)));
}

// The slab is the current one of thread 0.
void fill_with(unsigned thread, std::size_t bytes) {
  attach(thread);
  if (thread != 0) return;
  slab = slab_of(brimful_malloc(bytes));
  for (std::uint64_t i = 1; i < slab->count(); ++i) brimful_malloc(bytes);
  for (unsigned i = 0; i < slab->count(); ++i) objects[i] = reinterpret_cast<std::uint64_t*>(slab->object(i));
}
void detach_with(unsigned thread, std::size_t bytes) {
  fill_with(thread, bytes);
  if (thread == 0) brimful_malloc(bytes);
}
bool is_told(std::uint64_t index) { return (free_bits(slab, static_cast<unsigned>(index / 64)) >> index % 64 & 1) != 0; }

// Runs are put back, mappings are not: what is mapped in a run comes from here.
constexpr std::size_t kOwnBytes = std::size_t{8} << 20;
alignas(4096) char own_memory[kOwnBytes];
std::atomic<std::size_t> own_used{0};
std::atomic<std::uint64_t> clock_ms{1000};

void* map_here(std::uintptr_t hint, std::size_t bytes, os::Access access) {
  if (hint != 0 || bytes > kOwnBytes / 4) return os::linux_calls().map(hint, bytes, access);
  return own_memory + own_used.fetch_add(bytes, std::memory_order_relaxed);
}
bool commit_here(std::uintptr_t address, std::size_t bytes) {
  if (address - reinterpret_cast<std::uintptr_t>(own_memory) >= kOwnBytes) return os::linux_calls().commit(address, bytes);
  // What becomes usable reads as zeros: as if its first line were written.
  std::memset(reinterpret_cast<void*>(address), 0, bytes < 64 ? bytes : 64);
  return true;
}

}  // namespace

void pass_time(std::uint64_t ms) { clock_ms.fetch_add(ms, std::memory_order_relaxed); }

void set_calls(unsigned) {
  os::calls.now_ms = []() -> std::uint64_t { return clock_ms.load(std::memory_order_relaxed); };
  os::calls.yield = [] { weak::yield(); };
  os::calls.map = map_here;
  os::calls.commit = commit_here;
  os::calls.seal = [](std::uintptr_t, std::size_t) { return true; };
  // Memory whose pages are given back reads as zeros: as if they were written.
  os::calls.purge = [](std::uintptr_t address, std::size_t bytes) {
    std::memset(reinterpret_cast<void*>(address), 0, bytes);
    return true;
  };
  os::calls.name = [](std::uintptr_t, std::size_t, const char*) {};
}
void attach(unsigned thread) {
  set_calls(thread);
  brimful::slots::prepare();
  contexts[thread] = current_context();
}
void fill(unsigned thread) { fill_with(thread, kBytes); }
void detach(unsigned thread) { detach_with(thread, kBytes); }
void detach_two_groups(unsigned thread) { detach_with(thread, kTwoGroups); }

void check_found() {
  const std::uint32_t owner = slab->owner.load(std::memory_order_relaxed);
  if (owner == kOwnerDetached && free_objects(slab) * 4 >= slab->count())
    fail("the slab has free objects and belongs to nobody");
  if (owner < kFirstSpecialOwner && (owner & kOwnerHasRemote) == 0) {
    for (unsigned g = 0; g < slab->groups; ++g) {
      if (slab->remote(g).load(std::memory_order_relaxed) != 0) fail("the owner does not know that others have freed");
    }
  }
}
void check_told() {
  if (!is_told(0)) fail("an object that was freed is lost");
  check_found();
}

void run_started_thread() {
  started_body(nullptr);
  has_ended_thread = true;
}

}  // namespace brimful::weak

extern "C" int __wrap_pthread_create(pthread_t*, const pthread_attr_t*, void* (*body)(void*), void*) {
  brimful::weak::started_body = body;
  return 0;
}
