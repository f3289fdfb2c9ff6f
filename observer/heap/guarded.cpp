// SPDX-License-Identifier: MIT
//
// heap/guarded.h.
#include "heap/guarded.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

namespace brimful::observer::heap {
namespace {

using meta::GuardPool;
using meta::GuardRecord;
using meta::GuardState;

// What a pool or a record says at its beginning.
template <std::size_t kBytes>
using Head = std::array<std::byte, kBytes>;

template <class T, std::size_t kBytes>
T field(const Head<kBytes>& head, std::size_t offset) {
  T value;
  std::memcpy(&value, head.data() + offset, sizeof value);
  return value;
}

constexpr std::uint32_t kMostSlots = 1 << 16;

}  // namespace

bool read_guarded(std::uint64_t pool_address, const memory::Read& read, GuardedObjects& into) {
  Head<sizeof(GuardPool)> pool;
  if (!read(pool_address, pool.data(), pool.size())) return false;
  const auto records = field<std::uint64_t>(pool, offsetof(GuardPool, records));
  const auto bytes = field<std::uint64_t>(pool, offsetof(GuardPool, bytes));
  const auto slots = field<std::uint32_t>(pool, offsetof(GuardPool, slots));
  const auto readable = std::min(field<std::uint32_t>(pool, offsetof(GuardPool, readable)), kMostSlots);
  if (bytes == 0) return true;
  into.start = field<std::uint64_t>(pool, offsetof(GuardPool, start));
  into.end = records + std::uint64_t{slots} * sizeof(GuardRecord);
  into.page_bytes = field<std::uint32_t>(pool, offsetof(GuardPool, page_bytes));
  for (std::uint64_t slot = 0; slot < readable; ++slot) {
    Head<offsetof(GuardRecord, allocation)> head;
    const std::uint64_t record = records + slot * sizeof(GuardRecord);
    if (!read(record, head.data(), head.size())) return false;
    const auto state = static_cast<GuardState>(field<std::uint32_t>(head, offsetof(GuardRecord, state)));
    if (state == GuardState::kUnused) continue;
    into.objects.push_back({field<std::uint64_t>(head, offsetof(GuardRecord, address)),
                            field<std::uint64_t>(head, offsetof(GuardRecord, bytes)),
                            into.start + (2 * slot + 1) * into.page_bytes, record, state == GuardState::kLive});
  }
  return true;
}

}  // namespace brimful::observer::heap
