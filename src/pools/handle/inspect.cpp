// SPDX-License-Identifier: MIT
//
// Handle pool: statistics, and the checker that proves every invariant or names the first that is broken.
#include "pools/handle/pool.h"

namespace brimful::pools::handle {
namespace {

void add(brimful_pool_lock_stats& sum, const brimful_pool_lock_stats& one) {
  sum.acquisitions += one.acquisitions;
  sum.contended += one.contended;
  sum.sleeps += one.sleeps;
  sum.wait_ns += one.wait_ns;
}

// The class's lock is held.
brimful_handle_class_stats describe(const Class& size_class) {
  brimful_handle_class_stats into{};
  into.object_bytes = size_class.slot_bytes();
  into.run_bytes = size_class.run_bytes;
  into.run_objects = size_class.slots;
  into.runs = size_class.runs;
  into.objects = size_class.objects;
  for (unsigned i = 1; i < kGroups; ++i) into.group[i] = size_class.group_runs[i - 1];
  into.compactable = (std::size_t{size_class.runs} * size_class.slots - size_class.objects) / size_class.slots;
  into.lock = size_class.lock.stats();
  return into;
}

// What one check is made of. Each part returns nullptr or the name of what is broken, and where_ says where.
class Checker {
 public:
  explicit Checker(Pool& pool) : pool_(pool) {}
  const char* check();
  [[nodiscard]] const void* where() const { return where_; }

 private:
  const char* check_class(Class& size_class);
  const char* check_ring(Class& size_class, unsigned group);
  const char* check_run(Class& size_class, Index index, unsigned group);
  const char* check_free_slots(Class& size_class, Run& run);
  const char* check_object(Class& size_class, Index index, std::uint32_t slot);
  const char* check_entries();
  const char* check_free_entries(Index head, std::uint32_t count, bool counted);
  const char* check_pages();
  const char* broken(const char* name, const void* where) {
    where_ = where;
    return name;
  }

