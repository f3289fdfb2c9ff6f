// SPDX-License-Identifier: MIT
//
// weak/memory.h.
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace brimful::weak {
namespace {

constexpr std::uint32_t kStampStep = 1024;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 29);
}

}  // namespace

std::uint64_t read_cell(std::uintptr_t address, unsigned bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), bytes);
  return value;
}
void write_cell(std::uintptr_t address, unsigned bytes, std::uint64_t value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, bytes);
}

void View::join(const View& other, std::size_t locations) {
  for (std::size_t i = 0; i < locations; ++i) stamps[i] = std::max(stamps[i], other.stamps[i]);
  for (unsigned t = 0; t < kMostThreads; ++t) steps[t] = std::max(steps[t], other.steps[t]);
}

void Memory::reset(unsigned threads) {
  thread_count_ = threads;
  for (unsigned t = 0; t < kMostThreads; ++t) {
    threads_[t] = Thread{};
    threads_[t].current.steps[t] = 1;
    threads_[t].hash = t + 1;
  }
  numbers_.clear();
  count_ = 0;
  fences_ = View{};
  seq_cst_hash_ = 0;
  line_count_ = 0;
  line_numbers_.clear();
  fault_.clear();
}

void Memory::mix_into(unsigned thread, std::uint64_t value) { threads_[thread].hash = mix(threads_[thread].hash, value); }
void Memory::note(unsigned thread, std::uint64_t value) { mix_into(thread, value); }

std::uint64_t Memory::hash() const {
  std::uint64_t result = seq_cst_hash_;
  for (unsigned t = 0; t < thread_count_; ++t) result = mix(result, threads_[t].hash);
  std::uint64_t sum = 0;  // locations are numbered as threads come to them, which says nothing
  for (std::size_t i = 0; i < count_; ++i) sum += mix(locations_[i].address, locations_[i].hash);
  return mix(result, sum);
}

Memory::Location& Memory::find(std::uintptr_t address, unsigned bytes) {
  const auto [entry, is_new] = numbers_.try_emplace(address, static_cast<std::uint32_t>(count_));
  if (is_new) {
    if (count_ == kMostLocations) {
      fault_ = "more locations than the memory has room for";
      --count_;
      entry->second = static_cast<std::uint32_t>(count_);
    }
    if (count_ == locations_.size()) locations_.emplace_back();
    Location& location = locations_[count_];
    location.address = address;
    location.bytes = bytes;
    location.number = static_cast<std::uint32_t>(count_);
    location.seq_cst = 0;
    location.is_overwritten = false;
    location.hash = 0;
    location.order.clear();
    location.order.push_back({read_cell(address, bytes), kStampStep, false, 0, {}});
    ++count_;
  }
  Location& location = locations_[entry->second];
  if (location.bytes != bytes) {  // the memory is another structure's now, whose history begins here
    Write write = std::move(location.order.back());
    write.value = read_cell(address, bytes);
    location.order.clear();
    location.order.push_back(std::move(write));
    location.bytes = bytes;
  }
  if (location.is_overwritten) {
    location.is_overwritten = false;
    const unsigned by = location.overwriter;
    Write write = {read_cell(address, bytes), location.order.back().stamp + kStampStep, false, threads_[by].hash,
                   threads_[by].released};
    write.view.stamps[location.number] = write.stamp;
    threads_[by].current.stamps[location.number] = write.stamp;
    location.hash = mix(location.hash, write.name);
    location.order.push_back(write);
  }
  return location;
}

std::uint32_t Memory::floor_of(unsigned thread, const Location& location, Order order) const {
  const std::uint32_t own = threads_[thread].current.stamps[location.number];
  if (order != Order::kSeqCst) return own;
  return std::max({own, location.seq_cst, fences_.stamps[location.number]});
}

