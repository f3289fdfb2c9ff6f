// SPDX-License-Identifier: MIT
#include "stacks/live_samples.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "memory/process.h"

namespace brimful::observer::stacks {

namespace {

using meta::SampleControl;
using meta::SampleRecord;

constexpr std::size_t kMostAtOnce = 1024;  // IOV_MAX: pieces of memory in one call

}  // namespace

// What says whether a record is news.
struct LiveSamples::Head {
  std::uint32_t sequence;
  meta::SampleState state;
  std::uint64_t number;
};

LiveSamples::LiveSamples(pid_t process, std::uint64_t control)
    : process_(process),
      read_([process](std::uint64_t address, void* into, std::size_t bytes) {
        return memory::read_process(process, address, into, bytes);
      }),
      control_(control) {
  static_assert(offsetof(SampleRecord, sequence) == offsetof(Head, sequence));
  static_assert(offsetof(SampleRecord, state) == offsetof(Head, state));
  static_assert(offsetof(SampleRecord, number) == offsetof(Head, number));
}

bool LiveSamples::look() {
  // Copied as bytes: another process writes it, and each word is read whole.
  alignas(SampleControl) unsigned char bytes[sizeof(SampleControl)];
  why_.clear();
  if (!read_(control_, bytes, sizeof bytes)) return false;
  const auto word = [&](std::size_t at) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes + at, sizeof value);
    return value;
  };
  interval_ = word(offsetof(SampleControl, interval_bytes));
  if (interval_ == meta::kIntervalUnread) interval_ = 0;  // it has not begun
  taken_ = word(offsetof(SampleControl, taken));
  lost_ = word(offsetof(SampleControl, lost));
  allocated_bytes_ = word(offsetof(SampleControl, allocated_bytes));
  records_ = word(offsetof(SampleControl, records));
  slot_bytes_ = word(offsetof(SampleControl, slot_bytes));
  used_ = std::min(word(offsetof(SampleControl, used)), word(offsetof(SampleControl, slots)));
  const std::uint64_t magic = word(offsetof(SampleControl, magic));
  std::uint32_t record = 0;
  std::memcpy(&record, bytes + offsetof(SampleControl, record_bytes), sizeof record);
  if (magic == 0) {  // nothing was ever sampled
    records_ = used_ = 0;
    return true;
  }
  if (magic != meta::kSampleMagic || record != sizeof(SampleRecord) || slot_bytes_ != meta::kSampleSlotBytes) {
    why_ = "its samples are those of another version of the library";
    return false;
  }
  return true;
}

bool LiveSamples::set_interval(std::uint64_t bytes) {
  const std::uint64_t at = control_ + offsetof(SampleControl, interval_bytes);
  iovec local{&bytes, sizeof bytes};
  iovec remote{reinterpret_cast<void*>(at), sizeof bytes};
  if (::process_vm_writev(process_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(sizeof bytes)) return false;
  interval_ = bytes;
  return true;
}

bool LiveSamples::take(std::uint64_t slot, Samples& into) {
  const std::uint64_t at = records_ + slot * slot_bytes_;
  buffer_.assign(slot_bytes_, 0);
  if (!read_(at, buffer_.data(), sizeof(SampleRecord))) return false;
  const auto number_at = [&](std::size_t offset) {
    std::uint32_t value = 0;
    std::memcpy(&value, buffer_.data() + offset, sizeof value);
    return value;
  };
  const std::uint32_t before = number_at(offsetof(SampleRecord, sequence));
  if ((before & 1) != 0) return true;
  // Only what was copied: the rest of a slot is address space without memory, and reading would give it some.
  for (const std::size_t stack : {offsetof(SampleRecord, allocation), offsetof(SampleRecord, release)}) {
    const std::uint32_t size = number_at(stack + offsetof(meta::SampleStack, stack_bytes));
    const std::uint32_t offset = number_at(stack + offsetof(meta::SampleStack, stack_offset));
    if (size == 0) continue;
    if (offset > slot_bytes_ || size > slot_bytes_ - offset) return true;
    if (!read_(at + offset, buffer_.data() + offset, size)) return false;
  }
  std::uint32_t after = 0;
  if (!read_(at + offsetof(SampleRecord, sequence), &after, sizeof after)) return false;
  if (after == before) into.add(buffer_);
  return true;
}

bool LiveSamples::read_heads(std::uint64_t first, std::size_t count, Head* into) const {
  std::vector<iovec> remote(count);
  for (std::size_t i = 0; i < count; i++) {
    remote[i] = {reinterpret_cast<void*>(records_ + (first + i) * slot_bytes_), sizeof(Head)};
    if (process_ == 0 && !read_(records_ + (first + i) * slot_bytes_, into + i, sizeof(Head))) return false;
  }
  if (process_ == 0) return true;
  iovec local{into, count * sizeof(Head)};
  const ssize_t size = ::process_vm_readv(process_, &local, 1, remote.data(), count, 0);
  return size == static_cast<ssize_t>(count * sizeof(Head));
}

bool LiveSamples::poll(Samples& into) {
  if (!look()) return false;
  std::vector<Head> heads(kMostAtOnce);
  for (std::uint64_t first = 0; first < used_; first += kMostAtOnce) {
    const std::size_t count = std::min<std::uint64_t>(kMostAtOnce, used_ - first);
    if (!read_heads(first, count, heads.data())) return false;
    for (std::size_t i = 0; i < count; i++) {
      const Head& head = heads[i];
      if ((head.sequence & 1) != 0 || !into.is_news(head.number, head.state)) continue;
      if (!take(first + i, into)) return false;
    }
  }
  return true;
}

}  // namespace brimful::observer::stacks
