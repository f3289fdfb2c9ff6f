// SPDX-License-Identifier: MIT
//
// stats/sample_file.h.
#include "stats/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "base/line.h"
#include "base/units.h"
#include "config/options.h"
#include "os/calls.h"
#include "os/errno_guard.h"
#include "os/thread.h"
#include "os/write.h"
#include "slots/samples.h"
#include "slots/sampling.h"

namespace brimful::stats {
namespace {

using meta::SampleRecord;

constexpr char kMagicLine[32] = "brimful samples 1\n";
constexpr std::size_t kNameBytes = 8;

// The path with the process's number. false: too long.
bool expand(const char* path, char* into) {
  std::size_t length = 0;
  for (const char* c = path; *c != '\0'; ++c) {
    Line number;
    const bool is_number = c[0] == '%' && c[1] == 'p';
    if (is_number) {
      number << static_cast<std::uint64_t>(os::process_id());
      ++c;
    } else {
      number.append(c, 1);
    }
    const std::size_t bytes = strlen(number.data());
    if (length + bytes >= config::kPathBytes) return false;
    // NOLINTNEXTLINE(bugprone-not-null-terminated-result): the end comes behind the last piece
    memcpy(into + length, number.data(), bytes);
    length += bytes;
  }
  into[length] = '\0';
  return true;
}

// A file that is written; the first error is kept.
class File {
 public:
  explicit File(const char* path) {
    descriptor_ = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (descriptor_ < 0) error_ = errno;
  }
  ~File() {
    if (descriptor_ >= 0) syscall(SYS_close, descriptor_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void put(const void* data, std::size_t bytes) {
    if (error_ == 0) error_ = os::write_whole(descriptor_, static_cast<const char*>(data), bytes);
  }
  void begin_section(const char* name, std::uint64_t bytes) {
    char head[kNameBytes + sizeof bytes];
    memset(head, ' ', kNameBytes);
    memcpy(head, name, strlen(name));
    memcpy(head + kNameBytes, &bytes, sizeof bytes);
    put(head, sizeof head);
  }
  void put_section(const char* name, const void* data, std::size_t bytes) {
    constexpr char kZeros[8] = {};
    begin_section(name, bytes);
    put(data, bytes);
    put(kZeros, round_up(bytes, sizeof kZeros) - bytes);
  }
  [[nodiscard]] int error() const { return error_; }

 private:
  int descriptor_ = -1;
  int error_ = 0;
};

// A copy of the record with its stacks. 0 bytes: there is none, or it changed.
std::size_t copy_record(const SampleRecord* record, char* into) {
  // pairs with: end_change() of slots/samples.cpp (the record)
  const std::uint32_t before = record->sequence.load(std::memory_order_acquire);
  // relaxed: the sequence says whether it belongs to the rest
  if (before % 2 != 0 || record->state.load(std::memory_order_relaxed) == 0) return 0;
  const auto end_of = [](const meta::SampleStack& stack) {
    return stack.stack_bytes != 0 ? std::size_t{stack.stack_offset} + stack.stack_bytes : sizeof(SampleRecord);
  };
  const std::size_t bytes = std::max(end_of(record->allocation), end_of(record->release));
  if (bytes > meta::kSampleSlotBytes) return 0;
  memcpy(into, static_cast<const void*>(record), bytes);
  std::atomic_thread_fence(std::memory_order_acquire);  // pairs with: begin_change() (an odd number)
  // relaxed: ordered by the fence
  return record->sequence.load(std::memory_order_relaxed) == before ? bytes : 0;
}

void put_records(File& file, char* buffer) {
  for (std::uint32_t slot = 1; const SampleRecord* record = slots::sample_record(slot); ++slot) {
    const std::size_t bytes = copy_record(record, buffer);
    if (bytes != 0) file.put_section("SAMPLE", buffer, bytes);
  }
}

// Of a length that is known only when it was read: it comes last, and its number of bytes is 0.
void put_maps(File& file, char* buffer) {
  const auto maps = static_cast<int>(syscall(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC, 0));
  if (maps < 0) return;
  file.begin_section("MAPS", 0);
  for (;;) {
    const long got = syscall(SYS_read, maps, buffer, meta::kSampleSlotBytes);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    file.put(buffer, static_cast<std::size_t>(got));
  }
  syscall(SYS_close, maps);
}

}  // namespace

int write_samples(const char* path) {
  const os::ErrnoGuard guard;
  char expanded[config::kPathBytes];
  if (!expand(path, expanded)) return ENAMETOOLONG;
  void* buffer = os::calls.map(0, meta::kSampleSlotBytes, os::Access::kReadWrite);
  if (buffer == nullptr) return ENOMEM;
  int error = 0;
  {
    File file(expanded);
    file.put(kMagicLine, sizeof kMagicLine);
    file.put_section("CONTROL", &meta::sample_control, sizeof meta::sample_control);
    put_records(file, static_cast<char*>(buffer));
    put_maps(file, static_cast<char*>(buffer));
    error = file.error();
  }
  os::calls.unmap(reinterpret_cast<std::uintptr_t>(buffer), meta::kSampleSlotBytes);
  return error;
}

}  // namespace brimful::stats