// Which write is read: one of those that the view allows, the last one first. With `expected`: of a compare-and-exchange,
// which can't take the place behind a write that has a follower.
std::size_t Memory::choose_read(unsigned thread, Location& location, Order order, const std::uint64_t* expected) {
  const std::uint32_t floor = floor_of(thread, location, order);
  std::array<std::size_t, 64> candidates;
  unsigned count = 0;
  for (std::size_t i = location.order.size(); i-- > 0 && count < candidates.size();) {
    const Write& write = location.order[i];
    const bool is_taken = write.is_followed && (expected == nullptr || *expected == write.value);
    if (!is_taken) candidates[count++] = i;
    if (write.stamp <= floor) break;
  }
  const std::size_t chosen = candidates[count > 1 ? chooser_.choose_value(count) : 0];
  return chosen;
}

void Memory::see(unsigned thread, Location& location, std::size_t read, Order order) {
  const Write& write = location.order[read];
  Thread& self = threads_[thread];
  self.current.stamps[location.number] = std::max(self.current.stamps[location.number], write.stamp);
  (acquires(order) ? self.current : self.pending).join(write.view, count_);
  mix_into(thread, mix(location.address, write.name));
  check(thread, location.address, location.bytes, kAtomicRead);
}

std::uint64_t Memory::load(unsigned thread, std::uintptr_t address, unsigned bytes, Order order) {
  Location& location = find(address, bytes);
  const std::uint32_t floor = floor_of(thread, location, order);
  std::array<std::size_t, 64> candidates;
  unsigned count = 0;
  for (std::size_t i = location.order.size(); i-- > 0 && count < candidates.size();) {
    candidates[count++] = i;
    if (location.order[i].stamp <= floor) break;
  }
  const std::size_t read = candidates[count > 1 ? chooser_.choose_value(count) : 0];
  const std::uint64_t value = location.order[read].value;
  see(thread, location, read, order);
  return value;
}

void Memory::insert(unsigned thread, Location& location, std::size_t place, Write write, Order order, bool appended) {
  Thread& self = threads_[thread];
  mix_into(thread, mix(location.address, write.value));
  write.name = self.hash;
  self.current.stamps[location.number] = write.stamp;
  const View& published = releases(order) ? self.current : self.released;
  write.view.join(published, count_);
  write.view.stamps[location.number] = std::max(write.view.stamps[location.number], write.stamp);
  check(thread, location.address, location.bytes, kAtomicWrite);
  ++self.current.steps[thread];
  if (order == Order::kSeqCst) {
    location.seq_cst = std::max(location.seq_cst, write.stamp);
    seq_cst_hash_ = mix(seq_cst_hash_, write.name);
  }
  const std::uint64_t value = write.value;
  const std::uint64_t name = write.name;
  location.order.insert(location.order.begin() + static_cast<std::ptrdiff_t>(place), std::move(write));
  if (appended) {
    location.hash = mix(location.hash, name);
    write_cell(location.address, location.bytes, value);
  } else {
    location.hash = 0;
    for (std::size_t i = 1; i < location.order.size(); ++i) location.hash = mix(location.hash, location.order[i].name);
  }
}

void Memory::store(unsigned thread, std::uintptr_t address, unsigned bytes, std::uint64_t value, Order order) {
  Location& location = find(address, bytes);
  const std::uint32_t floor = floor_of(thread, location, order);
  // Behind which write: the last one, or an earlier one that the view allows.
  std::array<std::size_t, 64> candidates;
  unsigned count = 0;
  for (std::size_t i = location.order.size(); i-- > 0 && count < candidates.size();) {
    const Write& write = location.order[i];
    const bool is_last = i + 1 == location.order.size();
    if (is_last || (!write.is_followed && location.order[i + 1].stamp - write.stamp > 16)) candidates[count++] = i;
    if (write.stamp <= floor) break;
  }
  const std::size_t behind = candidates[count > 1 ? chooser_.choose_value(count) : 0];
  const bool is_last = behind + 1 == location.order.size();
  const std::uint32_t before = location.order[behind].stamp;
  const std::uint32_t stamp = is_last ? before + kStampStep : before + (location.order[behind + 1].stamp - before) / 2;
  insert(thread, location, behind + 1, {truncate(value, bytes), stamp, false, 0, {}}, order, is_last);
}

