// SPDX-License-Identifier: MIT
//
// inspect/sample.h.
#include "inspect/sample.h"

#include <algorithm>
#include <cstring>

#include "meta/guard_record.h"
#include "meta/sample_record.h"

namespace brimful::observer::inspect {
namespace {

using meta::SampleControl;
using meta::SampleRecord;
using meta::SampleStack;

template <class T>
T field(const std::vector<std::byte>& bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

nlohmann::json stack(const std::vector<std::byte>& record, std::size_t offset) {
  nlohmann::json frames = nlohmann::json::array({field<std::uint64_t>(record, offset)});  // where it was captured
  const auto count = std::min<std::uint32_t>(field<std::uint32_t>(record, offset + offsetof(SampleStack, frames)),
                                             meta::kSampleFrames);
  for (std::size_t n = 0; n < count; ++n) {
    frames.push_back(field<std::uint64_t>(record, offset + offsetof(SampleStack, addresses) + n * 8));
  }
  return {{"tid", field<std::uint32_t>(record, offset + offsetof(SampleStack, tid))}, {"frames", std::move(frames)}};
}

}  // namespace

nlohmann::json guarded_stacks(const memory::Read& read, const heap::Guarded& object) {
  std::vector<std::byte> record(sizeof(meta::GuardRecord));
  if (!read(object.record, record.data(), record.size())) return nullptr;
  nlohmann::json found = {{"number", field<std::uint64_t>(record, offsetof(meta::GuardRecord, number))},
                          {"requested", object.bytes},
                          {"allocated_by", stack(record, offsetof(meta::GuardRecord, allocation))}};
  if (!object.is_live) found["freed_by"] = stack(record, offsetof(meta::GuardRecord, release));
  return found;
}

nlohmann::json sample_of(const heap::Model& model, const memory::Read& read, std::uint64_t object) {
  std::vector<std::byte> control(sizeof(SampleControl));
  if (!read(model.layout().samples_control, control.data(), control.size())) return nullptr;
  if (field<std::uint64_t>(control, offsetof(SampleControl, magic)) != meta::kSampleMagic ||
      field<std::uint32_t>(control, offsetof(SampleControl, record_bytes)) != sizeof(SampleRecord)) {
    return nullptr;
  }
  const auto records = field<std::uint64_t>(control, offsetof(SampleControl, records));
  const auto used = std::min(field<std::uint64_t>(control, offsetof(SampleControl, used)),
                             field<std::uint64_t>(control, offsetof(SampleControl, slots)));
  const auto step = field<std::uint64_t>(control, offsetof(SampleControl, slot_bytes));
  std::vector<std::byte> found;
  std::uint64_t newest = 0;
  for (std::uint64_t n = 0; n < used; ++n) {
    const std::uint64_t at = records + n * step;
    std::vector<std::byte> head(offsetof(SampleRecord, allocation));
    if (!read(at, head.data(), head.size()) || field<std::uint64_t>(head, offsetof(SampleRecord, address)) != object)
      continue;
    const auto number = field<std::uint64_t>(head, offsetof(SampleRecord, number));
    if (number <= newest) continue;
    std::vector<std::byte> record(sizeof(SampleRecord));
    std::uint32_t after = 0;
    const auto before = field<std::uint32_t>(head, offsetof(SampleRecord, sequence));
    if ((before & 1) != 0 || !read(at, record.data(), record.size()) || !read(at, &after, sizeof after) ||
        after != before) {
      continue;  // being written: who asks again finds it
    }
    newest = number;
    found = std::move(record);
  }
  if (found.empty()) return nullptr;
  const bool is_freed = field<std::uint32_t>(found, offsetof(SampleRecord, state)) ==
                        static_cast<std::uint32_t>(meta::SampleState::kFreed);
  nlohmann::json sample = {{"number", newest},
                           {"requested", field<std::uint64_t>(found, offsetof(SampleRecord, requested_bytes))},
                           {"allocated_ns", field<std::uint64_t>(found, offsetof(SampleRecord, allocated_ns))},
                           {"allocated_by", stack(found, offsetof(SampleRecord, allocation))}};
  if (is_freed) {
    sample["freed_ns"] = field<std::uint64_t>(found, offsetof(SampleRecord, freed_ns));
    sample["freed_by"] = stack(found, offsetof(SampleRecord, release));
  }
  return sample;
}

}  // namespace brimful::observer::inspect
