// SPDX-License-Identifier: MIT
//
// slots/guards.h: the pool.
#include "slots/guards.h"

#include <string.h>

#include "base/exponential.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/fault.h"
#include "pages/heap.h"
#include "slots/freed_slots.h"
#include "slots/guard_report.h"
#include "slots/stack_copy.h"

namespace brimful::meta {

constinit GuardPool guard_pool = {};

}  // namespace brimful::meta

namespace brimful::slots {

constinit sync::SampleMutex guard_lock;
constinit double guard_rate = 0;

namespace {

using meta::guard_pool;
using meta::GuardRecord;
using meta::GuardState;

// At a page of 4 KiB 600 KiB in all, records included: a heap has them when it is large enough for 1 % of it.
constexpr std::uint32_t kSlots = 64;
constexpr std::uint32_t kFirstSlots = 4;
constexpr std::uint64_t kHeapBytesASlot = std::uint64_t{1} << 20;
constexpr std::size_t kMostPageBytes = std::size_t{512} << 10;  // of larger pages fewer
constexpr std::uint32_t kHuntedSlots = 8192;
constexpr std::uint32_t kLeastGuards = 8;
// Records made usable at a time.
constexpr std::uint32_t kStepRecords = 64;
constexpr std::uint64_t kHuntedBelow = 1000;
constexpr std::uint64_t kPauseMs = 4;
// One in so many objects lies at the start of its page.
constexpr std::uint64_t kLeftShare = 4;

GuardRecord* record_named(std::uint32_t slot) { return &guard_record(slot - 1); }

// Guarded by guard_lock, but for what begin_guards() writes.
struct Guards {
  std::uint32_t used;    // slots, from the first
  std::uint32_t usable;  // of these and the next, the records can be written to
  FreedSlots<record_named> freed;
  std::uint64_t number;
  bool is_refused;  // the system has no address space for us
  bool is_hunted;
  std::atomic<std::uint64_t> last_ms;  // the clock at the last choice; 0: there was none
};
constinit Guards guards = {};

bool make_pool() {
  if (guard_pool.records != 0) return true;
  if (guards.is_refused) return false;
  const std::size_t page = os::page_bytes();
  std::uint32_t slots = guards.is_hunted ? kHuntedSlots : kSlots;
  while (!guards.is_hunted && slots * page > kMostPageBytes && slots > kLeastGuards) slots /= 2;
  void* memory = nullptr;
  std::size_t pages = 0;
  std::size_t records = 0;
  for (; memory == nullptr && slots >= kLeastGuards; slots /= 4) {
    pages = (2 * std::size_t{slots} + 1) * page;
    records = round_up(slots * sizeof(GuardRecord), page);
    memory = os::calls.map(0, pages + records, os::Access::kNone);
    if (memory != nullptr) break;
  }
  const auto start = reinterpret_cast<std::uint64_t>(memory);
  if (memory == nullptr) {
    guards.is_refused = true;
    return false;
  }
  os::calls.name(start, pages + records, "brimful guards");
  os::watch_faults(report_fault);
  std::atomic_ref(guard_pool.start).store(start, std::memory_order_relaxed);  // relaxed: published by the bytes
  guard_pool.slots = slots;
  guard_pool.page_bytes = static_cast<std::uint32_t>(page);
  guard_pool.records = start + pages;
  guard_pool.bytes.store(pages, std::memory_order_release);  // pairs with: is_guarded() (all of the above)
  return true;
}

// A slot + 1, and the object's number. 0: all objects live.
struct TakenSlot {
  std::uint32_t link;
  std::uint64_t number;
};

// How many slots the heap is large enough for.
std::uint32_t worthwhile_slots() {
  if (guards.is_hunted) return guard_pool.slots;
  const sync::MutexLock guard(pages::heap.lock);
  const std::uint64_t slots = kFirstSlots + pages::heap.pages.stats().used_bytes / kHeapBytesASlot;
  return slots < guard_pool.slots ? static_cast<std::uint32_t>(slots) : guard_pool.slots;
}

// false: all slots have been used that may be, or there is no memory for more records.
bool has_unused() {
  if (guards.used >= worthwhile_slots()) return false;
  if (guards.used < guards.usable) return true;
  if (guards.usable == guard_pool.slots) return false;
  const std::uint64_t page = guard_pool.page_bytes;
  const std::uint64_t from = round_down(guard_pool.records + guards.usable * sizeof(GuardRecord), page);
  const std::uint32_t wanted = guards.usable + kStepRecords;
  const std::uint32_t usable = wanted < guard_pool.slots ? wanted : guard_pool.slots;
  const std::uint64_t to = round_up(guard_pool.records + usable * sizeof(GuardRecord), page);
  if (!os::calls.commit(from, to - from)) return false;
  guards.usable = usable;
  // pairs with: nearest_guarded(), guarded_use() (records that can be read)
  guard_pool.readable.store(usable, std::memory_order_release);
  return true;
}

TakenSlot take_guard_slot() {
  const sync::MutexLock guard(guard_lock);
  if (!make_pool()) return {0, 0};
  guards.freed.collect([](std::uint32_t) {});
  const std::uint32_t link = has_unused() ? ++guards.used : guards.freed.take();
  return {link, ++guards.number};
}

void put_back(std::uint32_t slot) {
  const sync::MutexLock guard(guard_lock);
  guards.freed.put_behind(slot + 1);
}

// Whether it is time for another, where the program's time is spared.
bool is_time() {
  if (guards.is_hunted) return true;
  const std::uint64_t now_ms = os::calls.now_ms();
  const std::uint64_t before = guards.last_ms.load(std::memory_order_relaxed);  // relaxed: a time by itself
  if (before != 0 && now_ms - before < kPauseMs) return false;
  guards.last_ms.store(now_ms, std::memory_order_relaxed);  // relaxed: of two threads at once both may go on
  return before != 0;
}

// What lies beside an object: any byte that a program writes by mistake is another one, but for one value in 255.
unsigned char pattern_of(const GuardRecord& record) {
  return static_cast<unsigned char>(0x80 | random_of(record.number));
}

// Whether [from, to) holds nothing but the pattern: each byte is as the one before it.
bool is_pattern(unsigned char pattern, std::uint64_t from, std::uint64_t to) {
  const auto* first = reinterpret_cast<const unsigned char*>(from);
  return from == to || (*first == pattern && memcmp(first, first + 1, to - from - 1) == 0);
}

// The first byte in [from, to) that is not the pattern; `to`: none.
std::uint64_t first_change(const GuardRecord& record, std::uint64_t from, std::uint64_t to) {
  const unsigned char pattern = pattern_of(record);
  if (is_pattern(pattern, from, to)) return to;
  while (from < to && *reinterpret_cast<const unsigned char*>(from) == pattern) ++from;
  return from;
}
std::uint64_t last_change(const GuardRecord& record, std::uint64_t from, std::uint64_t to) {
  const unsigned char pattern = pattern_of(record);
  if (is_pattern(pattern, from, to)) return from;
  while (to > from && *reinterpret_cast<const unsigned char*>(to - 1) == pattern) --to;
  return to;
}

void check_beside(const GuardRecord& record, std::uint64_t page, const char* call) {
  const std::uint64_t page_end = page + guard_pool.page_bytes;
  const std::uint64_t end = record.address + record.bytes;
  const std::uint64_t behind = first_change(record, end, page_end);
  if (behind != page_end) report_changed(record, behind, call);
  const std::uint64_t before = last_change(record, page, record.address);
  if (before != page) report_changed(record, before - 1, call);
}

std::uint32_t slot_of(std::uint64_t address) {
  return static_cast<std::uint32_t>((address - guard_pool.start) / guard_pool.page_bytes / 2);
}

std::uint32_t readable_records() {
  return guard_pool.readable.load(std::memory_order_acquire);  // pairs with: has_unused() (records that can be read)
}

// The record of the object that starts at the address, live or not; nullptr: none does.
GuardRecord* record_at(std::uint64_t address) {
  const std::uint64_t page = (address - guard_pool.start) / guard_pool.page_bytes;
  if (page % 2 == 0 || slot_of(address) >= readable_records()) return nullptr;
  GuardRecord& record = guard_record(slot_of(address));
  return state_of(record) != GuardState::kUnused && record.address == address ? &record : nullptr;
}

}  // namespace

GuardRecord& guard_record(std::uint32_t slot) { return reinterpret_cast<GuardRecord*>(guard_pool.records)[slot]; }

std::uint64_t guard_page(std::uint32_t slot) {
  return guard_pool.start + (2 * std::uint64_t{slot} + 1) * guard_pool.page_bytes;
}

void begin_guards(std::uint64_t objects) {
  guards.is_hunted = objects < kHuntedBelow;
  constexpr double kAll = 1e9;
  const auto chance = 1 / static_cast<double>(objects);
  // With it 1 - exp(-rate) = chance.
  guard_rate = objects == 0 ? 0 : objects == 1 ? kAll : -natural_log(1 - chance);
}

void* allocate_guarded(std::size_t requested) {
  if (requested > kMostGuardedBytes || !is_time()) return nullptr;
  const TakenSlot taken = take_guard_slot();
  if (taken.link == 0) return nullptr;
  const std::uint32_t slot = taken.link - 1;
  GuardRecord& record = guard_record(slot);
  const std::uint64_t page = guard_page(slot);
  const std::uint64_t page_end = page + guard_pool.page_bytes;
  if (!os::calls.commit(page, guard_pool.page_bytes)) {
    put_back(slot);
    return nullptr;
  }
  // relaxed: until it is live, nobody but a fault's report looks at it, and takes it for what it is
  record.state.store(static_cast<std::uint32_t>(GuardState::kUnused), std::memory_order_relaxed);
  record.number = taken.number;
  record.bytes = requested;
  const bool is_left = random_of(taken.number * kRandomStep ^ guard_pool.start) % kLeftShare == 0;
  // What is asked for with an alignment is a multiple of it (aligned_request()), and so lies right at the page's end.
  const std::uint64_t least = requested != 0 ? requested : 1;
  record.address = is_left ? page : round_down(page_end - least, kObjectAlignment);
  memset(reinterpret_cast<void*>(page), pattern_of(record), record.address - page);
  memset(reinterpret_cast<void*>(record.address + requested), pattern_of(record),
         page_end - record.address - requested);
  record.release.stack_bytes = 0;
  record.allocation.stack_offset = offsetof(GuardRecord, allocation_top);
  record.release.stack_offset = offsetof(GuardRecord, release_top);
  copy_stack(record.allocation, reinterpret_cast<char*>(&record), meta::kGuardStackBytes);
  // pairs with: state_of() (the record)
  record.state.store(static_cast<std::uint32_t>(GuardState::kLive), std::memory_order_release);
  return reinterpret_cast<void*>(record.address);
}

GuardRecord* guarded_at(std::uint64_t address, const char* call) {
  GuardRecord* record = record_at(address);
  if (record != nullptr && state_of(*record) == GuardState::kLive) return record;
  report_bad_guarded(address, record, call);
  return nullptr;
}

bool open_guard_page(std::uint64_t address) {
  return os::calls.commit(round_down(address, guard_pool.page_bytes), guard_pool.page_bytes);
}

void free_guarded(std::uint64_t address, const char* call) {
  GuardRecord* live = guarded_at(address, call);
  if (live == nullptr) return;
  GuardRecord& record = *live;
  auto state = static_cast<std::uint32_t>(GuardState::kLive);
  // pairs with: state_of() (the object's last use); of frees that race, one gets it
  if (!record.state.compare_exchange_strong(state, static_cast<std::uint32_t>(GuardState::kEnding),
                                            std::memory_order_acq_rel, std::memory_order_acquire)) {
    return report_bad_guarded(address, &record, call);
  }
  const std::uint32_t slot = slot_of(address);
  check_beside(record, guard_page(slot), call);
  if (config::checks.zero) memset(reinterpret_cast<void*>(record.address), 0, record.bytes);
  copy_stack(record.release, reinterpret_cast<char*>(&record), meta::kGuardStackBytes);
  os::calls.seal(guard_page(slot), guard_pool.page_bytes);
  // pairs with: state_of() (the record)
  record.state.store(static_cast<std::uint32_t>(GuardState::kFreed), std::memory_order_release);
  guards.freed.push(slot + 1);
}

GuardRecord* nearest_guarded(std::uint64_t address) {
  const std::uint64_t page = (address - guard_pool.start) / guard_pool.page_bytes;
  GuardRecord* best = nullptr;
  std::uint64_t best_distance = UINT64_MAX;
  const auto look = [&](std::uint64_t slot) {
    if (slot >= readable_records()) return;
    GuardRecord& record = guard_record(static_cast<std::uint32_t>(slot));
    if (state_of(record) == GuardState::kUnused) return;
    const std::uint64_t end = record.address + record.bytes;
    const std::uint64_t distance = address < record.address ? record.address - address
                                   : address >= end         ? address - end + 1
                                                            : 0;
    if (distance >= best_distance) return;
    best = &record;
    best_distance = distance;
  };
  // A page without access lies between two slots; before the first there is none (it wraps around).
  if (page % 2 == 0) look(page / 2 - 1);
  look(page / 2);
  return best;
}

GuardedUse guarded_use() {
  GuardedUse use = {};
  const std::uint32_t records = readable_records();
  for (std::uint32_t slot = 0; slot < records; ++slot) {
    const GuardRecord& record = guard_record(slot);
    if (state_of(record) != GuardState::kLive) continue;
    ++use.objects;
    use.bytes += record.bytes;
  }
  return use;
}

}  // namespace brimful::slots
