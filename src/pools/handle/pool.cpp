// SPDX-License-Identifier: MIT
//
// Handle pool: its beginning and end, pages within the limit, and the two tables.
#include "pools/handle/pool.h"

#include <new>

#include "base/units.h"

namespace brimful::pools::handle {
namespace {

// Numbers of pools, so that a handle of another pool is told from a stale one: 2^17 - 1 pools later they repeat.
std::atomic<std::uint32_t> pools_created{0};

std::uint32_t next_number() {
  constexpr std::uint32_t kNumbers = (1U << kNumberBits) - 1;
  // relaxed: only that each pool gets another number
  return pools_created.fetch_add(1, std::memory_order_relaxed) % kNumbers + 1;
}

// The largest class for objects of class `index` when this one has no room: slots up to 1/12 larger, and at least the
// next.
std::uint16_t upper_class(unsigned index, unsigned class_count) {
  const std::size_t bytes = slot_bytes_of(index);
  unsigned upper = index + 1;
  while (upper + 1 < class_count && slot_bytes_of(upper + 1) <= bytes + bytes / 12) ++upper;
  return static_cast<std::uint16_t>(upper < class_count ? upper : class_count - 1);
}

void make_class(Class* place, unsigned index, unsigned class_count, std::size_t page_bytes) {
  Class& made = *new (place) Class;
  const RunShape& shape = shapes_for(page_bytes)[index];
  made.index = static_cast<std::uint16_t>(index);
  made.upper = upper_class(index, class_count);
  made.slots = shape.slots;
  made.units = static_cast<std::uint16_t>(slot_bytes_of(index) / kUnitBytes);
  made.run_bytes = static_cast<std::uint32_t>(shape.pages * page_bytes);
  made.references = shape.embedded ? 0 : made.run_bytes - made.slots * static_cast<std::uint32_t>(kReferenceBytes);
  made.reciprocal = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + made.slots - 1) / made.slots);
  for (Index& head : made.heads) head = kNone;
}

}  // namespace

Pool::Pool(const brimful_handle_options& options, std::size_t own)
    : host(*options.host),
      own_bytes(own),
      most_bytes(options.most_bytes),
      most_object_bytes(options.most_object_bytes == 0 ? kFineBytes : options.most_object_bytes),
      number(next_number()),
      class_count(class_of(most_object_bytes) + 1),
      slot_bits(slot_bits_for(host.page_bytes)),
      held_bytes(own),
      metadata_bytes(own) {
  entries.set_page_bytes(host.page_bytes);
  runs.set_page_bytes(host.page_bytes);
  for (unsigned i = 0; i < class_count; ++i) make_class(&class_at(i), i, class_count, host.page_bytes);
}

void Pool::give_all_back() {
  for (Index i = 0; i < run_count; ++i) {
    const Run& run = runs[i];
    // relaxed: nobody else is here any more
    const Class& size_class = class_at(run.class_index.load(std::memory_order_relaxed));
    if (run.base != nullptr) host.give_pages(host.context, run.base, size_class.run_bytes);
  }
  const auto give_block = [this](void* pages, std::size_t count) {
    host.give_pages(host.context, pages, count * host.page_bytes);
  };
  entries.for_each_block(give_block);
  runs.for_each_block(give_block);
  const brimful_pool_host last = host;
  last.give_pages(last.context, this, own_bytes);
}

void* Pool::take_pages(std::size_t bytes, bool metadata) {
  // relaxed: counters; who adds past the limit takes its part away again
  const std::size_t before = held_bytes.fetch_add(bytes, std::memory_order_relaxed);
  const bool within = most_bytes == 0 || before + bytes <= most_bytes;
  void* pages = within ? host.get_pages(host.context, bytes) : nullptr;
  if (pages == nullptr) {
    held_bytes.fetch_sub(bytes, std::memory_order_relaxed);  // relaxed: as above
  } else if (metadata) {
    metadata_bytes.fetch_add(bytes, std::memory_order_relaxed);  // relaxed: as above
  }
  return pages;
}

void Pool::give_pages(void* pages, std::size_t bytes) {
  host.give_pages(host.context, pages, bytes);
  held_bytes.fetch_sub(bytes, std::memory_order_relaxed);  // relaxed: as in take_pages()
}

