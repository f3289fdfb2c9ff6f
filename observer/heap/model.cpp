// SPDX-License-Identifier: MIT
//
// heap/model.h: what is read as a whole, and what it says about one address.
#include "heap/model.h"

#include <algorithm>
#include <cstring>

namespace brimful::observer::heap {
namespace {

constexpr std::uint64_t kMostGranules = std::uint64_t{1} << 24;
constexpr std::size_t kMostChunks = 1 << 20;
constexpr std::uint64_t kMostChunkBytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMostMetadata = std::uint64_t{1} << 36;  // of all chunks
constexpr std::uint64_t kEndOfAddresses = std::uint64_t{1} << 48;

// What could be mapped, and is not all that could.
bool is_possible(std::uint64_t start, std::uint64_t end) {
  return start >= memory::kPageBytes && start <= end && end <= kEndOfAddresses &&
         end - start <= kMostGranules * kGranuleBytes;
}

// Leaves out what can't be, or lies on what is before it; returns how many these are. `list` is sorted by start.
template <class T, class IsPossible>
std::uint64_t leave_out(std::vector<T>& list, IsPossible is_possible_one) {
  std::uint64_t end = 0;
  const auto kept = std::remove_if(list.begin(), list.end(), [&](const T& one) {
    if (!is_possible_one(one) || one.start < end) return true;
    end = one.end;
    return false;
  });
  const auto count = static_cast<std::uint64_t>(list.end() - kept);
  list.erase(kept, list.end());
  return count;
}

}  // namespace

std::uint64_t Model::word(const std::byte* words, std::uint32_t group) {
  std::uint64_t value = 0;
  std::memcpy(&value, words + group * sizeof value, sizeof value);
  return value;
}

bool Model::word_at(std::uint64_t address, std::uint64_t& value) const {
  return (*read_)(address, &value, sizeof value);
}

bool Model::read_classes() {
  const std::uint64_t size = layout_->class_size;
  const std::uint64_t count = std::min<std::uint64_t>(layout_->classes, 255);
  std::vector<std::byte> table(count * size);
  if (!(*read_)(layout_->class_table, table.data(), table.size())) return false;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::byte* const at = table.data() + n * size;
    SizeClass size_class = {};
    std::uint16_t groups = 0;
    std::uint16_t granules = 0;
    std::memcpy(&size_class.bytes, at + layout_->class_bytes, sizeof size_class.bytes);
    std::memcpy(&groups, at + layout_->class_groups, sizeof groups);
    std::memcpy(&granules, at + layout_->class_granules, sizeof granules);
    size_class.groups = groups;
    size_class.granules = granules;
    if (std::uint64_t{size_class.bytes} * groups * kGroupObjects > granules * kGranuleBytes) return make_no_sense();
    classes_.push_back(size_class);
  }
  return true;
}

bool Model::read_windows() {
  std::uint64_t count = 0;
  std::uint64_t covered = 0;
  if (!word_at(layout_->windows_count, count) || !word_at(layout_->table_covered, covered)) return false;
  std::uint64_t first = 0;
  for (std::uint64_t n = 0; n < std::min<std::uint64_t>(count, 1024); ++n) {
    const std::uint64_t at = layout_->windows + n * layout_->window_size;
    std::uint64_t start = 0;
    std::uint64_t bytes = 0;
    if (!word_at(at + layout_->window_start, start) || !word_at(at + layout_->window_bytes, bytes)) {
      return false;
    }
    if (bytes > kMostGranules * kGranuleBytes || !is_possible(start, start + bytes)) return make_no_sense();
    const std::uint64_t granules = std::min(bytes >> kGranuleShift, covered - std::min(covered, first));
    windows_.push_back(
        {{start, start + bytes}, first * kGranuleBytes / kHugepageBytes, start + granules * kGranuleBytes});
    first += bytes >> kGranuleShift;
  }
  return true;
}

bool Model::read_chunks(Raw& into) {
  std::uint64_t at = 0;
  std::uint64_t all = 0;
  if (!word_at(layout_->arena_chunks, at)) return false;
  for (std::size_t n = 0; at != 0 && n < kMostChunks; ++n) {
    std::uint64_t next = 0;
    std::uint64_t bytes = 0;
    if (!word_at(at + layout_->chunk_next, next) || !word_at(at + layout_->chunk_bytes, bytes)) {
      return false;
    }
    all += bytes;
    if (bytes <= layout_->chunk_in_window || bytes > kMostChunkBytes || all > kMostMetadata) return make_no_sense();
    Copy chunk = {at, std::vector<std::byte>(bytes)};
    if (!(*read_)(at, chunk.bytes.data(), bytes)) return false;
    into.chunks.push_back(std::move(chunk));
    // A list that goes back goes round.
    const bool is_known = n % 64 == 63 && std::any_of(into.chunks.begin(), into.chunks.end(),
                                                      [&](const Copy& c) { return c.start == next; });
    if (next == at || is_known) return make_no_sense();
    at = next;
  }
  std::sort(into.chunks.begin(), into.chunks.end(), [](const Copy& a, const Copy& b) { return a.start < b.start; });
  return at == 0 || make_no_sense();
}

