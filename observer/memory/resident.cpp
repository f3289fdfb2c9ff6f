// SPDX-License-Identifier: MIT
//
// memory/resident.h.
#include "memory/resident.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <string>

namespace brimful::observer::memory {
namespace {

// linux/fs.h of 6.7, which older systems' headers lack.
struct ScanRegion {
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t categories;
};
struct ScanRequest {
  std::uint64_t size;
  std::uint64_t flags;
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t walk_end;
  std::uint64_t regions;
  std::uint64_t region_count;
  std::uint64_t most_pages;
  std::uint64_t category_inverted;
  std::uint64_t category_mask;
  std::uint64_t category_anyof_mask;
  std::uint64_t return_mask;
};
constexpr unsigned long kScan = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t kScanPresent = 1U << 3;
constexpr std::uint64_t kScanZero = 1U << 5;
constexpr std::size_t kRegions = 4096;

constexpr std::uint64_t kMapPresent = std::uint64_t{1} << 63;
constexpr std::size_t kEntries = 1 << 16;

}  // namespace

Resident::Resident(std::uint64_t start, std::uint64_t end, bool all)
    : start_(start / kPageBytes * kPageBytes),
      end_((end + kPageBytes - 1) / kPageBytes * kPageBytes),
      words_((end_ - start_) / kPageBytes / 64 + 1, all ? ~std::uint64_t{0} : 0) {}

void Resident::add(std::uint64_t from, std::uint64_t to) {
  for (std::uint64_t page = (from - start_) / kPageBytes; page < (to - start_) / kPageBytes;) {
    const std::uint64_t last = (to - start_) / kPageBytes;
    if (page % 64 == 0 && last - page >= 64) {
      words_[page / 64] = ~std::uint64_t{0};
      page += 64;
    } else {
      words_[page / 64] |= std::uint64_t{1} << (page % 64);
      ++page;
    }
  }
}

std::uint64_t Resident::bytes(std::uint64_t from, std::uint64_t to) const {
  std::uint64_t sum = 0;
  while (from < to) {
    const std::uint64_t page = (from - start_) / kPageBytes;
    const bool starts_page = (from - start_) % kPageBytes == 0;
    if (starts_page && page % 64 == 0 && to - from >= 64 * kPageBytes) {
      sum += static_cast<std::uint64_t>(std::popcount(words_[page / 64])) * kPageBytes;
      from += 64 * kPageBytes;
      continue;
    }
    const std::uint64_t next = std::min(to, start_ + (page + 1) * kPageBytes);
    if ((words_[page / 64] >> (page % 64) & 1) != 0) sum += next - from;
    from = next;
  }
  return sum;
}

PageMap::PageMap(pid_t pid)
    : file_(pid > 0 ? open(("/proc/" + std::to_string(pid) + "/pagemap").c_str(), O_RDONLY | O_CLOEXEC) : -1) {}

PageMap::~PageMap() {
  if (file_ >= 0) close(file_);
}

bool PageMap::scan(Resident& into) const {
  std::vector<ScanRegion> regions(kRegions);
  for (std::uint64_t at = into.start(); at < into.end();) {
    ScanRequest request = {};
    request.size = sizeof request;
    request.start = at;
    request.end = into.end();
    request.regions = reinterpret_cast<std::uint64_t>(regions.data());
    request.region_count = regions.size();
    request.category_inverted = kScanZero;
    request.category_mask = kScanPresent | kScanZero;
    request.return_mask = kScanPresent;
    const int found = ioctl(file_, kScan, &request);
    if (found < 0) return false;
    for (int n = 0; n < found; ++n) into.add(regions[n].start, regions[n].end);
    if (request.walk_end <= at) return false;
    at = request.walk_end;
  }
  return true;
}

bool PageMap::read(Resident& into) const {
  std::vector<std::uint64_t> entries(kEntries);
  for (std::uint64_t at = into.start(); at < into.end();) {
    const std::uint64_t wanted = std::min<std::uint64_t>(kEntries, (into.end() - at) / kPageBytes);
    const ssize_t got = pread(file_, entries.data(), wanted * 8, static_cast<off_t>(at / kPageBytes * 8));
    if (got < 8) return false;
    for (std::size_t n = 0; n < static_cast<std::size_t>(got) / 8; ++n, at += kPageBytes) {
      if ((entries[n] & kMapPresent) != 0) into.add(at, at + kPageBytes);
    }
  }
  return true;
}

Resident PageMap::look(std::uint64_t start, std::uint64_t end) const {
  if (file_ >= 0) {
    Resident resident(start, end, false);
    if (scan(resident)) return resident;
    Resident again(start, end, false);
    if (read(again)) return again;
  }
  return {start, end, true};
}

}  // namespace brimful::observer::memory
