// SPDX-License-Identifier: MIT
//
// Handle pool: runs, their groups, and their slots.
#include <cstring>

#include "pools/handle_pool.h"

namespace brimful::pools::handle {
namespace {

// No read-modify-write: only the lock's holder writes.
void change_room(Class& size_class, int by) {
  // relaxed: see Class::room
  const std::uint32_t room = size_class.room.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(by);
  size_class.room.store(room, std::memory_order_relaxed);  // relaxed: see Class::room
}

}  // namespace

// All slots are free, the lowest first.
Index Pool::create_run(const Class& size_class) {
  void* pages = take_pages(size_class.run_bytes, false);
  if (pages == nullptr) return kNone;
  const Index made = take_record();
  if (made == kNone) {
    give_pages(pages, size_class.run_bytes);
    return kNone;
  }
  Run& run = runs[made];
  run.base = static_cast<char*>(pages);
  // relaxed: who reads it without the lock looks again under the lock
  run.class_index.store(size_class.index, std::memory_order_relaxed);
  run.units = size_class.units;
  run.live = 0;
  run.free_slot = 0;
  run.pinned_in = 0;
  Reference* references = this->references(size_class, run);
  for (std::uint32_t i = 0; i < size_class.slots; ++i) references[i] = kFreeReference | (i + 1);
  references[size_class.slots - 1] = kFreeReference | kNoSlot;
  return made;
}

void Pool::destroy_run(Index run, std::size_t run_bytes) {
  give_pages(runs[run].base, run_bytes);
  runs[run].base = nullptr;
  give_record(run);
}

void Pool::link(Class& size_class, Index index, unsigned group, bool at_end) {
  Run& run = runs[index];
  Index& head = size_class.head(group);
  ++size_class.group_runs[group - 1];
  if (head == kNone) {
    size_class.groups = static_cast<std::uint16_t>(size_class.groups | 1U << group);
    run.next = run.prev = head = index;
    return;
  }
  // A ring, so that the end is found from the head.
  Run& first = runs[head];
  Run& last = runs[first.prev];
  run.next = head;
  run.prev = first.prev;
  last.next = first.prev = index;
  if (!at_end) head = index;
}

void Pool::unlink(Class& size_class, Index index, unsigned group) {
  const Run& run = runs[index];
  Index& head = size_class.head(group);
  --size_class.group_runs[group - 1];
  if (run.next == index) {
    size_class.groups = static_cast<std::uint16_t>(size_class.groups & ~(1U << group));
    head = kNone;
    return;
  }
  runs[run.prev].next = run.next;
  runs[run.next].prev = run.prev;
  if (head == index) head = run.next;
}

// Puts a run of create_run() into the class; the caller takes a slot of it at once.
void Pool::add_run(Class& size_class, Index run) {
  link(size_class, run, 1);
  ++size_class.runs;
  change_room(size_class, size_class.slots);
}

// kNone: each run is full.
Index Pool::fullest_with_room(Class& size_class) {
  const unsigned groups = size_class.groups & ((1U << kFullGroup) - 1);
  return groups == 0 ? kNone : size_class.head(static_cast<unsigned>(std::bit_width(groups)) - 1);
}

std::uint32_t Pool::take_slot(Class& size_class, Index index, Reference reference) {
  Run& run = runs[index];
  Reference* references = this->references(size_class, run);
  const std::uint16_t slot = run.free_slot;
  run.free_slot = static_cast<std::uint16_t>(references[slot]);
  references[slot] = reference;
  const unsigned before = run.live == 0 ? 1 : size_class.group_of(run.live);  // see add_run()
  const unsigned now = size_class.group_of(++run.live);
  if (now != before) {
    unlink(size_class, index, before);
    link(size_class, index, now);
  }
  change_room(size_class, -1);
  return slot;
}

bool Pool::release_slot(Class& size_class, Index index, std::uint32_t slot) {
  Run& run = runs[index];
  references(size_class, run)[slot] = kFreeReference | run.free_slot;
  run.free_slot = static_cast<std::uint16_t>(slot);
  change_room(size_class, 1);
  const unsigned before = size_class.group_of(run.live);
  if (--run.live == 0) {
    unlink(size_class, index, before);
    --size_class.runs;
    change_room(size_class, -static_cast<int>(size_class.slots));
    return true;
  }
  const unsigned now = size_class.group_of(run.live);
  if (now != before) {
    unlink(size_class, index, before);
    link(size_class, index, now);
  }
  return false;
}

Reference Pool::make_reference(const Class& size_class, std::size_t bytes, Index entry) {
  const std::size_t slack = size_class.slot_bytes() - bytes;
  return static_cast<Reference>(slack < kMuchSlack ? slack : kMuchSlack) << kIndexBits | entry;
}

void Pool::note_slack(char* slot, std::size_t slot_bytes, std::size_t bytes) {
  const std::size_t slack = slot_bytes - bytes;
  if (slack < kMuchSlack) return;
  const auto much = static_cast<std::uint16_t>(slack);
  memcpy(slot + slot_bytes - sizeof(much), &much, sizeof(much));
}

std::size_t Pool::slack_of(Reference reference, const char* slot, std::size_t slot_bytes) {
  const std::uint32_t slack = reference >> kIndexBits;
  if (slack != kMuchSlack) return slack;
  std::uint16_t much = 0;
  memcpy(&much, slot + slot_bytes - sizeof(much), sizeof(much));
  return much;
}

}  // namespace brimful::pools::handle