// Up to kEntryBatch free entries, linked; false: not even one.
bool Pool::take_entries(Chain& chain) {
  const LockGuard guard(table_lock, host);
  // relaxed: written under this lock only
  Index count = entry_count.load(std::memory_order_relaxed);
  while (chain.count < kEntryBatch) {
    Index taken = free_entries;
    std::uint32_t generation = 0;
    if (taken != kNone) {
      // relaxed: written by who put it into the list, before this lock was let go of
      const Word word(entries[taken].word.load(std::memory_order_relaxed));
      free_entries = word.place();
      generation = word.generation();
    } else {
      if (count == kMostEntries) break;
      if (!entries.covers(count)) {
        void* block = take_pages(entries.pages_for(count) * host.page_bytes, true);
        if (block == nullptr) break;
        entries.add_block(count, block);
      }
      taken = count++;
      new (&entries[taken]) Entry{0};
    }
    // relaxed: a free entry is looked at by its lists' lock holders; others see that it is free, whatever its place
    entries[taken].word.store(Word(generation, chain.head, kFree).raw(), std::memory_order_relaxed);
    if (chain.count++ == 0) chain.tail = taken;
    chain.head = taken;
  }
  // relaxed: written under this lock only
  if (count != entry_count.load(std::memory_order_relaxed)) {
    entry_count.store(count, std::memory_order_release);  // pairs with: find() (the new entries and blocks)
  }
  return chain.count != 0;
}

void Pool::give_entries(Chain chain) {
  if (chain.count == 0) return;
  const LockGuard guard(table_lock, host);
  // relaxed: see take_entries()
  const Word tail(entries[chain.tail].word.load(std::memory_order_relaxed));
  const Word linked(tail.generation(), free_entries, kFree);
  entries[chain.tail].word.store(linked.raw(), std::memory_order_relaxed);  // relaxed: as above
  free_entries = chain.head;
}

// A free record, or kNone.
Index Pool::take_record() {
  const LockGuard guard(table_lock, host);
  if (free_runs != kNone) {
    const Index taken = free_runs;
    free_runs = runs[taken].next;
    return taken;
  }
  if (run_count > (kNone >> slot_bits)) return kNone;
  if (!runs.covers(run_count)) {
    void* block = take_pages(runs.pages_for(run_count) * host.page_bytes, true);
    if (block == nullptr) return kNone;
    runs.add_block(run_count, block);
  }
  new (&runs[run_count]) Run;
  return run_count++;
}

void Pool::give_record(Index run) {
  const LockGuard guard(table_lock, host);
  runs[run].next = free_runs;
  free_runs = run;
}

}  // namespace brimful::pools::handle

namespace {

using namespace brimful::pools::handle;

bool make_sense(const brimful_handle_options& options) {
  if (options.size != sizeof(brimful_handle_options) || !brimful::pools::is_usable(options.host)) return false;
  if (options.host->size != sizeof(brimful_pool_host)) return false;
  const std::size_t most = options.most_object_bytes;
  return most == 0 || (most >= kUnitBytes && most <= kMostObjectBytes);
}

}  // namespace

extern "C" {

const char* brimful_handle_result_text(brimful_handle_result result) {
  switch (result) {
    case BRIMFUL_HANDLE_OK:
      return "success";
    case BRIMFUL_HANDLE_STALE:
      return "the handle's object was freed";
    case BRIMFUL_HANDLE_FOREIGN:
      return "the pool never gave this handle out";
    case BRIMFUL_HANDLE_MAPPED:
      return "the object is mapped";
    case BRIMFUL_HANDLE_UNMAPPED:
      return "the object is not mapped";
    case BRIMFUL_HANDLE_TOO_LARGE:
      return "larger than the pool's objects may be";
    case BRIMFUL_HANDLE_NO_MEMORY:
      return "no memory: the host gave none, or the pool's limit is reached";
    case BRIMFUL_HANDLE_INVALID:
      return "an argument makes no sense";
  }
  return "no result of the handle pool";
}

brimful_handle_pool* brimful_handle_pool_create(const brimful_handle_options* options) {
  if (options == nullptr || !make_sense(*options)) return nullptr;
  const brimful_pool_host& host = *options->host;
  const std::size_t most = options->most_object_bytes == 0 ? kFineBytes : options->most_object_bytes;
  const std::size_t bytes =
      brimful::round_up(sizeof(brimful_handle_pool) + (class_of(most) + 1) * sizeof(Class), host.page_bytes);
  if (options->most_bytes != 0 && options->most_bytes < bytes) return nullptr;
  void* pages = host.get_pages(host.context, bytes);
  return pages == nullptr ? nullptr : new (pages) brimful_handle_pool(*options, bytes);
}

void brimful_handle_pool_destroy(brimful_handle_pool* pool) {
  if (pool != nullptr) pool->give_all_back();
}
}
