// SPDX-License-Identifier: MIT
//
// A memory that is as weak as C++ allows: what an atomic access may read, and which plain accesses race.
//
//   location   w0 ── w1 ── w2 ── w3      its writes in modification order; each carries what its writer published by it
//                     │
//   thread     "of this location nothing before w1"     its view: of each location the first write that it may still read
//
// A load reads any write that its thread's view allows, and raises the view to it; an acquire joins what the write carries.
// A release store carries its writer's view, a relaxed one what the writer's last release fence saw. A read-modify-write
// takes its place right behind the write that it read and carries on what that one carried (C++20's release sequence). A
// store may also come before writes that its thread has not seen. The fences and accesses that are seq_cst are in the order
// in which they run: a fence sees what earlier ones saw and all seq_cst stores, a seq_cst access no less than those of its
// location.
//
// Views also count steps of threads (vector clocks): of two plain accesses to a byte, one a write, neither of which the other
// thread's view knows of, the later is a race, and so is a plain access against an atomic one.
//
// Source: Kang et al., "A promising semantics for relaxed-memory concurrency" (POPL 2017), without promises, which is RC11
// (Lahav et al., PLDI 2017): a load never reads what its own thread can only write afterwards ("load buffering"; ARM does
// that, and no order of ours stands against it). Of C11's seq_cst this is a little stronger than RC11: the order of seq_cst
// operations agrees with the order of the steps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace brimful::weak {

inline constexpr unsigned kMostThreads = 4;
inline constexpr std::size_t kMostLocations = 256;

// As the __atomic builtins number them.
enum class Order : int { kRelaxed, kConsume, kAcquire, kRelease, kAcqRel, kSeqCst };
inline bool acquires(Order order) { return order != Order::kRelaxed && order != Order::kRelease; }
inline bool releases(Order order) { return order >= Order::kRelease; }

// Which alternative is tried: 0 … count - 1, of which 0 is what a strong memory would do.
class Chooser {
 public:
  virtual unsigned choose_value(unsigned count) = 0;

 protected:
  ~Chooser() = default;
};

struct View {
  std::array<std::uint32_t, kMostLocations> stamps = {};
  std::array<std::uint32_t, kMostThreads> steps = {};
  void join(const View& other, std::size_t locations);
};

// What a cell of 1 … 8 bytes holds.
std::uint64_t read_cell(std::uintptr_t address, unsigned bytes);
void write_cell(std::uintptr_t address, unsigned bytes, std::uint64_t value);

class Memory {
 public:
  explicit Memory(Chooser& chooser) : chooser_(chooser) {}

  // Forgets all writes: memory is what it holds now, and everybody knows it.
  void reset(unsigned threads);

  // Accesses of `bytes` (1 … 8) at an address. The cell itself always holds the last write.
  std::uint64_t load(unsigned thread, std::uintptr_t address, unsigned bytes, Order order);
  void store(unsigned thread, std::uintptr_t address, unsigned bytes, std::uint64_t value, Order order);
  // Returns what it read; `change` computes what is written.
  template <class Change>
  std::uint64_t modify(unsigned thread, std::uintptr_t address, unsigned bytes, Order order, Change change) {
    Location& location = find(address, bytes);
    const std::size_t read = choose_read(thread, location, order, nullptr);
    const std::uint64_t before = location.order[read].value;
    write_behind(thread, location, read, truncate(change(before), bytes), order);
    return before;
  }
  // true: `expected` was found and replaced, else it holds what was found.
  bool compare_exchange(unsigned thread, std::uintptr_t address, unsigned bytes, std::uint64_t& expected,
                        std::uint64_t value, Order success, Order failure);
  void fence(unsigned thread, Order order);

  // An atomic access to a location that no other thread comes to, or that nobody writes.
  void touch(unsigned thread, std::uintptr_t address, unsigned bytes, bool is_write) {
    check(thread, address, bytes, is_write ? kAtomicWrite : kAtomicRead);
  }
  // A plain access, before it is done.
  void access(unsigned thread, std::uintptr_t address, std::size_t bytes, bool is_write);
  // Everything that `from` has done is known to `to`: a thread's end, and who waits for it.
  void synchronize(unsigned from, unsigned to) { threads_[to].current.join(threads_[from].current, count_); }

  // What all that was done determines: two orders of steps with the same value have the same futures.
  [[nodiscard]] std::uint64_t hash() const;
  [[nodiscard]] const std::string& fault() const { return fault_; }
  void note(unsigned thread, std::uint64_t value);

 private:
  struct Write {
    std::uint64_t value;
    std::uint32_t stamp;
    bool is_followed;  // a read-modify-write took the place behind it
    std::uint64_t name;
    View view;
  };
  struct Location {
    std::uintptr_t address;
    unsigned bytes;
    std::uint32_t number;
    std::uint32_t seq_cst;    // stamp of the last seq_cst store
    bool is_overwritten;      // by a plain store, whose value is not known yet
    unsigned overwriter;
    std::uint64_t hash;
    std::vector<Write> order;
  };
  struct Thread {
    View current;
    View released;  // at its last release fence
    View pending;   // what relaxed loads read, for the next acquire fence
    std::uint64_t hash;
  };
  enum Kind { kRead, kWrite, kAtomicRead, kAtomicWrite, kKinds };
  struct Byte {
    std::uint16_t steps[kKinds][kMostThreads];
  };
  struct Line {
    std::uintptr_t number;
    std::array<Byte, 64> bytes;
  };

  static std::uint64_t truncate(std::uint64_t value, unsigned bytes) {
    return bytes == 8 ? value : value & ((std::uint64_t{1} << 8 * bytes) - 1);
  }
  Location& find(std::uintptr_t address, unsigned bytes);
  std::uint32_t floor_of(unsigned thread, const Location& location, Order order) const;
  std::size_t choose_read(unsigned thread, Location& location, Order order, const std::uint64_t* expected);
  void see(unsigned thread, Location& location, std::size_t read, Order order);
  void write_behind(unsigned thread, Location& location, std::size_t read, std::uint64_t value, Order order);
  void insert(unsigned thread, Location& location, std::size_t place, Write write, Order order, bool appended);
  void check(unsigned thread, std::uintptr_t address, std::size_t bytes, Kind kind);
  Line& line_of(std::uintptr_t number);
  void mix_into(unsigned thread, std::uint64_t value);

  Chooser& chooser_;
  unsigned thread_count_ = 0;
  std::array<Thread, kMostThreads> threads_;
  std::unordered_map<std::uintptr_t, std::uint32_t> numbers_;
  std::vector<Location> locations_;
  std::size_t count_ = 0;
  View fences_;  // what seq_cst fences saw; its steps are unused: a fence alone is no hand-over
  std::uint64_t seq_cst_hash_ = 0;
  std::vector<Line> lines_;
  std::size_t line_count_ = 0;
  std::unordered_map<std::uintptr_t, std::size_t> line_numbers_;
  std::string fault_;
};

}  // namespace brimful::weak
