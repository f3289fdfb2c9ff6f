// SPDX-License-Identifier: MIT
//
// The pools' host on Linux. The one file of src/pools/ that knows an operating system; a member of the archive of its own,
// linked only by programs that name it.
//
// Runs of up to kMostPages pages are cut from reservations of 8 MiB, and one that comes back gives its memory to the system
// (MADV_DONTNEED) but keeps its addresses, for the next request of its length:
//
//   shelf[pages]  →  chunk {next, count, addresses …}  →  chunk …      chunks: pages of our own, 8 bytes a run
//
// So a pool full of holes is still one mapping. With munmap each hole would split one, and a process may have 65,530
// (vm.max_map_count): a handle pool met that at 3 GB. It also halves the system calls. What is never given back is
// address space: of each length, the most that was in use at once. Lengths are not joined or split: that keeps the bound.
//
// Reservations say MADV_NOHUGEPAGE: with THP=always one touched page would otherwise cost 2 MiB, and pages come and go here.
// Where memory is charged when it is mapped (vm.overcommit_memory=2), what waits on a shelf stays charged.
//
// After fork() in a process with several threads the child must not use pools: a lock may be held by a thread that is gone.
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "brimful/pool_host.h"
#include "pools/lock.h"

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMostPages = 64;
constexpr std::size_t kReservationBytes = std::size_t{8} << 20;

struct Chunk {
  static constexpr std::size_t kPlaces = (kPageBytes - 2 * sizeof(std::size_t)) / sizeof(void*);

  Chunk* next;
  std::size_t count;
  void* addresses[kPlaces];
};
static_assert(sizeof(Chunk) == kPageBytes);

class ErrnoKept {
 public:
  ErrnoKept() : kept_(errno) {}
  ~ErrnoKept() { errno = kept_; }
  ErrnoKept(const ErrnoKept&) = delete;
  ErrnoKept& operator=(const ErrnoKept&) = delete;

 private:
  int kept_;
};

void* map(std::size_t bytes) {
  void* pages = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pages == MAP_FAILED ? nullptr : pages;
}

// Caller holds the lock.
class Shelves {
 public:
  void* take(std::size_t pages) {
    Chunk*& top = tops_[pages];
    if (top == nullptr) return cut(pages);
    void* run = top->addresses[--top->count];
    if (top->count == 0) {
      Chunk* empty = top;
      top = empty->next;
      empty->next = spare_;
      spare_ = empty;
    }
    return run;
  }

  // false: no memory to note it in.
  bool put(void* run, std::size_t pages) {
    Chunk*& top = tops_[pages];
    if (top == nullptr || top->count == Chunk::kPlaces) {
      Chunk* chunk = new_chunk();
      if (chunk == nullptr) return false;
      chunk->next = top;
      chunk->count = 0;
      top = chunk;
    }
    top->addresses[top->count++] = run;
    return true;
  }

 private:
  Chunk* new_chunk() {
    if (spare_ == nullptr) return static_cast<Chunk*>(cut(1));
    Chunk* chunk = spare_;
    spare_ = chunk->next;
    return chunk;
  }

  void* cut(std::size_t pages) {
    const std::size_t bytes = pages * kPageBytes;
    if (end_ - next_ < bytes && !reserve()) return nullptr;
    void* run = reinterpret_cast<void*>(next_);
    next_ += bytes;
    return run;
  }

  // A further reservation; the rest of the last one, fewer pages than a run may have, waits for requests of its length.
  bool reserve() {
    void* start = map(kReservationBytes);
    if (start == nullptr) return false;
    madvise(start, kReservationBytes, MADV_NOHUGEPAGE);
    const std::uintptr_t rest = next_;
    const std::size_t rest_pages = (end_ - next_) / kPageBytes;
    next_ = reinterpret_cast<std::uintptr_t>(start);
    end_ = next_ + kReservationBytes;
    if (rest_pages != 0) put(reinterpret_cast<void*>(rest), rest_pages);
    return true;
  }

  Chunk* tops_[kMostPages + 1] = {};
  Chunk* spare_ = nullptr;
  std::uintptr_t next_ = 0;  // [next_, end_): of the last reservation, not cut yet
  std::uintptr_t end_ = 0;
};

constinit Shelves shelves;
constinit brimful::pools::Lock shelves_lock;

void* get_pages(void* /*context*/, std::size_t bytes) {
  const ErrnoKept guard;
  if (bytes > kMostPages * kPageBytes) return map(bytes);
  const brimful::pools::LockGuard lock(shelves_lock, *brimful_pool_host_linux());
  return shelves.take(bytes / kPageBytes);
}

void give_pages(void* /*context*/, void* pages, std::size_t bytes) {
  const ErrnoKept guard;
  if (bytes > kMostPages * kPageBytes) {
    // munmap fails when the process has too many mappings to split one: then the memory goes and its addresses stay.
    if (munmap(pages, bytes) != 0) madvise(pages, bytes, MADV_DONTNEED);
    return;
  }
  madvise(pages, bytes, MADV_DONTNEED);
  const brimful::pools::LockGuard lock(shelves_lock, *brimful_pool_host_linux());
  shelves.put(pages, bytes / kPageBytes);  // else its addresses are lost, and nothing more
}

void wait(void* /*context*/, std::uint32_t* word, std::uint32_t expected) {
  const ErrnoKept guard;
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void wake(void* /*context*/, std::uint32_t* word) {
  const ErrnoKept guard;
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

std::uint64_t now_ns(void* /*context*/) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 + static_cast<std::uint64_t>(now.tv_nsec);
}

constexpr brimful_pool_host kLinux{
    sizeof(brimful_pool_host), kPageBytes, nullptr, get_pages, give_pages, wait, wake, now_ns};

}  // namespace

extern "C" const brimful_pool_host* brimful_pool_host_linux(void) { return &kLinux; }
