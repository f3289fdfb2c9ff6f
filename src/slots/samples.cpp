// SPDX-License-Identifier: MIT
//
// slots/samples.h.
#include "slots/samples.h"

#include <bit>

#include "base/exponential.h"
#include "meta/granule_table.h"
#include "meta/misuse.h"
#include "os/calls.h"
#include "os/clock.h"
#include "pages/run_stacks.h"
#include "slots/freed_slots.h"
#include "slots/lives.h"
#include "slots/object_checks.h"
#include "slots/sampling.h"
#include "slots/slab.h"
#include "slots/stack_copy.h"

namespace brimful::slots {

constinit sync::SampleMutex sample_lock;

namespace {

using meta::sample_control;
using meta::SampleRecord;
using meta::SampleState;

// 2 GiB of address space. Where there is not so much, fewer.
constexpr std::uint32_t kMostSlots = 1 << 16;
constexpr std::uint32_t kLeastSlots = 1 << 8;
// Made usable at a time.
constexpr std::uint32_t kStepSlots = 64;
// Records of freed blocks that are kept: enough for who looks four times a second at 4,000 samples a second.
constexpr std::uint32_t kKeptRecords = 1024;
// With so many, all but kKeptRecords lose their memory: so half as many as a peak left behind are given back in one go, and
// a heap that swings by less never pays for it.
constexpr std::uint32_t kMostFreedRecords = 2 * kKeptRecords;

// For each sampled slab, the slot of each of its objects.
struct SlabSlots {
  std::uint32_t of[BRIMFUL_MAX_OBJECTS];
};
constexpr std::uint32_t kMostSlabs = 4096;

SampleRecord* record_of(std::uint32_t slot) {
  return reinterpret_cast<SampleRecord*>(sample_control.records + std::uint64_t{slot - 1} * meta::kSampleSlotBytes);
}

// Guarded by sample_lock.
struct Samples {
  char* slots;
  SlabSlots* tables;
  std::uint32_t usable_slots;
  std::uint32_t used_tables;
  std::uint32_t free_tables;  // list through of[0]; number + 1
  FreedSlots<record_of> freed;
  std::uint32_t emptied;                 // slots whose memory went back
  std::uint64_t empty[kMostSlots / 64];  // which
  bool is_refused;                       // the system has no address space for us
  List<Slab> partial[kClassCount];       // slabs with objects that may be taken
};
BRIMFUL_ZEROS_COLD constinit Samples samples = {};

// There was a sample. For who does not hold the lock.
bool has_records() {
  return std::atomic_ref(sample_control.magic).load(std::memory_order_acquire) != 0;  // pairs with: reserve_slots()
}

// Counts for readers; also of frees, which hold no lock.
void count(std::atomic<std::uint64_t>& counter) {
  counter.fetch_add(1, std::memory_order_relaxed);  // relaxed: a count for readers
}

// Blocks like this one that its being sampled stands for.
double weight_of(const SampleRecord* record) {
  return 1 / chance_below(static_cast<double>(record->usable_bytes) / static_cast<double>(record->interval_bytes));
}

void add_estimate(const SampleRecord* record, std::atomic<std::uint64_t>& bytes, std::atomic<std::uint64_t>& in_1024) {
  const double weight = weight_of(record);
  const auto rounded = [](double value) {
    const auto whole = static_cast<std::uint64_t>(value);
    return value - static_cast<double>(whole) < 0.5 ? whole : whole + 1;
  };
  // relaxed: sums for readers
  bytes.fetch_add(rounded(weight * static_cast<double>(record->usable_bytes)), std::memory_order_relaxed);
  in_1024.fetch_add(rounded(weight * 1024), std::memory_order_relaxed);  // relaxed: as above
}

bool reserve_slots() {
  if (samples.slots != nullptr) return true;
  if (samples.is_refused) return false;
  const std::size_t table_bytes = std::size_t{kMostSlabs} * sizeof(SlabSlots);
  std::uint32_t slots = kMostSlots;
  void* memory = nullptr;
  for (; memory == nullptr && slots >= kLeastSlots; slots /= 4) {
    memory = os::calls.map(0, slots * meta::kSampleSlotBytes + table_bytes, os::Access::kNone);
    if (memory != nullptr) break;
  }
  if (memory == nullptr) {
    samples.is_refused = true;
    return false;
  }
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  os::calls.name(start, slots * meta::kSampleSlotBytes + table_bytes, "brimful samples");
  samples.slots = static_cast<char*>(memory);
  samples.tables = reinterpret_cast<SlabSlots*>(start + slots * meta::kSampleSlotBytes);
  sample_control.version = 1;
  sample_control.record_bytes = sizeof(SampleRecord);
  sample_control.slot_bytes = meta::kSampleSlotBytes;
  sample_control.slots = slots;
  sample_control.records = start;
  // The magic last, for readers. pairs with: a tool that reads this process, has_records()
  std::atomic_ref(sample_control.magic).store(meta::kSampleMagic, std::memory_order_release);
  return true;
}

std::uint32_t reuse_slot() {
  const std::uint32_t slot = samples.freed.take();
  if (slot != 0) count(sample_control.reused);
  return slot;
}

// The freed records that are the oldest give their memory back, but for kKeptRecords.
void empty_slots() {
  while (samples.freed.count() > kKeptRecords) {
    const std::uint32_t slot = reuse_slot();
    os::calls.purge(reinterpret_cast<std::uintptr_t>(record_of(slot)), meta::kSampleSlotBytes);
    samples.empty[(slot - 1) / 64] |= std::uint64_t{1} << ((slot - 1) % 64);
    ++samples.emptied;
  }
}

std::uint32_t take_empty_slot() {
  std::uint64_t* word = samples.empty;
  while (*word == 0) ++word;
  const auto slot = static_cast<std::uint32_t>((word - samples.empty) * 64 + std::countr_zero(*word) + 1);
  *word &= *word - 1;
  --samples.emptied;
  // A reader that looked before its memory went must not see the same number again.
  // relaxed: nobody else writes, and what follows is ordered by begin_change()
  record_of(slot)->sequence.store(2 * static_cast<std::uint32_t>(sample_control.taken.load(std::memory_order_relaxed)),
                                  std::memory_order_relaxed);
  return slot;
}

// 0: there is none.
std::uint32_t take_slot() {
  if (samples.freed.count() >= kKeptRecords) return reuse_slot();
  if (samples.emptied != 0) return take_empty_slot();
  const auto used =
      static_cast<std::uint32_t>(sample_control.used.load(std::memory_order_relaxed));  // relaxed: the lock orders it
  if (used == samples.usable_slots) {
    const auto start = reinterpret_cast<std::uintptr_t>(samples.slots) + std::uint64_t{used} * meta::kSampleSlotBytes;
    if (used == sample_control.slots || !os::calls.commit(start, kStepSlots * meta::kSampleSlotBytes)) {
      return reuse_slot();
    }
    samples.usable_slots += kStepSlots;
  }
  // pairs with: readers (the memory can be read)
  sample_control.used.store(used + 1, std::memory_order_release);
  return used + 1;
}

bool has_free_words(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    if (slab->word(g).load(std::memory_order_relaxed) != 0) return true;  // relaxed: written under the lock
  }
  return false;
}

// By the words alone: an object whose free() is under way has only the other bit yet, and its record leads here.
bool is_empty(Slab* slab) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    if (slab->word(g).load(std::memory_order_relaxed) != kAllFree) return false;  // relaxed: written under the lock
  }
  return true;
}

