// SPDX-License-Identifier: MIT
#include "stacks/collect.h"

#include <algorithm>
#include <cstring>

namespace brimful::observer::stacks {

namespace {

// The record's order of registers, in DWARF's numbers.
constexpr unsigned kNumbers[] = {kIp, kSp, kBp, kBx, kR12, kR12 + 1, kR12 + 2, kR12 + 3};
static_assert(std::size(kNumbers) == meta::kSampleRegisters);

}  // namespace

bool Samples::is_news(std::uint64_t number, meta::SampleState state) const {
  if (state == meta::SampleState::kEmpty) return false;
  const auto at = by_number_.find(number);
  return at == by_number_.end() || (state == meta::SampleState::kFreed && samples_[at->second].freed_ns == 0);
}

void Samples::add(std::span<const unsigned char> slot) {
  meta::SampleRecord record;
  if (slot.size() < sizeof record) return;
  // A copy of plain bytes: nobody writes them any more, so its atomics are just numbers.
  std::memcpy(static_cast<void*>(&record), slot.data(), sizeof record);
  // relaxed: see above
  const auto state = static_cast<meta::SampleState>(record.state.load(std::memory_order_relaxed));
  if (!is_news(record.number, state)) return;
  const auto [at, fresh] = by_number_.try_emplace(record.number, samples_.size());
  if (fresh) {
    Sample sample;
    sample.number = record.number;
    sample.address = record.address;
    sample.requested = record.requested_bytes;
    sample.usable = record.usable_bytes;
    sample.interval = record.interval_bytes;
    sample.allocated_ns = record.allocated_ns;
    sample.thread = record.allocation.tid;
    sample.allocation = stack_of(record.allocation, slot, (record.flags & meta::kSampleAllocTruncated) != 0);
    samples_.push_back(sample);
  }
  Sample& sample = samples_[at->second];
  sample.flags = record.flags;
  if (state != meta::SampleState::kFreed) return;
  sample.freed_ns = record.freed_ns;
  sample.freed_by = record.release.tid;
  sample.release = stack_of(record.release, slot, (record.flags & meta::kSampleFreeTruncated) != 0);
}

int Samples::stack_of(const meta::SampleStack& stack, std::span<const unsigned char> slot, bool truncated) {
  Captured captured;
  for (unsigned i = 0; i < meta::kSampleRegisters; i++) captured.registers.set(kNumbers[i], stack.registers[i]);
  if (stack.stack_offset <= slot.size() && stack.stack_bytes <= slot.size() - stack.stack_offset) {
    captured.copy = slot.subspan(stack.stack_offset, stack.stack_bytes);
  }
  captured.addresses = {stack.addresses, std::min<std::size_t>(stack.frames, meta::kSampleFrames)};
  captured.truncated = truncated;

  const std::uint64_t bottom = stack.registers[meta::kSampleSp];
  std::map<std::size_t, int> interpreted;  // frame of the interpreter: the function that it ran
  const auto visit = [&](std::size_t index, const Place& place, const Registers& registers, std::uint64_t until) {
    const std::uint64_t from = registers.value[kSp] - bottom;
    std::vector<std::uint64_t> words;
    if (from <= captured.copy.size() && until > registers.value[kSp] && until - bottom <= captured.copy.size()) {
      words.resize((until - registers.value[kSp]) / 8);
      std::memcpy(words.data(), captured.copy.data() + from, words.size() * 8);
    }
    if (const PythonFunction* function = python_.function(place, registers, words)) {
      interpreted[index] = function_of(*function);
    }
  };
  const Unwound unwound = unwinder_.unwind(captured, visit);

  Stack result;
  result.end = unwound.end;
  for (std::size_t i = 0; i < unwound.frames.size(); i++) {
    const auto at = interpreted.find(i);
    if (at != interpreted.end()) result.locations.push_back(location_of({{kNoFile, 0}, at->second}));
    result.locations.push_back(location_of({unwound.frames[i].place, -1}));
  }
  const auto [at, fresh] = stack_numbers_.try_emplace(result, static_cast<int>(stacks_.size()));
  if (fresh) stacks_.push_back(result);
  return at->second;
}

int Samples::location_of(const Location& location) {
  const auto [at, fresh] = location_numbers_.try_emplace(location, static_cast<int>(locations_.size()));
  if (fresh) locations_.push_back(location);
  return at->second;
}

int Samples::function_of(const PythonFunction& function) {
  const auto [at, fresh] = function_numbers_.try_emplace(std::tuple(function.name, function.file, function.line),
                                                         static_cast<int>(functions_.size()));
  if (fresh) functions_.push_back(function);
  return at->second;
}

}  // namespace brimful::observer::stacks
