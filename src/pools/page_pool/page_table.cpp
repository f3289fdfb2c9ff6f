// SPDX-License-Identifier: MIT
//
// How the page pool's table of pages grows, shrinks and is checked.
#include "pools/page_pool/page_table.h"

#include <cstring>

namespace brimful::pools::page_pool {

bool PageTable::grow_directory(const brimful_pool_host& host, std::size_t needed) {
  const std::size_t old_bytes = capacity_ * sizeof *directory_;
  std::size_t bytes = old_bytes < host.page_bytes ? host.page_bytes : old_bytes * 2;
  while (bytes < needed * sizeof *directory_) bytes *= 2;
  void* memory = host.get_pages(host.context, bytes);
  if (memory == nullptr) return false;
  std::memcpy(memory, directory_, chunks_ * sizeof *directory_);
  if (directory_ != inside_) host.give_pages(host.context, directory_, old_bytes);
  directory_ = static_cast<Entry**>(memory);
  capacity_ = bytes / sizeof *directory_;
  return true;
}

bool PageTable::reserve(const brimful_pool_host& host) {
  if (count_ < chunks_ * kChunk) return true;
  const std::size_t more = host.page_bytes / kChunkBytes;
  if (count_ >= kEnd) return false;
  if (chunks_ + more > capacity_ && !grow_directory(host, chunks_ + more)) return false;
  char* memory = static_cast<char*>(host.get_pages(host.context, host.page_bytes));
  if (memory == nullptr) return false;
  for (std::size_t i = 0; i < more; ++i) {
    directory_[chunks_++] = reinterpret_cast<Entry*>(memory + i * kChunkBytes);
  }
  return true;
}

void PageTable::add(void* page) {
  const std::size_t fresh = count_++;
  if (fresh > mask_) mask_ = mask_ * 2 + 1;
  Entry& ours = entry(fresh);
  ours.page = reinterpret_cast<std::uintptr_t>(page);
  ours.head = kEnd;
  all_pages_ ^= ours.page;
  if (fresh != 0) {
    // What belongs to the new bucket is in this one.
    std::uint32_t* link = &entry(fresh & mask_ / 2).head;
    while (*link != kEnd) {
      Entry& other = entry(*link);
      if (bucket_of(other.page) == fresh) {
        const std::uint32_t number = *link;
        *link = other.next;
        other.next = ours.head;
        ours.head = number;
      } else {
        link = &other.next;
      }
    }
  }
  std::uint32_t& head = entry(bucket_of(ours.page)).head;
  ours.next = head;
  head = static_cast<std::uint32_t>(fresh);
}

std::uint32_t* PageTable::link_to(std::size_t number) const {
  std::uint32_t* link = &entry(bucket_of(entry(number).page)).head;
  while (*link != number) link = &entry(*link).next;
  return link;
}

void PageTable::remove(const brimful_pool_host& host, std::size_t number) {
  *link_to(number) = entry(number).next;
  all_pages_ ^= entry(number).page;
  const std::size_t last = count_ - 1;
  if (last != number) {
    *link_to(last) = static_cast<std::uint32_t>(number);
    entry(number).page = entry(last).page;
    entry(number).next = entry(last).next;
  }
  if (last != 0) {
    // The last bucket's chain goes to the end of the one that it was split from.
    std::uint32_t* link = &entry(last & mask_ / 2).head;
    while (*link != kEnd) link = &entry(*link).next;
    *link = entry(last).head;
  }
  count_ = last;
  if (mask_ != 0 && last <= mask_ / 2 + 1) mask_ /= 2;

  const std::size_t fewer = host.page_bytes / kChunkBytes;
  if (chunks_ > fewer && count_ + kChunk * fewer / 2 <= (chunks_ - fewer) * kChunk) {
    chunks_ -= fewer;
    host.give_pages(host.context, directory_[chunks_], host.page_bytes);
  }
}

void PageTable::give_all(const brimful_pool_host& host) {
  for (std::size_t i = 0; i < chunks_; i += host.page_bytes / kChunkBytes) {
    host.give_pages(host.context, directory_[i], host.page_bytes);
  }
  if (directory_ != inside_) host.give_pages(host.context, directory_, capacity_ * sizeof *directory_);
}

bool PageTable::has(std::uintptr_t page) const {
  if (count_ == 0) return false;
  std::size_t steps = 0;
  for (std::uint32_t i = entry(bucket_of(page)).head; i < count_ && steps < count_; i = entry(i).next, ++steps) {
    if (entry(i).page == page) return true;
  }
  return false;
}

bool PageTable::is_sound(std::size_t page_bytes, const void** bad) const {
  std::size_t linked = 0;
  std::uintptr_t all_pages = 0;
  for (std::size_t bucket = 0; bucket < count_; ++bucket) {
    *bad = &entry(bucket);
    const std::uintptr_t page = entry(bucket).page;
    if (page == 0 || (page & (page_bytes - 1)) != 0) return false;
    all_pages ^= page;
    for (std::uint32_t i = entry(bucket).head; i != kEnd; i = entry(i).next) {
      // Each entry belongs to one bucket, so none is counted twice but in a ring, which ends here.
      if (i >= count_ || ++linked > count_ || bucket_of(entry(i).page) != bucket) return false;
    }
  }
  return linked == count_ && all_pages == all_pages_;
}

}  // namespace brimful::pools::page_pool