void Memory::write_behind(unsigned thread, Location& location, std::size_t read, std::uint64_t value, Order order) {
  see(thread, location, read, order);
  Write& before = location.order[read];
  before.is_followed = true;
  Write write = {value, before.stamp + 1, false, 0, before.view};
  insert(thread, location, read + 1, std::move(write), order, read + 1 == location.order.size());
}

bool Memory::compare_exchange(unsigned thread, std::uintptr_t address, unsigned bytes, std::uint64_t& expected,
                              std::uint64_t value, Order success, Order failure) {
  Location& location = find(address, bytes);
  const std::size_t read = choose_read(thread, location, failure == Order::kSeqCst ? failure : success, &expected);
  const std::uint64_t found = location.order[read].value;
  if (found != expected) {
    see(thread, location, read, failure);
    expected = found;
    return false;
  }
  write_behind(thread, location, read, truncate(value, bytes), success);
  return true;
}

void Memory::fence(unsigned thread, Order order) {
  Thread& self = threads_[thread];
  mix_into(thread, static_cast<std::uint64_t>(order));
  if (acquires(order)) self.current.join(self.pending, count_);
  if (order == Order::kSeqCst) {
    for (std::size_t i = 0; i < count_; ++i) {
      const std::uint32_t stamp = std::max({self.current.stamps[i], fences_.stamps[i], locations_[i].seq_cst});
      self.current.stamps[i] = fences_.stamps[i] = stamp;
    }
    seq_cst_hash_ = mix(seq_cst_hash_, self.hash);
  }
  if (releases(order)) {
    self.released = self.current;
    ++self.current.steps[thread];
  }
}

Memory::Line& Memory::line_of(std::uintptr_t number) {
  const auto [entry, is_new] = line_numbers_.try_emplace(number, line_count_);
  if (is_new) {
    if (line_count_ == lines_.size()) lines_.emplace_back();
    lines_[line_count_].number = number;
    std::memset(&lines_[line_count_].bytes, 0, sizeof lines_[line_count_].bytes);
    ++line_count_;
  }
  return lines_[entry->second];
}

void Memory::check(unsigned thread, std::uintptr_t address, std::size_t bytes, Kind kind) {
  // Which accesses of others race with one of this kind.
  static constexpr bool kRaces[kKinds][kKinds] = {
      {false, true, false, true}, {true, true, true, true}, {false, true, false, false}, {true, true, false, false}};
  const auto& known = threads_[thread].current.steps;
  while (bytes > 0) {
    Line& line = line_of(address / 64);
    for (std::size_t at = address % 64; at < 64 && bytes > 0; ++at, --bytes, ++address) {
      Byte& byte = line.bytes[at];
      for (unsigned other = 0; other < kKinds; ++other) {
        if (!kRaces[kind][other]) continue;
        for (unsigned t = 0; t < thread_count_; ++t) {
          if (t == thread || byte.steps[other][t] <= known[t]) continue;
          if (!fault_.empty()) continue;
          static constexpr const char* kNames[] = {"plain read", "plain write", "atomic read", "atomic write"};
          char text[160];
          std::snprintf(text, sizeof text, "race: %s of thread %u at %#lx after a %s of thread %u that it knows nothing of",
                        kNames[kind], thread, static_cast<unsigned long>(address), kNames[other], t);
          fault_ = text;
        }
      }
      byte.steps[kind][thread] = static_cast<std::uint16_t>(known[thread]);
    }
  }
}

void Memory::access(unsigned thread, std::uintptr_t address, std::size_t bytes, bool is_write) {
  check(thread, address, bytes, is_write ? kWrite : kRead);
  if (!is_write || numbers_.empty()) return;
  for (std::uintptr_t at = address & ~std::uintptr_t{3}; at < address + bytes; at += 4) {
    const auto entry = numbers_.find(at);
    if (entry == numbers_.end()) continue;
    locations_[entry->second].is_overwritten = true;
    locations_[entry->second].overwriter = thread;
  }
}

}  // namespace brimful::weak