SlabSlots& table_of(const Slab* slab) {
  return samples.tables[slab->last_owner.load(std::memory_order_relaxed)];  // relaxed: constant for the slab's life
}

Slab* add_slab(ClassId size_class) {
  std::uint32_t number = samples.free_tables;
  if (number == 0) {
    if (samples.used_tables == kMostSlabs ||
        !os::calls.commit(reinterpret_cast<std::uintptr_t>(&samples.tables[samples.used_tables]), sizeof(SlabSlots))) {
      return nullptr;
    }
    number = samples.used_tables + 1;
  }
  Slab* slab = make_slab(size_class, kOwnerSampled, Expected::kFew);
  if (slab == nullptr) return nullptr;
  number == samples.used_tables + 1 ? ++samples.used_tables : samples.free_tables = samples.tables[number - 1].of[0];
  slab->last_owner.store(number - 1, std::memory_order_relaxed);  // relaxed: nobody else has seen the slab
  set_listed(slab, Listed::kQueue);
  samples.partial[size_class].push_back(slab);
  return slab;
}

void give_back(Slab* slab) {
  const std::uint32_t number = slab->last_owner.load(std::memory_order_relaxed);  // relaxed: as table_of()
  samples.partial[slab->size_class].remove(slab);
  set_listed(slab, Listed::kNowhere);
  samples.tables[number].of[0] = samples.free_tables;
  samples.free_tables = number + 1;
  release_slab(slab);
}

// The object of a record that was freed may be taken again.
void put_back(std::uint64_t address) {
  auto* slab = static_cast<Slab*>(meta::header_of(address));
  const std::uint64_t index = slab->index_of(address);
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  // The word first: whoever frees the object a second time finds the bit in one of the two.
  // relaxed: written under the lock. pairs with: owner_bits() (nothing but the bit)
  slab->word(group).store(slab->word(group).load(std::memory_order_relaxed) | bit, std::memory_order_release);
  slab->remote(group).fetch_and(~bit, std::memory_order_acq_rel);  // pairs with: free_sampled() (the object's last use)
  if (listed(slab) == Listed::kNowhere) {
    set_listed(slab, Listed::kQueue);
    samples.partial[slab->size_class].push_back(slab);
  }
  // One stays, or a program that holds no sample now and then would make a slab for each.
  if (samples.partial[slab->size_class].front() != slab && is_empty(slab)) give_back(slab);
}

