// SPDX-License-Identifier: MIT
//
// Copying with process_vm_readv: one call takes up to 1,024 parts.
#include "memory/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

namespace brimful::observer::memory {
namespace {

constexpr std::uint64_t kMostPart = std::uint64_t{1} << 20;  // so that threads get equal shares
constexpr std::size_t kPartsOfACall = 256;
constexpr unsigned kMostThreads = 8;

// Entries of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst).
constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kSwapped = std::uint64_t{1} << 62;
constexpr std::uint64_t kOfFile = std::uint64_t{1} << 61;

}  // namespace

Image::~Image() {
  if (room_ != nullptr) munmap(room_, room_bytes_);
}

bool Image::prepare(std::uint64_t bytes, std::uint64_t most_bytes) {
  if (room_ == nullptr || most_bytes > room_bytes_) {
    if (room_ != nullptr) munmap(room_, room_bytes_);
    void* const room =
        mmap(nullptr, most_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    room_ = room == MAP_FAILED ? nullptr : static_cast<std::byte*>(room);
    room_bytes_ = room_ == nullptr ? 0 : most_bytes;
    if (room_ == nullptr) return false;
    madvise(room_, room_bytes_, MADV_HUGEPAGE);
  }
  constexpr int kPopulateWrite = 23;  // Linux 5.14; before it, pages come while copying
  madvise(room_, std::min(bytes, room_bytes_) / kPageBytes * kPageBytes, kPopulateWrite);
  return true;
}

std::size_t Image::add(std::uint64_t start, std::uint64_t bytes, Pages pages) {
  pieces_.push_back({start, bytes, nullptr, nullptr});
  which_.push_back(pages);
  return pieces_.size() - 1;
}

void Image::clear() {
  pieces_.clear();
  which_.clear();
  present_.clear();
  used_bytes_ = 0;
  copied_bytes_ = 0;
}

void Image::find_pages(int pagemap, std::size_t number, std::vector<Part>& parts) {
  Piece& piece = pieces_[number];
  const std::uint64_t pages = (piece.bytes + kPageBytes - 1) / kPageBytes;
  std::byte* const to = room_ + used_bytes_;
  piece.data = to;
  used_bytes_ += pages * kPageBytes;
  Bits present(pages);
  bool has_all = true;
  std::vector<std::uint64_t> entries(std::min<std::uint64_t>(pages, 1 << 16));
  for (std::uint64_t page = 0; page < pages;) {
    const std::uint64_t wanted = std::min<std::uint64_t>(pages - page, entries.size());
    const auto offset = static_cast<off_t>((piece.start / kPageBytes + page) * sizeof(std::uint64_t));
    const ssize_t got = pagemap < 0 ? -1 : pread(pagemap, entries.data(), wanted * sizeof(std::uint64_t), offset);
    const std::uint64_t known = got > 0 ? static_cast<std::uint64_t>(got) / sizeof(std::uint64_t) : 0;
    for (std::uint64_t n = 0; n < (known > 0 ? known : wanted); ++n, ++page) {
      // Where nothing is known, all are read.
      const std::uint64_t entry = known > 0 ? entries[n] : kPresent;
      const bool is_there =
          (entry & (kPresent | kSwapped)) != 0 && (which_[number] == Pages::kTouched || (entry & kOfFile) == 0);
      if (!is_there) {
        has_all = false;
        continue;
      }
      present.set(page);
      const std::uint64_t from = piece.start + page * kPageBytes;
      if (!parts.empty() && parts.back().from + parts.back().bytes == from &&
          parts.back().to + parts.back().bytes == to + page * kPageBytes && parts.back().bytes < kMostPart) {
        parts.back().bytes += kPageBytes;
      } else {
        parts.push_back({from, to + page * kPageBytes, kPageBytes});
      }
    }
  }
  if (!has_all) {
    present_.push_back(std::move(present));
    piece.present = &present_.back();
  }
}

bool Image::make_room() {
  std::uint64_t total = 0;
  for (const Piece& piece : pieces_) total += (piece.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  return total <= room_bytes_ || prepare(0, total);
}

bool Image::copy_by(const std::function<bool(std::uint64_t from, void* to, std::size_t bytes)>& read) {
  if (!make_room()) return false;
  for (Piece& piece : pieces_) {
    std::byte* const to = room_ + used_bytes_;
    piece.data = to;
    Bits present((piece.bytes + kPageBytes - 1) / kPageBytes);
    for (std::uint64_t at = 0; at < piece.bytes; at += kPageBytes) {
      if (!read(piece.start + at, to + at, kPageBytes)) continue;
      present.set(at / kPageBytes);
      copied_bytes_ += kPageBytes;
    }
    used_bytes_ += (piece.bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
    present_.push_back(std::move(present));
    piece.present = &present_.back();
  }
  return true;
}

bool Image::copy(pid_t pid) {
  if (!make_room()) return false;
  std::vector<Part> parts;
  const std::string path = "/proc/" + std::to_string(pid) + "/pagemap";
  const int pagemap = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  for (std::size_t n = 0; n < pieces_.size(); ++n) find_pages(pagemap, n, parts);
  if (pagemap >= 0) close(pagemap);

  std::atomic<std::size_t> next{0};
  std::atomic<std::uint64_t> copied{0};
  std::atomic<int> fault{0};
  const auto work = [&] {
    iovec from[kPartsOfACall];
    iovec to[kPartsOfACall];
    while (fault.load(std::memory_order_relaxed) == 0) {  // relaxed: only ends the work sooner
      const std::size_t first = next.fetch_add(kPartsOfACall, std::memory_order_relaxed);  // relaxed: a ticket
      if (first >= parts.size()) return;
      const std::size_t count = std::min(kPartsOfACall, parts.size() - first);
      for (std::size_t n = 0; n < count; ++n) {
        from[n] = {reinterpret_cast<void*>(parts[first + n].from), parts[first + n].bytes};
        to[n] = {parts[first + n].to, parts[first + n].bytes};
      }
      // A part that can't be read ends the call: it stays zeros, and the next call begins behind it.
      for (std::size_t n = 0; n < count;) {
        const ssize_t got = process_vm_readv(pid, to + n, count - n, from + n, count - n, 0);
        if (got < 0 && (errno == ESRCH || errno == EPERM)) {
          fault.store(errno, std::memory_order_relaxed);  // relaxed: read after join()
          return;
        }
        std::uint64_t left = got > 0 ? static_cast<std::uint64_t>(got) : 0;
        copied.fetch_add(left, std::memory_order_relaxed);  // relaxed: a sum that is read after join()
        while (n < count && left >= from[n].iov_len) left -= from[n++].iov_len;
        if (n < count) ++n;
      }
    }
  };
  std::vector<std::thread> helpers;
  const unsigned processors = std::thread::hardware_concurrency();
  for (unsigned n = 1; n < std::min(processors, kMostThreads) && n * kPartsOfACall < parts.size(); ++n)
    helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();
  copied_bytes_ = copied.load(std::memory_order_relaxed);  // relaxed: after join()
  errno = fault.load(std::memory_order_relaxed);           // relaxed: after join()
  return errno == 0;
}

}  // namespace brimful::observer::memory