bool Model::read_raw(Raw& into) {
  // The table first: what it leads to is older than what is read after it, so it is there.
  std::uint64_t entries = 0;
  std::uint64_t records = 0;
  std::uint64_t covered = 0;
  if (!word_at(layout_->table_entries, entries) || !word_at(layout_->table_hugepages, records) ||
      !word_at(layout_->table_span, span_) || !word_at(layout_->table_covered, covered) || covered > kMostGranules) {
    return false;
  }
  into.table.resize(covered);
  into.records.resize(covered * kGranuleBytes / kHugepageBytes * layout_->hugepage_size);
  if (covered != 0 && (!(*read_)(entries, into.table.data(), covered * 8) ||
                       !(*read_)(records, into.records.data(), into.records.size()))) {
    return false;
  }
  return read_chunks(into);
}

const std::byte* Model::piece(const Raw& raw, std::uint64_t address, std::size_t bytes) {
  const auto behind = std::upper_bound(raw.chunks.begin(), raw.chunks.end(), address,
                                       [](std::uint64_t a, const Copy& c) { return a < c.start; });
  if (behind == raw.chunks.begin()) return nullptr;
  const Copy& chunk = *(behind - 1);
  const std::uint64_t offset = address - chunk.start;
  return offset < chunk.bytes.size() && chunk.bytes.size() - offset >= bytes ? chunk.bytes.data() + offset : nullptr;
}

bool Model::read_live_map() {
  std::uint64_t count = 0;
  if (!word_at(layout_->live_map_count, count)) return false;
  for (std::uint64_t n = 0; n < std::min<std::uint64_t>(count, 1024); ++n) {
    const std::uint64_t at = layout_->live_map_regions + n * layout_->region_size;
    std::uint64_t covered = 0;
    std::uint64_t words = 0;
    if (!word_at(at + layout_->region_covered, covered) || !word_at(at + layout_->region_words, words)) {
      return false;
    }
    const std::uint64_t bytes = (covered / 16 / 8 + 4095) / 4096 * 4096;  // a bit for each 16 bytes
    if (bytes > kMostGranules * kGranuleBytes || (covered != 0 && !is_possible(words, words + bytes)))
      return make_no_sense();
    if (covered != 0) metadata_.push_back({words, words + bytes});
  }
  return true;
}

bool Model::make_no_sense() {
  error_ = "what its heap says of itself makes no sense: it is damaged, or moves too fast";
  return false;
}

void Model::leave_out_nonsense() {
  const auto is_in_window = [this](std::uint64_t start, std::uint64_t end) {
    return std::any_of(windows_.begin(), windows_.end(), [&](const Window& window) {
      return start >= window.range.start && start < end && end <= window.range.end;
    });
  };
  moving_granules_ += leave_out(slabs_, [&](const Slab& slab) { return is_in_window(slab.start, slab.end); });
  moving_granules_ += leave_out(blocks_, [&](const Block& block) {
    const bool has_place = block.is_huge ? is_possible(block.start, block.end) : is_in_window(block.start, block.end);
    return has_place && block.start <= block.usable_end && block.usable_end <= block.end;
  });
  const bool has_pool = is_possible(guarded_.start, guarded_.end);
  const auto is_wrong = [&](const Guarded& object) {
    const std::uint64_t page_end = object.page + guarded_.page_bytes;
    return !has_pool || object.page < guarded_.start || page_end < object.page || page_end > guarded_.end ||
           object.start < object.page || object.start > page_end || object.bytes > page_end - object.start;
  };
  moving_granules_ += std::erase_if(guarded_.objects, is_wrong);
  if (!has_pool) guarded_ = {};
}