void collect_ended() {
  samples.freed.collect([](std::uint32_t slot) {
    const SampleRecord* record = record_of(slot);
    if ((record->flags & meta::kSampleLarge) == 0) put_back(record->address);
  });
  if (samples.freed.count() >= kMostFreedRecords) empty_slots();
}

// An object of the class and its slot; {nullptr, …}: there is none.
struct Taken {
  void* object;
  std::uint32_t slot;
};

Taken take_object(ClassId size_class) {
  Slab* slab = samples.partial[size_class].front();
  if (slab == nullptr) slab = add_slab(size_class);
  if (slab == nullptr) return {nullptr, 0};
  const std::uint32_t slot = take_slot();
  if (slot == 0) return {nullptr, 0};
  unsigned group = 0;
  while (slab->word(group).load(std::memory_order_relaxed) == 0) ++group;        // relaxed: written under the lock
  const std::uint64_t free = slab->word(group).load(std::memory_order_relaxed);  // relaxed: as above
  const std::uint64_t index = std::uint64_t{group} * kGroupObjects + static_cast<unsigned>(std::countr_zero(free));
  before_offer(slab, group, free & -free);
  // relaxed: as above; others get the address from the program
  slab->word(group).store(free & (free - 1), std::memory_order_relaxed);
  table_of(slab).of[index] = slot;
  if (!has_free_words(slab)) {
    samples.partial[size_class].remove(slab);
    set_listed(slab, Listed::kNowhere);
  }
  return {reinterpret_cast<void*>(slab->object(index)), slot};
}

// Between the two, readers leave a record alone.
void begin_change(SampleRecord* record) {
  // relaxed: nobody else writes. The fence keeps what follows behind it
  record->sequence.store(record->sequence.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // pairs with: readers in other processes (an odd number)
}
void end_change(SampleRecord* record) {
  // pairs with: readers in other processes (the record)
  record->sequence.store(record->sequence.load(std::memory_order_relaxed) + 1,  // relaxed: as above
                         std::memory_order_release);
}

constexpr std::uint32_t kLine = 64;
constexpr std::uint32_t kStacksAt = round_up(sizeof(SampleRecord), kLine);
static_assert(kStacksAt + 2 * meta::kSampleStackBytes <= meta::kSampleSlotBytes &&
              meta::kSampleStackBytes % kLine == 0);

void begin_record(std::uint32_t slot, std::uint64_t address, std::size_t requested, std::size_t usable,
                  std::uint64_t interval, std::uint32_t flags) {
  SampleRecord* record = record_of(slot);
  begin_change(record);
  record->number = sample_control.taken.fetch_add(1, std::memory_order_relaxed) + 1;  // relaxed: a number by itself
  record->address = address;
  record->requested_bytes = requested;
  record->usable_bytes = usable;
  record->interval_bytes = interval;
  record->allocated_ns = os::monotonic_ns();
  record->freed_ns = 0;
  record->release.stack_bytes = 0;
  record->release.frames = 0;
  record->allocation.stack_offset = kStacksAt;
  if (copy_stack(record->allocation, reinterpret_cast<char*>(record))) flags |= meta::kSampleAllocTruncated;
  record->flags = flags;
  // relaxed: end_change() publishes it
  record->state.store(static_cast<std::uint32_t>(SampleState::kLive), std::memory_order_relaxed);
  end_change(record);
  add_estimate(record, sample_control.allocated_bytes, sample_control.allocated_1024);
}

// Pushes the record, which is the caller's: the block's life ends once.
void end_record(std::uint32_t slot, std::uint32_t flags) {
  SampleRecord* record = record_of(slot);
  begin_change(record);
  record->freed_ns = os::monotonic_ns();
  record->release.stack_offset =
      kStacksAt + static_cast<std::uint32_t>(round_up(record->allocation.stack_bytes, kLine));
  if (copy_stack(record->release, reinterpret_cast<char*>(record))) flags |= meta::kSampleFreeTruncated;
  record->flags |= flags;
  // relaxed: end_change() publishes it
  record->state.store(static_cast<std::uint32_t>(SampleState::kFreed), std::memory_order_relaxed);
  end_change(record);
  count(sample_control.freed);
  add_estimate(record, sample_control.freed_bytes, sample_control.freed_1024);
  samples.freed.push(slot);
}

}  // namespace

