// SPDX-License-Identifier: MIT
#include "cache.h"

#include <bit>
#include <cstring>

namespace zcache {

Cache::Cache(const Settings& settings, Codec& codec, ValueMemory& memory)
    : settings_(settings),
      codec_(codec),
      memory_(memory),
      entries_(settings.most_keys + 1),
      buckets_(std::bit_ceil(settings.most_keys + 1)),
      scratch_(settings.most_value_bytes) {
  for (std::size_t i = settings.most_keys; i > 0; --i) {
    entries_[i].next = unused_;
    unused_ = static_cast<Index>(i);
  }
}

Cache::~Cache() {
  for (Index i = entries_[0].older; i != 0; i = entries_[i].older) memory_.drop(entries_[i].place);
}

bool Cache::put(std::uint64_t key, Bytes value) {
  erase(key);
  if (value.empty() || value.size() > settings_.most_value_bytes) return false;
  const Bytes stored = compressed(value);
  if (!make_room(stored.size())) return false;
  const Place place = memory_.store(stored);
  if (place == 0) return false;

  const Index index = unused_;
  Entry& entry = entries_[index];
  unused_ = entry.next;
  entry.key = key;
  entry.place = place;
  entry.stored = static_cast<std::uint32_t>(stored.size());
  entry.bytes = static_cast<std::uint32_t>(value.size());
  Index& bucket = bucket_of(key);
  entry.next = bucket;
  bucket = index;
  link_newest(index);

  ++use_.keys;
  use_.source_bytes += value.size();
  use_.stored_bytes += stored.size();
  use_.raw += stored.size() == value.size() ? 1 : 0;
  memory_.tidy(use_.stored_bytes);
  return true;
}

Got Cache::get(std::uint64_t key, std::span<std::byte> into, std::size_t* bytes) {
  const Index index = find(key);
  if (index == 0) return Got::kAbsent;
  const Entry& entry = entries_[index];
  const std::byte* stored = memory_.open(entry.place);
  if (stored == nullptr) return Got::kDamaged;
  bool good = true;
  if (entry.stored == entry.bytes) {
    std::memcpy(into.data(), stored, entry.bytes);
  } else {
    good = codec_.decompress({stored, entry.stored}, into.first(entry.bytes));
  }
  memory_.close(entry.place);
  unlink_use(index);
  link_newest(index);
  *bytes = entry.bytes;
  return good ? Got::kFound : Got::kDamaged;
}

bool Cache::erase(std::uint64_t key) {
  const Index index = find(key);
  if (index == 0) return false;
  remove(key, index);
  memory_.tidy(use_.stored_bytes);
  return true;
}

// Neighbouring keys go to distant buckets (Fibonacci hashing).
Cache::Index& Cache::bucket_of(std::uint64_t key) {
  const int bits = std::countr_zero(buckets_.size());
  return buckets_[bits == 0 ? 0 : (key * 0x9E3779B97F4A7C15) >> (64 - bits)];
}

Cache::Index Cache::find(std::uint64_t key) {
  Index index = bucket_of(key);
  while (index != 0 && entries_[index].key != key) index = entries_[index].next;
  return index;
}

void Cache::unlink_use(Index entry) {
  entries_[entries_[entry].newer].older = entries_[entry].older;
  entries_[entries_[entry].older].newer = entries_[entry].newer;
}

void Cache::link_newest(Index entry) {
  const Index second = entries_[0].older;
  entries_[entry].older = second;
  entries_[entry].newer = 0;
  entries_[second].newer = entry;
  entries_[0].older = entry;
}

void Cache::remove(std::uint64_t key, Index index) {
  Entry& entry = entries_[index];
  memory_.drop(entry.place);
  Index* link = &bucket_of(key);
  while (*link != index) link = &entries_[*link].next;
  *link = entry.next;
  unlink_use(index);
  entry.next = unused_;
  unused_ = index;

  --use_.keys;
  use_.source_bytes -= entry.bytes;
  use_.stored_bytes -= entry.stored;
  use_.raw -= entry.stored == entry.bytes ? 1 : 0;
}

// An entry, and `stored` bytes below the limit, by evicting. false: more than the limit by itself.
bool Cache::make_room(std::size_t stored) {
  if (stored > settings_.most_stored_bytes) return false;
  while (unused_ == 0 || use_.stored_bytes > settings_.most_stored_bytes - stored) {
    const Index oldest = entries_[0].newer;
    if (oldest == 0) return false;
    remove(entries_[oldest].key, oldest);
    ++use_.evicted;
  }
  return true;
}

// The value as it will be stored: in scratch_, or where it is.
Bytes Cache::compressed(Bytes value) {
  const std::size_t worthwhile = value.size() - value.size() / 16;
  const std::size_t bytes = codec_.compress(value, {scratch_.data(), worthwhile});
  return bytes != 0 && bytes < value.size() ? Bytes{scratch_.data(), bytes} : value;
}

}  // namespace zcache
