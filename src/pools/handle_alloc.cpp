// SPDX-License-Identifier: MIT
//
// Handle pool: alloc, free, size.
//
// What an allocation lacks (free entries, a run) is fetched with no lock held, and what is not used in the end is given
// back; so a thread that waits for the host keeps nobody else from the class.
#include "pools/handle_pool.h"

namespace brimful::pools::handle {
namespace {

// A class with this many runs has few bytes to spare in the last one, relatively, and stays among its own.
constexpr std::uint32_t kManyRuns = 8;

enum class Lacks : std::uint8_t { kNothing, kEntries, kRun };

class Allocation {
 public:
  Allocation(Pool& pool, std::size_t bytes) : pool_(pool), bytes_(bytes) {}
  ~Allocation() {
    pool_.give_entries(entries_);
    if (run_ != kNone) pool_.destroy_run(run_, run_bytes_);
  }
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  brimful_handle_result in_class_or_above(Class& own);
  [[nodiscard]] brimful_handle handle() const { return handle_; }

 private:
  Lacks attempt(Class& size_class);
  bool attempt_with_entries(Class& size_class, Lacks& lacks);
  void place_object(Class& size_class, Index run);

  Pool& pool_;
  std::size_t bytes_;
  Chain entries_;
  Index run_ = kNone;
  std::size_t run_bytes_ = 0;
  bool many_runs_ = false;  // in the class of the last attempt
  brimful_handle handle_ = 0;
};

Lacks Allocation::attempt(Class& size_class) {
  const LockGuard guard(size_class.lock, pool_.host);
  if (size_class.free_entries == kNone) {
    if (entries_.count == 0) return Lacks::kEntries;
    size_class.free_entries = entries_.head;
    size_class.free_entry_count = entries_.count;
    entries_ = {};
  }
  Index run = pool_.fullest_with_room(size_class);
  if (run == kNone) {
    many_runs_ = size_class.runs >= kManyRuns;
    if (run_ == kNone) return Lacks::kRun;
    run = run_;
    pool_.add_run(size_class, run);
    run_ = kNone;
  }
  place_object(size_class, run);
  return Lacks::kNothing;
}

// The class's lock is held; it has a free entry, and the run has room.
void Allocation::place_object(Class& size_class, Index run) {
  const Index entry = size_class.free_entries;
  std::atomic<std::uint64_t>& word = pool_.entries[entry].word;
  // relaxed: a free entry of this class is written under its lock
  const Word free(word.load(std::memory_order_relaxed));
  size_class.free_entries = free.place();
  --size_class.free_entry_count;

  const std::uint32_t slot = pool_.take_slot(size_class, run, Pool::make_reference(size_class, bytes_, entry));
  Pool::note_slack(pool_.runs[run].base + slot * size_class.slot_bytes(), size_class.slot_bytes(), bytes_);
  ++size_class.objects;
  size_class.live_bytes += bytes_;
  // pairs with: map(), with_object() (the run's record)
  word.store(Word(free.generation(), pool_.place_of(run, slot), kIdle).raw(), std::memory_order_release);
  handle_ = make_handle(pool_.number, free.generation(), entry);
}

// An attempt, and another one if all it lacked was entries. False: there is no memory for any.
bool Allocation::attempt_with_entries(Class& size_class, Lacks& lacks) {
  lacks = attempt(size_class);
  while (lacks == Lacks::kEntries) {
    if (!pool_.take_entries(entries_)) return false;
    lacks = attempt(size_class);
  }
  return true;
}

brimful_handle_result Allocation::in_class_or_above(Class& own) {
  Lacks lacks = Lacks::kRun;
  if (!attempt_with_entries(own, lacks)) return BRIMFUL_HANDLE_NO_MEMORY;
  const unsigned last = many_runs_ ? own.index : own.upper;
  for (unsigned i = own.index + 1U; lacks == Lacks::kRun && i <= last; ++i) {
    Class& larger = pool_.class_at(i);
    // relaxed: whether the lock is worth taking; attempt() looks again
    if (larger.room.load(std::memory_order_relaxed) == 0) continue;
    if (!attempt_with_entries(larger, lacks)) return BRIMFUL_HANDLE_NO_MEMORY;
  }
  if (lacks == Lacks::kNothing) return BRIMFUL_HANDLE_OK;
  run_bytes_ = own.run_bytes;
  run_ = pool_.create_run(own);
  if (run_ == kNone || !attempt_with_entries(own, lacks)) return BRIMFUL_HANDLE_NO_MEMORY;
  return BRIMFUL_HANDLE_OK;
}

}  // namespace

brimful_handle_result Pool::alloc(std::size_t bytes, brimful_handle* handle) {
  if (bytes == 0 || handle == nullptr) return BRIMFUL_HANDLE_INVALID;
  if (bytes > most_object_bytes) return BRIMFUL_HANDLE_TOO_LARGE;
  Allocation allocation(*this, bytes);
  const brimful_handle_result result = allocation.in_class_or_above(class_at(class_of(bytes)));
  if (result == BRIMFUL_HANDLE_OK) *handle = allocation.handle();
  return result;
}

brimful_handle_result Pool::free(brimful_handle handle) {
  Index empty = kNone;
  std::size_t empty_bytes = 0;
  Chain surplus;
  const auto result = with_object(handle, [&](Class& size_class, Entry& entry, Word word) {
    const std::uint32_t generation = word.generation() + 1;
    const bool retired = generation == kRetired;
    std::uint64_t expected = word.with_state(kIdle).raw();
    const Word freed(generation, retired ? kNone : size_class.free_entries, kFree);
    // pairs with: unmap() (that the mapped bytes are no longer used)
    if (!entry.word.compare_exchange_strong(expected, freed.raw(), std::memory_order_acquire,
                                            std::memory_order_relaxed)) {  // relaxed: it is mapped, nothing is read
      return BRIMFUL_HANDLE_MAPPED;
    }
    const Index run = run_of(word.place());
    const std::uint32_t slot = slot_of(word.place());
    const char* object = runs[run].base + slot * size_class.slot_bytes();
    const Reference reference = references(size_class, runs[run])[slot];
    size_class.live_bytes -= size_class.slot_bytes() - slack_of(reference, object, size_class.slot_bytes());
    --size_class.objects;
    if (release_slot(size_class, run, slot)) {
      empty = run;
      empty_bytes = size_class.run_bytes;
    }
    if (!retired) surplus = keep_entry(size_class, entry_of(handle));
    return BRIMFUL_HANDLE_OK;
  });
  if (empty != kNone) destroy_run(empty, empty_bytes);
  give_entries(surplus);
  return result;
}

// The class's lock is held, and the entry is linked before the class's others. Returns those that are too many.
Chain Pool::keep_entry(Class& size_class, Index entry) {
  size_class.free_entries = entry;
  Chain surplus;
  if (++size_class.free_entry_count <= kMostFreeEntries) return surplus;
  surplus.head = entry;
  for (Index next = entry; surplus.count < kEntryBatch; ++surplus.count) {
    surplus.tail = next;
    // relaxed: a free entry of this class is written under its lock
    next = Word(entries[next].word.load(std::memory_order_relaxed)).place();
    size_class.free_entries = next;
  }
  size_class.free_entry_count -= surplus.count;
  return surplus;
}

brimful_handle_result Pool::size(brimful_handle handle, std::size_t* bytes) {
  if (bytes == nullptr) return BRIMFUL_HANDLE_INVALID;
  return with_object(handle, [&](Class& size_class, Entry&, Word word) {
    Run& run = runs[run_of(word.place())];
    const std::uint32_t slot = slot_of(word.place());
    const char* object = run.base + slot * size_class.slot_bytes();
    *bytes = size_class.slot_bytes() - slack_of(references(size_class, run)[slot], object, size_class.slot_bytes());
    return BRIMFUL_HANDLE_OK;
  });
}

}  // namespace brimful::pools::handle

extern "C" {

brimful_handle_result brimful_handle_alloc(brimful_handle_pool* pool, size_t bytes, brimful_handle* handle) {
  return pool == nullptr ? BRIMFUL_HANDLE_INVALID : pool->alloc(bytes, handle);
}

brimful_handle_result brimful_handle_free(brimful_handle_pool* pool, brimful_handle handle) {
  return pool == nullptr ? BRIMFUL_HANDLE_INVALID : pool->free(handle);
}

brimful_handle_result brimful_handle_size(brimful_handle_pool* pool, brimful_handle handle, size_t* bytes) {
  return pool == nullptr ? BRIMFUL_HANDLE_INVALID : pool->size(handle, bytes);
}
}