bool Model::read(memory::Anatomy& anatomy, const memory::Read& read, Looks looks) {
  read_ = &read;
  layout_.emplace(anatomy);
  if (!anatomy.missing().empty()) {
    error_ = "it has brimful " + anatomy.version() + ", whose anatomy lacks \"" + anatomy.missing() +
             "\": use the observer of that version";
    return false;
  }
  if (!layout_->makes_sense()) return make_no_sense();
  const auto fail = [this] {
    if (error_.empty()) error_ = "its heap can't be read: the process has ended, or the core lacks this memory";
    return false;
  };
  std::uint64_t entries = 0, entry_bytes = 0, records = 0, record_bytes = 0;
  if (!read_classes() || !read_windows() || !read_raw(raw_)) return fail();
  if (!word_at(layout_->table_entries, entries) || !word_at(layout_->table_entry_bytes, entry_bytes) ||
      !word_at(layout_->table_hugepages, records) || !word_at(layout_->table_record_bytes, record_bytes) ||
      !read_live_map()) {
    return fail();
  }
  if (entry_bytes > kMostGranules * kGranuleBytes || record_bytes > kMostGranules * kGranuleBytes ||
      (entry_bytes != 0 && !is_possible(entries, entries + entry_bytes)) ||
      (record_bytes != 0 && !is_possible(records, records + record_bytes))) {
    return make_no_sense();
  }
  if (entry_bytes != 0) metadata_.push_back({entries, entries + entry_bytes});
  if (record_bytes != 0) metadata_.push_back({records, records + record_bytes});
  for (const Copy& chunk : raw_.chunks) {
    const Range range = {chunk.start, chunk.start + chunk.bytes.size()};
    const bool in_window = chunk.bytes[layout_->chunk_in_window] != std::byte{0};
    (in_window ? metadata_in_windows_ : metadata_).push_back(range);
  }
  for (std::uint64_t n = 0; n < raw_.table.size(); ++n) find_slabs(n);
  if (!read_magazines() || !read_huge() || !read_guarded(layout_->guards_pool, read, guarded_)) return fail();
  std::sort(slabs_.begin(), slabs_.end(), [](const Slab& a, const Slab& b) { return a.start < b.start; });
  std::sort(blocks_.begin(), blocks_.end(), [](const Block& a, const Block& b) { return a.start < b.start; });
  std::sort(kept_.begin(), kept_.end(), [](const Kept& a, const Kept& b) { return a.address < b.address; });
  leave_out_nonsense();
  if (looks == Looks::kOne) return true;
  Raw second;
  if (!read_raw(second)) return fail();
  compare(second);
  return true;
}

const HugepageRecord* Model::hugepage(std::uint64_t address) const {
  static thread_local HugepageRecord record;
  for (const Window& window : windows_) {
    if (!window.range.holds(address)) continue;
    const std::uint64_t n = window.first_hugepage + (address - window.range.start) / kHugepageBytes;
    const std::uint64_t size = layout_->hugepage_size;
    if ((n + 1) * size > raw_.records.size()) return nullptr;
    const std::byte* const at = raw_.records.data() + n * size;
    std::memcpy(&record.free, at + layout_->hugepage_free, 4);
    std::memcpy(&record.dirty, at + layout_->hugepage_dirty, 4);
    std::memcpy(&record.committed, at + layout_->hugepage_committed, 4);
    std::memcpy(&record.used_once, at + layout_->hugepage_used_once, 4);
    record.is_used = static_cast<std::uint64_t>(at[layout_->hugepage_state]) == layout_->hugepage_used;
    return &record;
  }
  return nullptr;
}

const Slab* Model::slab_at(std::uint64_t address) const {
  const auto behind = std::upper_bound(slabs_.begin(), slabs_.end(), address,
                                       [](std::uint64_t a, const Slab& s) { return a < s.start; });
  return behind != slabs_.begin() && address < (behind - 1)->end ? &*(behind - 1) : nullptr;
}

const Block* Model::block_at(std::uint64_t address) const {
  const auto behind = std::upper_bound(blocks_.begin(), blocks_.end(), address,
                                       [](std::uint64_t a, const Block& b) { return a < b.start; });
  return behind != blocks_.begin() && address < (behind - 1)->end ? &*(behind - 1) : nullptr;
}

void Model::live_words(const Slab& slab, std::vector<std::uint64_t>& live) const {
  live.resize(slab.groups);
  for (std::uint32_t group = 0; group < slab.groups; ++group)
    live[group] = ~(word(slab.words, group) | word(slab.offered, group) | word(slab.remote, group));
  const std::uint64_t end = slab.object(slab.count());
  auto kept = std::lower_bound(kept_.begin(), kept_.end(), slab.start,
                               [](const Kept& k, std::uint64_t a) { return k.address < a; });
  for (; kept != kept_.end() && kept->address < end; ++kept) {
    const std::uint64_t index = (kept->address - slab.start) / slab.object_bytes;
    live[index / kGroupObjects] &= ~(std::uint64_t{1} << (index % kGroupObjects));
  }
}

}  // namespace brimful::observer::heap
