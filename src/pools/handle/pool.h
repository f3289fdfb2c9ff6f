// SPDX-License-Identifier: MIT
//
// Handle pool: its structures. zsmalloc's design (Linux mm/zsmalloc.c) over the pages of a host.
//
//   handle --> entry (8 bytes) --> run record (64) --> run: pages of slots of one size
//              table of entries    table of runs
//              ^                                  reference (4 bytes to each slot): which entry, how much was asked for
//              +--------------------------------------+
//
// A run belongs to a class, and stands in the list of its group by fullness; objects go into the fullest run that has
// room. An empty run goes back to the host at once. Compaction takes the other way: from the emptiest run, through the
// references, to the entries that must learn the new place (handle/compact.cpp). Who may change a word, and when, is
// the matter of handle/word.h.
//
// When a class has few runs and all are full, an object may stand in a slot of a slightly larger class instead of
// beginning a run (Class::upper): 256 classes with half a run to spare each would be megabytes.
//
// Locks: one for each class, one for the two tables. Host calls are made with no lock held, but for the growth of a
// table, under its lock. A thread holds one at a time; only compaction holds two classes', the smaller class's first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "brimful/handle.h"
#include "pools/handle/classes.h"
#include "pools/handle/table.h"
#include "pools/handle/word.h"
#include "pools/lock.h"

namespace brimful::pools::handle {

// Groups are tenths, rounded up: 1 … 10, and 11 for full runs. There is no empty run in a class.
inline constexpr unsigned kGroups = 12;
inline constexpr unsigned kFullGroup = 11;
inline constexpr std::uint16_t kNoSlot = 0xFFFF;

// Whose a slot is. Live: the entry, and by how many bytes the slot is larger than what was asked for; kMuchSlack says
// that this stands in the slot's last two bytes. Free: kFreeReference and the next free slot.
using Reference = std::uint32_t;
inline constexpr Reference kFreeReference = 1U << 31;
inline constexpr std::uint32_t kMuchSlack = 15;

struct alignas(64) Run {
  char* base = nullptr;                       // of its pages; nullptr: the record is free
  Index next = kNone;                         // of its group, or next free record
  Index prev = kNone;                         // of its group
  std::atomic<std::uint16_t> class_index{0};  // read without the lock, too, to learn which lock
  std::uint16_t units = 0;                    // bytes of a slot, in kUnitBytes
  std::uint16_t live = 0;                     // slots
  std::uint16_t free_slot = kNoSlot;          // the first
  std::uint16_t pinned_in = 0;                // the sweep of compaction that found an object here which can't be moved
  Reference embedded[kEmbeddedReferences]{};
};
static_assert(sizeof(Run) == kRunRecordBytes);

// Free entries that are linked by their places, on the way between a class and the table.
struct Chain {
  Index head = kNone;
  Index tail = kNone;
  std::uint32_t count = 0;
};

// All but the constants belongs to the lock's holder.
struct alignas(64) Class {
  Lock lock;
  std::uint32_t run_bytes = 0;
  std::uint32_t references = 0;  // where they begin in a run; 0: embedded
  std::uint32_t reciprocal = 0;  // of slots, times 2^32
  std::uint16_t index = 0;
  std::uint16_t upper = 0;  // the largest class that takes this class's objects
  std::uint16_t slots = 0;  // of a run
  std::uint16_t units = 0;
  std::uint16_t groups = 0;            // bit g: heads[g] is a run
  std::atomic<std::uint32_t> room{0};  // free slots; written under the lock, looked at without
  std::uint32_t runs = 0;
  std::uint32_t objects = 0;
  std::uint32_t free_entry_count = 0;
  Index free_entries = kNone;  // at most kMostFreeEntries, for this class's next objects
  std::size_t live_bytes = 0;  // as asked for
  Index heads[kFullGroup]{};   // of group 1 … 11, see head()
  std::uint32_t group_runs[kFullGroup]{};

  Index& head(unsigned group) { return heads[group - 1]; }
  [[nodiscard]] std::size_t slot_bytes() const { return std::size_t{units} * kUnitBytes; }

  // ceil(10 live / slots) by the reciprocal; exact for all runs (tests/pools/handle/classes_test.cpp).
  [[nodiscard]] unsigned group_of(std::uint32_t live) const {
    if (live == slots) return kFullGroup;
    return static_cast<unsigned>(std::uint64_t{live * 10 + slots - 1} * reciprocal >> 32);
  }
};
static_assert(sizeof(Class) == 192);

inline constexpr std::uint32_t kEntryBatch = 16;       // entries that go between a class and the table at once
inline constexpr std::uint32_t kMostFreeEntries = 32;  // of a class

class alignas(64) Pool {
 public:
  // In `own` bytes of pages, the classes behind it.
  Pool(const brimful_handle_options& options, std::size_t own);
  void give_all_back();

  brimful_handle_result alloc(std::size_t bytes, brimful_handle* handle);
  brimful_handle_result map(brimful_handle handle, brimful_handle_mode mode, void** pointer);
  brimful_handle_result unmap(brimful_handle handle);
  brimful_handle_result free(brimful_handle handle);
  brimful_handle_result size(brimful_handle handle, std::size_t* bytes);
  std::size_t compact(std::size_t most_moves, int* more);
  [[nodiscard]] std::size_t count_mapped() const;
  void get_stats(brimful_handle_stats* into, brimful_handle_class_stats* into_classes, std::size_t count);
  const char* check(const void** where);