  Pool& pool_;
  const void* where_ = nullptr;
  std::size_t live_ = 0;        // objects seen
  std::size_t free_ = 0;        // free entries seen in a list
  std::size_t run_bytes_ = 0;   // of all runs
  std::size_t class_runs_ = 0;  // these three: of the class
  std::size_t class_live_ = 0;
  std::size_t class_bytes_ = 0;
};

const char* Checker::check_object(Class& size_class, Index index, std::uint32_t slot) {
  Run& run = pool_.runs[index];
  const Reference reference = pool_.references(size_class, run)[slot];
  const char* object = run.base + slot * size_class.slot_bytes();
  const Index entry = reference & (kMostEntries - 1);
  // relaxed: no call is in progress
  if (entry >= pool_.entry_count.load(std::memory_order_relaxed)) return broken("a slot names no entry", object);
  const Word word(pool_.entries[entry].word.load(std::memory_order_relaxed));  // relaxed: as above
  if (word.state() == kFree || word.place() != pool_.place_of(index, slot)) {
    return broken("a slot and its entry disagree", object);
  }
  if (word.state() == kMoving) return broken("an object is being moved by nobody", object);
  const std::size_t slack = Pool::slack_of(reference, object, size_class.slot_bytes());
  if (slack >= size_class.slot_bytes()) return broken("an object has no bytes", object);
  const std::size_t bytes = size_class.slot_bytes() - slack;
  const Class& own = pool_.class_at(class_of(bytes));
  if (own.index > size_class.index || own.upper < size_class.index)
    return broken("an object is in a wrong class", object);
  class_bytes_ += bytes;
  return nullptr;
}

const char* Checker::check_free_slots(Class& size_class, Run& run) {
  const Reference* references = pool_.references(size_class, run);
  std::uint32_t free = 0;
  for (std::uint32_t slot = run.free_slot; slot != kNoSlot; slot = static_cast<std::uint16_t>(references[slot])) {
    if (slot >= size_class.slots || (references[slot] & kFreeReference) == 0) {
      return broken("the list of free slots leads to none", run.base);
    }
    if (++free > size_class.slots) return broken("the list of free slots is a ring", run.base);
  }
  if (free + run.live != size_class.slots) return broken("free and live slots are not all of a run", run.base);
  return nullptr;
}

const char* Checker::check_run(Class& size_class, Index index, unsigned group) {
  Run& run = pool_.runs[index];
  // relaxed: the lock is held
  if (run.base == nullptr || run.class_index.load(std::memory_order_relaxed) != size_class.index ||
      run.units != size_class.units) {
    return broken("a run is not of its class", &run);
  }
  if (run.live == 0) return broken("an empty run was not given back", run.base);
  if (size_class.group_of(run.live) != group) return broken("a run is in the wrong group", run.base);
  if (const char* name = check_free_slots(size_class, run)) return name;
  std::uint32_t live = 0;
  for (std::uint32_t slot = 0; slot < size_class.slots; ++slot) {
    if ((pool_.references(size_class, run)[slot] & kFreeReference) != 0) continue;
    ++live;
    if (const char* name = check_object(size_class, index, slot)) return name;
  }
  if (live != run.live) return broken("a run's live objects are counted wrongly", run.base);
  class_live_ += live;
  return nullptr;
}

const char* Checker::check_ring(Class& size_class, unsigned group) {
  const Index head = size_class.head(group);
  if ((head != kNone) != ((size_class.groups >> group & 1) != 0)) return broken("a group's bit is wrong", &size_class);
  std::uint32_t runs = 0;
  for (Index at = head; at != kNone;) {
    if (at >= pool_.run_count || ++runs > size_class.runs) return broken("a group's ring is broken", &size_class);
    const Run& run = pool_.runs[at];
    if (run.next >= pool_.run_count || pool_.runs[run.next].prev != at) return broken("a group's ring is broken", &run);
    if (const char* name = check_run(size_class, at, group)) return name;
    at = run.next == head ? kNone : run.next;
  }
  class_runs_ += runs;
  if (runs != size_class.group_runs[group - 1]) return broken("a group's runs are counted wrongly", &size_class);
  return nullptr;
}

const char* Checker::check_class(Class& size_class) {
  const LockGuard guard(size_class.lock, pool_.host);
  class_runs_ = 0;
  class_live_ = class_bytes_ = 0;
  for (unsigned group = 1; group < kGroups; ++group) {
    if (const char* name = check_ring(size_class, group)) return name;
  }
  if (class_runs_ != size_class.runs) return broken("a class's runs are counted wrongly", &size_class);
  if (class_live_ != size_class.objects) return broken("a class's objects are counted wrongly", &size_class);
  if (class_bytes_ != size_class.live_bytes) return broken("a class's live bytes are counted wrongly", &size_class);
  // relaxed: the lock is held
  if (size_class.room.load(std::memory_order_relaxed) != class_runs_ * size_class.slots - class_live_) {
    return broken("a class's room is counted wrongly", &size_class);
  }
  live_ += class_live_;
  run_bytes_ += class_runs_ * size_class.run_bytes;
  if (size_class.free_entry_count > kMostFreeEntries) return broken("a class keeps too many entries", &size_class);
  return check_free_entries(size_class.free_entries, size_class.free_entry_count, true);
}

const char* Checker::check_free_entries(Index head, std::uint32_t count, bool counted) {
  // relaxed: no call is in progress
  const Index most = pool_.entry_count.load(std::memory_order_relaxed);
  std::uint32_t seen = 0;
  while (head != kNone) {
    if (head >= most || ++seen > most) return broken("a list of free entries is broken", &pool_);
    const Word word(pool_.entries[head].word.load(std::memory_order_relaxed));  // relaxed: as above
    if (word.state() != kFree || word.generation() >= kRetired) {
      return broken("a list of free entries leads to none", &pool_.entries[head]);
    }
    head = word.place();
  }
  if (counted && seen != count) return broken("a class's free entries are counted wrongly", &pool_);
  free_ += seen;
  return nullptr;
}

const char* Checker::check_entries() {
  const LockGuard guard(pool_.table_lock, pool_.host);
  if (const char* name = check_free_entries(pool_.free_entries, 0, false)) return name;
  std::size_t live = 0;
  std::size_t free = 0;
  // relaxed: no call is in progress
  for (Index i = 0; i < pool_.entry_count.load(std::memory_order_relaxed); ++i) {
    const Word word(pool_.entries[i].word.load(std::memory_order_relaxed));  // relaxed: as above
    if (word.state() != kFree) ++live;
    if (word.state() == kFree && word.generation() != kRetired) ++free;
  }
  if (live != live_) return broken("an entry's object is in no run", &pool_);
  if (free != free_) return broken("a free entry is in no list", &pool_);
  return nullptr;
}

const char* Checker::check_pages() {
  // relaxed: no call is in progress
  const std::size_t held = pool_.held_bytes.load(std::memory_order_relaxed);
  std::size_t metadata = pool_.own_bytes;
  const auto add_block = [&](const void*, std::size_t pages) { metadata += pages * pool_.host.page_bytes; };
  pool_.entries.for_each_block(add_block);
  pool_.runs.for_each_block(add_block);
  // relaxed: as above
  if (metadata != pool_.metadata_bytes.load(std::memory_order_relaxed) || held != metadata + run_bytes_) {
    return broken("pages are counted wrongly", &pool_);
  }
  if (pool_.most_bytes != 0 && held > pool_.most_bytes) return broken("the pool is above its limit", &pool_);
  return nullptr;
}

const char* Checker::check() {
  for (unsigned i = 0; i < pool_.class_count; ++i) {
    if (const char* name = check_class(pool_.class_at(i))) return name;
  }
  if (const char* name = check_entries()) return name;
  return check_pages();
}

}  // namespace

void Pool::get_stats(brimful_handle_stats* into, brimful_handle_class_stats* into_classes, std::size_t count) {
  *into = {};
  into->size = sizeof(*into);
  into->class_size = sizeof(*into_classes);
  into->classes = class_count;
  for (unsigned i = 0; i < class_count; ++i) {
    Class& size_class = class_at(i);
    const LockGuard guard(size_class.lock, host);
    into->objects += size_class.objects;
    into->live_bytes += size_class.live_bytes;
    const brimful_handle_class_stats described = describe(size_class);
    add(into->locks, described.lock);
    if (into_classes != nullptr && i < count) into_classes[i] = described;
  }
  // relaxed: counters
  into->metadata_bytes = metadata_bytes.load(std::memory_order_relaxed);
  into->held_bytes = held_bytes.load(std::memory_order_relaxed) - into->metadata_bytes;
  into->moved = moved.load(std::memory_order_relaxed);
  into->given_bytes = given_bytes.load(std::memory_order_relaxed);
  const LockGuard guard(table_lock, host);
  add(into->locks, table_lock.stats());
}

std::size_t Pool::count_mapped() const {
  // pairs with: take_entries() (the entries below the count)
  const Index most = entry_count.load(std::memory_order_acquire);
  std::size_t mapped = 0;
  for (Index i = 0; i < most; ++i) {
    // relaxed: a count of one moment each
    if (Word(entries[i].word.load(std::memory_order_relaxed)).is_mapped()) ++mapped;
  }
  return mapped;
}

const char* Pool::check(const void** where) {
  Checker checker(*this);
  const char* name = checker.check();
  if (where != nullptr) *where = checker.where();
  return name;
}

}  // namespace brimful::pools::handle

extern "C" {

brimful_handle_result brimful_handle_get_stats(brimful_handle_pool* pool, brimful_handle_stats* into,
                                               brimful_handle_class_stats* classes, size_t count) {
  if (pool == nullptr || into == nullptr || into->size != sizeof(*into) ||
      (classes != nullptr && into->class_size != sizeof(*classes))) {
    return BRIMFUL_HANDLE_INVALID;
  }
  pool->get_stats(into, classes, count);
  return BRIMFUL_HANDLE_OK;
}

size_t brimful_handle_count_mapped(const brimful_handle_pool* pool) {
  return pool == nullptr ? 0 : pool->count_mapped();
}

const char* brimful_handle_check(brimful_handle_pool* pool, const void** where) {
  if (where != nullptr) *where = nullptr;
  return pool == nullptr ? nullptr : pool->check(where);
}
}
