// SPDX-License-Identifier: MIT
//
// The loop that every implementation of TLSF is measured with (bench.c of jserv's tlsf-bsd, which mattconte's followers
// and the reports of its authors' course use): a table of slots; each operation picks a slot and a size at random. An
// empty slot is filled; of full ones, every tenth is resized, and the others are freed and filled anew.
//
// A request that fails leaves its slot empty (a resize that fails, as it was), is counted, and is never timed as if it had
// been served: whoever shows the time shows the count.
#pragma once

#include "pool.h"

namespace pools {

struct Slot {
  void* block;
  std::size_t bytes;
};

constexpr std::uint32_t kTenth = UINT32_MAX / 10;

struct Loop {
  std::size_t slots = 10000;
  std::size_t least = 512;
  std::size_t most = 512;
  bool touch = false;  // writes the block's first and last byte, as a program would
};

// A table of slots over one pool.
class Table {
 public:
  Table(const Pool& pool, const Loop& loop) : pool_(pool), loop_(loop), bytes_(loop.slots * sizeof(Slot)) {
    slots_ = static_cast<Slot*>(map(bytes_));
    std::memset(slots_, 0, bytes_);
  }
  ~Table() {
    clear();
    munmap(slots_, bytes_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  // Fills every slot once, in order.
  void fill(workload::Random& random) {
    for (std::size_t i = 0; i < loop_.slots; i++) {
      if (slots_[i].block == nullptr) make(slots_[i], size(random.next()));
    }
  }
  void operate(workload::Random& random) {
    // One number for all: its upper half picks the slot, what that leaves over the kind, its lower half the size.
    const std::uint64_t draw = random.next();
    const std::uint64_t place = (draw >> 32) * loop_.slots;
    Slot& slot = slots_[place >> 32];
    const std::size_t bytes = size(draw);
    if (slot.block == nullptr) return make(slot, bytes);
    if (static_cast<std::uint32_t>(place) < kTenth) return resize(slot, bytes);
    drop(slot);
    make(slot, bytes);
  }
  void clear() {
    for (std::size_t i = 0; i < loop_.slots; i++) {
      if (slots_[i].block != nullptr) drop(slots_[i]);
    }
  }
  std::uint64_t failed() const { return failed_; }
  void forget_failures() { failed_ = 0; }

  Slot& slot(std::size_t at) { return slots_[at]; }
  std::size_t size(std::uint64_t draw) const {
    return loop_.least + ((draw & 0xffffffff) * (loop_.most - loop_.least) >> 32);
  }
  void make(Slot& slot, std::size_t bytes) {
    slot.block = pool_.allocate(pool_.state, bytes == 0 ? 1 : bytes);
    slot.bytes = bytes == 0 ? 1 : bytes;
    if (slot.block == nullptr) {
      failed_++;
    } else if (loop_.touch) {
      touch(slot);
    }
  }
  void drop(Slot& slot) {
    pool_.deallocate(pool_.state, slot.block, slot.bytes);
    slot.block = nullptr;
  }
  void resize(Slot& slot, std::size_t bytes) {
    if (bytes == 0) bytes = 1;
    void* block = pool_.reallocate(pool_.state, slot.block, slot.bytes, bytes);
    if (block == nullptr) {
      failed_++;
      return;
    }
    slot = {block, bytes};
    if (loop_.touch) touch(slot);
  }

 private:
  void touch(const Slot& slot) {
    auto* at = static_cast<volatile char*>(pool_.enter(pool_.state, slot.block));
    at[0] = 1;
    at[slot.bytes - 1] = 1;
    pool_.leave(pool_.state, slot.block);
  }

  Pool pool_;
  Loop loop_;
  std::size_t bytes_;
  Slot* slots_;
  std::uint64_t failed_ = 0;
};

// Seconds of the processor that this process has used: what other programs took is not in it.
inline double cpu_s() {
  timespec now = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace pools