  // The entry that a handle names, or nullptr: it never came from here.
  [[nodiscard]] Entry* find(brimful_handle handle) const {
    // pairs with: take_entries() (the entries below the count, and the table's blocks)
    if (number_of(handle) != number || entry_of(handle) >= entry_count.load(std::memory_order_acquire)) return nullptr;
    return &entries[entry_of(handle)];
  }

  [[nodiscard]] Index run_of(std::uint32_t place) const { return place >> slot_bits; }
  [[nodiscard]] std::uint32_t slot_of(std::uint32_t place) const { return place & ((1U << slot_bits) - 1); }
  [[nodiscard]] std::uint32_t place_of(Index run, std::uint32_t slot) const { return run << slot_bits | slot; }
  [[nodiscard]] Class& class_at(unsigned index) { return reinterpret_cast<Class*>(this + 1)[index]; }

  // The class that the run of a live word is in; without the lock: was in.
  [[nodiscard]] Class& class_of_place(std::uint32_t place) {
    // relaxed: the caller looks again under the lock
    return class_at(runs[run_of(place)].class_index.load(std::memory_order_relaxed));
  }

  Word wait_for_move(const Entry& entry, Word word);

  // Pages from the host within the limit; nullptr: none.
  void* take_pages(std::size_t bytes, bool metadata);
  void give_pages(void* pages, std::size_t bytes);

  // Entries and run records, under the tables' lock.
  bool take_entries(Chain& chain);
  void give_entries(Chain chain);
  Chain keep_entry(Class& size_class, Index entry);
  Index take_record();
  void give_record(Index run);

  // Runs, outside of every lock. kNone: no memory.
  Index create_run(const Class& size_class);
  void destroy_run(Index run, std::size_t run_bytes);

  // Slots, under the class's lock. release_slot() says whether the run is empty now: it is out of the class then, and
  // the caller destroys it when it has let go of the lock.
  Reference* references(const Class& size_class, Run& run) {
    return size_class.references == 0 ? run.embedded : reinterpret_cast<Reference*>(run.base + size_class.references);
  }
  void add_run(Class& size_class, Index run);
  Index fullest_with_room(Class& size_class);
  std::uint32_t take_slot(Class& size_class, Index run, Reference reference);
  [[nodiscard]] bool release_slot(Class& size_class, Index run, std::uint32_t slot);
  void link(Class& size_class, Index run, unsigned group, bool at_end = false);
  void unlink(Class& size_class, Index run, unsigned group);

  // Compaction, see handle/compact.cpp.
  bool move_object(Class& from, Index source, Class& to, Index target);
  bool try_move_slot(Class& from, Index source, std::uint32_t slot, Class& to, Index target);

  // How much larger a slot is than what was asked for: into its reference, and if that is much, its end; and back.
  static Reference make_reference(const Class& size_class, std::size_t bytes, Index entry);
  static void note_slack(char* slot, std::size_t slot_bytes, std::size_t bytes);
  static std::size_t slack_of(Reference reference, const char* slot, std::size_t slot_bytes);

  // Calls action(class, entry, word) with the lock held of the class that has the handle's object.
  template <class Action>
  brimful_handle_result with_object(brimful_handle handle, Action action) {
    Entry* entry = find(handle);
    if (entry == nullptr) return BRIMFUL_HANDLE_FOREIGN;
    for (;;) {
      // pairs with: place_object() (the run's record)
      const Word hint(entry->word.load(std::memory_order_acquire));
      if (const auto result = judge(hint, generation_of(handle)); result != BRIMFUL_HANDLE_OK) return result;
      Class& size_class = class_of_place(hint.place());
      const LockGuard guard(size_class.lock, host);
      // pairs with: place_object() (the run's record)
      const Word word(entry->word.load(std::memory_order_acquire));
      if (const auto result = judge(word, generation_of(handle)); result != BRIMFUL_HANDLE_OK) return result;
      if (&class_of_place(word.place()) == &size_class) return action(size_class, *entry, word);
    }
  }

  brimful_pool_host host;
  std::size_t own_bytes;  // of the pages the pool and its classes are in
  std::size_t most_bytes;
  std::size_t most_object_bytes;
  std::uint32_t number;  // in its handles
  std::uint32_t class_count;
  unsigned slot_bits;
  std::atomic<Index> entry_count{0};
  Table<Entry> entries;
  Table<Run> runs;

  // From here on what is written often, away from what each map reads.
  alignas(64) std::atomic<std::size_t> held_bytes{0};  // all pages
  std::atomic<std::size_t> metadata_bytes{0};          // of those: tables and the pool
  std::atomic<std::uint64_t> moved{0};
  std::atomic<std::uint64_t> given_bytes{0};
  std::atomic<std::uint32_t> sweep_class{0};  // the class that compaction has come to
  std::atomic<std::uint16_t> sweep_number{1};

  Lock table_lock;  // the rest is its holder's, as is what changes the tables
  Index free_entries = kNone;
  Index run_count = 0;
  Index free_runs = kNone;
};

}  // namespace brimful::pools::handle

struct brimful_handle_pool final : brimful::pools::handle::Pool {
  using Pool::Pool;
};
