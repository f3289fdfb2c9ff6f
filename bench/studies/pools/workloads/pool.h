// SPDX-License-Identifier: MIT
//
// One face for everything that the pools' programs measure, and the memory below it.
//
//   --pool tlsf|page|handle|malloc|FILE   brimful's pools, whatever malloc serves this process, or a library made from
//                                         peers/*.rs
//   --growable 0|1                        memory at once, or a window of addresses of which more is taken as needed
//   --bytes N                             of that memory or window (tlsf and FILE; the others ask for pages themselves)
//   --pages kernel|list                   where page and handle get their pages: mmap each time, or a list of ours, as
//                                         firmware would have it
//
// Each call goes through a pointer to a function, for everybody alike. The size of a block is handed to deallocate() and
// reallocate(), because the caller knows it and one peer asks for it. Blocks of `handle` are handles: enter() gives the
// pointer, leave() ends its use; for all others both do nothing.
#pragma once

#include <brimful/handle.h>
#include <brimful/pagepool.h>
#include <brimful/tlsf.h>
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>

#include "../../../workloads/workload.h"

namespace pools {

using workload::fail;

constexpr std::size_t kPage = 4096;

// Addresses straight from the kernel, with memory on first touch.
inline void* map(std::size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) fail("mmap failed");
  return memory;
}

struct Pool {
  void* state = nullptr;
  void* (*allocate)(void* state, std::size_t bytes) = nullptr;
  void (*deallocate)(void* state, void* block, std::size_t bytes) = nullptr;
  void* (*reallocate)(void* state, void* block, std::size_t old_bytes, std::size_t bytes) = nullptr;
  void* (*enter)(void* state, void* block) = [](void*, void* block) { return block; };
  void (*leave)(void* state, void* block) = [](void*, void*) {};
};

// --- brimful's ----------------------------------------------------------------------------------------------------------

struct Window {
  char* start;
  std::size_t most;
};
inline void* resize_window(void* context, std::size_t bytes) {
  const auto* window = static_cast<const Window*>(context);
  return bytes <= window->most ? window->start : nullptr;
}

inline Pool open_tlsf(void* memory, std::size_t bytes, bool growable) {
  static Window window;
  const std::size_t control = (brimful_tlsf_control_bytes() + kPage - 1) / kPage * kPage;
  window = {static_cast<char*>(memory) + control, bytes - control};
  brimful_tlsf* pool = growable ? brimful_tlsf_create_growable(memory, control, resize_window, &window)
                                : brimful_tlsf_create(memory, bytes);
  if (pool == nullptr) fail("TLSF pool not created");
  return {pool,
          [](void* state, std::size_t size) { return brimful_tlsf_malloc(static_cast<brimful_tlsf*>(state), size); },
          [](void* state, void* block, std::size_t) { brimful_tlsf_free(static_cast<brimful_tlsf*>(state), block); },
          [](void* state, void* block, std::size_t, std::size_t size) {
            return brimful_tlsf_realloc(static_cast<brimful_tlsf*>(state), block, size);
          }};
}

// Pages of one mapping, handed out again in the order in which they came back. Runs of pages have a list for each length.
class PageList {
 public:
  static constexpr std::size_t kMostPages = 64;

  explicit PageList(std::size_t bytes) : next_(static_cast<char*>(map(bytes))), end_(next_ + bytes) {}

  static void* get(void* context, std::size_t bytes) {
    auto* self = static_cast<PageList*>(context);
    const std::size_t pages = bytes / kPage;
    if (pages <= kMostPages && self->free_[pages] != nullptr) {
      void* found = self->free_[pages];
      std::memcpy(&self->free_[pages], found, sizeof(void*));
      return found;
    }
    if (bytes > static_cast<std::size_t>(self->end_ - self->next_)) return nullptr;
    self->next_ += bytes;
    return self->next_ - bytes;
  }
  static void give(void* context, void* start, std::size_t bytes) {
    auto* self = static_cast<PageList*>(context);
    if (bytes / kPage > kMostPages) return;
    std::memcpy(start, &self->free_[bytes / kPage], sizeof(void*));
    self->free_[bytes / kPage] = start;
  }

 private:
  char* next_;
  char* end_;
  void* free_[kMostPages + 1] = {};
};

inline brimful_pool_host host_of(const char* pages) {
  brimful_pool_host host = *brimful_pool_host_linux();
  if (std::strcmp(pages, "list") == 0) {
    host.context = new PageList(std::size_t{8} << 30);
    host.get_pages = PageList::get;
    host.give_pages = PageList::give;
  } else if (std::strcmp(pages, "kernel") != 0) {
    workload::usage("--pages");
  }
  return host;
}

inline Pool open_page(const brimful_pool_host& host) {
  brimful_page_pool* pool = brimful_page_pool_create(&host);
  if (pool == nullptr) fail("page pool not created");
  const auto allocate = [](void* state, std::size_t size) {
    return brimful_page_pool_malloc(static_cast<brimful_page_pool*>(state), size);
  };
  const auto deallocate = [](void* state, void* block, std::size_t) {
    if (!brimful_page_pool_free(static_cast<brimful_page_pool*>(state), block)) fail("a live block was not freed");
  };
  return {pool, allocate, deallocate, [](void* state, void* block, std::size_t old, std::size_t size) {
            auto* same = static_cast<brimful_page_pool*>(state);
            void* other = brimful_page_pool_malloc(same, size);
            if (other == nullptr) return other;
            std::memcpy(other, block, old < size ? old : size);
            brimful_page_pool_free(same, block);
            return other;
          }};
}