void* allocate_sampled(ClassId size_class, std::size_t requested, std::uint64_t interval) {
  Taken taken = {};
  {
    const sync::MutexLock guard(sample_lock);
    collect_ended();
    if (reserve_slots()) taken = take_object(size_class);
  }
  if (taken.object == nullptr) {
    count(sample_control.lost);
    return nullptr;
  }
  begin_record(taken.slot, reinterpret_cast<std::uint64_t>(taken.object), requested, kSizeClasses[size_class].bytes,
               interval, 0);
  return begin_life(taken.object);
}

void begin_sample(Run* run, std::size_t requested, std::uint64_t interval, std::uint32_t flags) {
  std::uint32_t slot = 0;
  {
    const sync::MutexLock guard(sample_lock);
    collect_ended();
    if (reserve_slots()) slot = take_slot();
  }
  if (slot == 0) return count(sample_control.lost);
  begin_record(slot, run->start, requested, run->bytes, interval, flags | meta::kSampleLarge);
  run->sample = slot;
  run->stack_offset = 0;
}

void free_sampled(Slab* slab, std::uint64_t index, bool is_nested) {
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  // pairs with: put_back() (the object's last use)
  if ((free_bits(slab, group) & bit) != 0 ||
      (slab->remote(group).fetch_or(bit, std::memory_order_acq_rel) & bit) != 0) {
    return report_twice(slab, group, bit);
  }
  end_record(table_of(slab).of[index], is_nested ? meta::kSampleFreeInHandler : 0);
}

void end_sample(Run* run, std::uint32_t flags) {
  const std::uint32_t slot = run->sample;
  if (slot == 0) return;
  run->sample = 0;
  if (run->kind == Kind::kLarge) pages::set_length(run, run->granules);
  end_record(slot, flags);
}

SampledUse sampled_use() {
  SampledUse use = {};
  if (!has_records()) return use;
  const sync::MutexLock guard(sample_lock);
  double requested = 0;
  double usable = 0;
  const std::uint64_t used = sample_control.used.load(std::memory_order_relaxed);  // relaxed: the lock orders it
  for (std::uint32_t slot = 1; slot <= used; ++slot) {
    const SampleRecord* record = record_of(slot);
    // pairs with: end_change() (the record)
    const std::uint32_t before = record->sequence.load(std::memory_order_acquire);
    const auto bytes = static_cast<double>(record->usable_bytes);
    const auto wanted = static_cast<double>(record->requested_bytes);
    const double weight = weight_of(record);
    // relaxed: the sequence says whether it belongs to the rest
    const bool is_live =
        record->state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(SampleState::kLive);
    std::atomic_thread_fence(std::memory_order_acquire);  // pairs with: begin_change() (an odd number)
    // relaxed: ordered by the fence
    if (!is_live || before % 2 != 0 || record->sequence.load(std::memory_order_relaxed) != before) continue;
    ++use.samples;
    usable += weight * bytes;
    requested += weight * wanted;
  }
  use.requested_bytes = static_cast<std::uint64_t>(requested);
  use.usable_bytes = static_cast<std::uint64_t>(usable);
  return use;
}

meta::History history_of(std::uint64_t address, const Header* owner) {
  std::uint32_t slot = 0;
  std::uint64_t start = 0;
  if (owner != nullptr && owner->kind == Kind::kSlab && is_sampled(static_cast<const Slab*>(owner))) {
    const auto& slab = *static_cast<const Slab*>(owner);
    const std::uint64_t index = (address - slab.start) / slab.bytes;
    if (index < slab.count()) slot = table_of(&slab).of[index];
    start = slab.object(index);
  } else if (owner != nullptr && owner->kind != Kind::kSlab && owner->kind != Kind::kNone) {
    slot = static_cast<const Run*>(owner)->sample;
    start = owner->start;
  }
  const SampleRecord* record = sample_record(slot);
  if (record == nullptr || record->address != start) return {};
  // pairs with: end_change() (the free's stack)
  const bool is_freed =
      record->state.load(std::memory_order_acquire) == static_cast<std::uint32_t>(SampleState::kFreed);
  return {record, &record->allocation, is_freed ? &record->release : nullptr};
}

meta::SampleRecord* sample_record(std::uint32_t slot) {
  // pairs with: take_slot() (memory that can be read)
  return slot == 0 || slot > sample_control.used.load(std::memory_order_acquire) ? nullptr : record_of(slot);
}

void release_sampled() {
  if (!has_records()) return;
  const sync::MutexLock guard(sample_lock);
  collect_ended();
  for (List<Slab>& partial : samples.partial) {
    for (Slab* slab = partial.front(); slab != nullptr;) {
      Slab* next = slab->next;
      if (is_empty(slab)) give_back(slab);
      slab = next;
    }
  }
}

}  // namespace brimful::slots