inline brimful_handle_pool* pool_of(void* state) { return static_cast<brimful_handle_pool*>(state); }
inline brimful_handle handle_of(void* block) { return reinterpret_cast<brimful_handle>(block); }

inline void* handle_enter(void* state, void* block) {
  void* pointer = nullptr;
  if (brimful_handle_map(pool_of(state), handle_of(block), BRIMFUL_HANDLE_BOTH, &pointer) != BRIMFUL_HANDLE_OK) {
    fail("a live handle was not mapped");
  }
  return pointer;
}
inline void handle_leave(void* state, void* block) { brimful_handle_unmap(pool_of(state), handle_of(block)); }

inline void* handle_allocate(void* state, std::size_t size) {
  brimful_handle handle = 0;
  return brimful_handle_alloc(pool_of(state), size == 0 ? 1 : size, &handle) == BRIMFUL_HANDLE_OK
             ? reinterpret_cast<void*>(handle)
             : nullptr;
}
inline void handle_deallocate(void* state, void* block, std::size_t) {
  if (brimful_handle_free(pool_of(state), handle_of(block)) != BRIMFUL_HANDLE_OK) fail("a live handle was not freed");
}
inline void* handle_reallocate(void* state, void* block, std::size_t old, std::size_t size) {
  void* other = handle_allocate(state, size);
  if (other == nullptr) return other;
  std::memcpy(handle_enter(state, other), handle_enter(state, block), old < size ? old : size);
  handle_leave(state, other);
  handle_leave(state, block);
  handle_deallocate(state, block, old);
  return other;
}

inline Pool open_handle(const brimful_pool_host& host, std::size_t most) {
  brimful_handle_options options = {};
  options.size = sizeof options;
  options.host = &host;
  options.most_object_bytes = most;
  brimful_handle_pool* pool = brimful_handle_pool_create(&options);
  if (pool == nullptr) fail("handle pool not created");
  return {pool, handle_allocate, handle_deallocate, handle_reallocate, handle_enter, handle_leave};
}

// --- everybody else's ---------------------------------------------------------------------------------------------------

inline Pool open_malloc() {
  return {nullptr, [](void*, std::size_t size) { return std::malloc(size); },
          [](void*, void* block, std::size_t) { std::free(block); },
          [](void*, void* block, std::size_t, std::size_t size) { return std::realloc(block, size); }};
}

inline void* symbol(void* library, const char* kind, const char* name) {
  char whole[64];
  std::snprintf(whole, sizeof whole, "%s_%s", kind, name);
  void* found = dlsym(library, whole);
  if (found == nullptr) fail(dlerror());
  return found;
}

inline Pool open_library(const char* path, void* memory, std::size_t bytes, bool growable) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) fail(dlerror());
  const char* kind = growable ? "growable" : "whole";
  Pool pool;
  using Create = void* (*)(void*, std::size_t);
  pool.state = reinterpret_cast<Create>(symbol(library, kind, "create"))(memory, bytes);
  if (pool.state == nullptr) fail("pool not created");
  pool.allocate = reinterpret_cast<decltype(pool.allocate)>(symbol(library, kind, "allocate"));
  pool.deallocate = reinterpret_cast<decltype(pool.deallocate)>(symbol(library, kind, "deallocate"));
  pool.reallocate = reinterpret_cast<decltype(pool.reallocate)>(symbol(library, kind, "reallocate"));
  return pool;
}

// --- choosing -----------------------------------------------------------------------------------------------------------

// What to open, as the arguments say. Several pools may be opened one after the other over the same memory. `resident`:
// all of the memory is written to once, so that no page fault is left for later.
class Choice {
 public:
  Choice(workload::Arguments& arguments, std::size_t bytes_otherwise)
      : name_(arguments.text("pool", "tlsf")),
        pages_(arguments.text("pages", "list")),
        growable_(arguments.integer("growable", 0, 0, 1) != 0),
        bytes_(arguments.integer("bytes", bytes_otherwise, kPage, std::uint64_t{1} << 40)) {}

  Pool open(bool resident = false) {
    if (is("malloc")) return open_malloc();
    if (is("page")) return open_page(host_of(pages_));
    if (is("handle")) return open_handle(host_of(pages_), 16384);
    if (memory_ == nullptr) {
      memory_ = map(bytes_);
      if (resident) std::memset(memory_, 0, bytes_);
    }
    if (is("tlsf")) return open_tlsf(memory_, bytes_, growable_);
    return open_library(name_, memory_, bytes_, growable_);
  }
  bool is(const char* name) const { return std::strcmp(name_, name) == 0; }
  std::size_t bytes() const { return bytes_; }

 private:
  const char* name_;
  const char* pages_;
  bool growable_;
  std::size_t bytes_;
  void* memory_ = nullptr;
};

// What marks the line as a workload's, and which file's malloc this process calls: the proof of a preload. As
// workload::Report prints them.
inline void print_proof() {
  Dl_info info = {};
  const bool found = dladdr(reinterpret_cast<void*>(&std::malloc), &info) != 0 && info.dli_fname != nullptr;
  std::printf("\"workload\": \"%s\", \"malloc\": \"%s\"", program_invocation_short_name, found ? info.dli_fname : "");
}

// Resident bytes of this process, from /proc/self/statm. Allocates nothing.
inline std::size_t resident_bytes() {
  char text[128];
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) fail("no /proc/self/statm");
  const bool read = std::fgets(text, sizeof text, file) != nullptr;
  std::fclose(file);
  unsigned long total = 0;
  unsigned long resident = 0;
  if (!read || std::sscanf(text, "%lu %lu", &total, &resident) != 2) fail("no /proc/self/statm");
  return resident * kPage;
}

}  // namespace pools
