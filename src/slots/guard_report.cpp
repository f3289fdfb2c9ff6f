// SPDX-License-Identifier: MIT
//
// slots/guard_report.h. Tests match the beginning of these lines.
#include "slots/guard_report.h"

#include <stdlib.h>

#include <atomic>

#include "os/calls.h"
#include "os/probe.h"
#include "os/report.h"
#include "os/stack_text.h"
#include "slots/guards.h"

namespace brimful::slots {
namespace {

using meta::GuardRecord;
using meta::GuardState;

constinit std::atomic<bool> is_reporting{false};

// The first thread goes on, others wait for its end, which is the process's.
void begin_report() {
  while (is_reporting.exchange(true, std::memory_order_relaxed)) os::calls.yield();  // relaxed: nothing is published
}

const void* as_pointer(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

Line& put_bytes(Line& line, std::uint64_t count) { return line << count << (count == 1 ? " byte" : " bytes"); }

// "the 61-byte object 0x… to 0x…", its end the first byte behind it.
Line& describe(Line& line, const GuardRecord& record) {
  return line << "the " << record.bytes << "-byte object " << as_pointer(record.address) << " to "
              << as_pointer(record.address + record.bytes);
}

// Where the address lies: inside, before, behind.
Line& describe_place(Line& line, const GuardRecord& record, std::uint64_t address) {
  const std::uint64_t end = record.address + record.bytes;
  if (address < record.address) {
    put_bytes(line, record.address - address) << " before ";
  } else if (address >= end) {
    put_bytes(line, address - end) << " behind the end of ";
  } else {
    put_bytes(line, address - record.address) << " into ";
  }
  return describe(line, record);
}

os::StackWords words_of(const char* title, const GuardRecord& record, const meta::SampleStack& stack) {
  const char* top = reinterpret_cast<const char*>(&record) + stack.stack_offset;
  return {title, 0, 0, reinterpret_cast<const std::uint64_t*>(top), stack.stack_bytes / sizeof(std::uint64_t)};
}

// The stack of what is going on, then those of the record.
void report_all_stacks(const os::StackWords& now, const GuardRecord* record) {
  Line allocated;
  Line freed;
  os::StackWords stacks[3] = {now};
  std::size_t count = 1;
  if (record != nullptr) {
    allocated << "allocated by thread " << record->allocation.tid << ":";
    stacks[count++] = words_of(allocated.data(), *record, record->allocation);
  }
  if (record != nullptr && state_of(*record) == GuardState::kFreed) {
    freed << "freed by thread " << record->release.tid << ":";
    stacks[count++] = words_of(freed.data(), *record, record->release);
  }
  os::report_stacks(stacks, count);
}

// Words of a stack that are looked through.
constexpr std::size_t kWords = 512;

[[noreturn]] void end_with_stacks(const char* call, const GuardRecord* record) {
  const auto sp = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0)) & -sizeof(std::uint64_t);
  Line title;
  title << call << " called by thread " << os::thread_id() << ":";
  report_all_stacks({title.data(), 0, 0, reinterpret_cast<const std::uint64_t*>(sp), os::readable_words(sp, kWords)},
                    record);
  abort();
}

}  // namespace

bool report_fault(std::uint64_t address, const arch::Fault& fault) {
  if (!is_guarded(address)) return false;
  const GuardRecord* record = nearest_guarded(address);
  if (record == nullptr) return false;
  begin_report();
  const bool is_inside = address >= record->address && address < record->address + record->bytes;
  const bool is_freed = state_of(*record) == GuardState::kFreed || state_of(*record) == GuardState::kEnding;
  const char* const kind = is_freed                    ? "use after free: "
                           : address < record->address ? "buffer underflow: "
                                                       : "buffer overflow: ";
  const char* const access = fault.access == arch::Access::kWrite  ? "write to "
                             : fault.access == arch::Access::kRead ? "read from "
                                                                   : "access to ";
  Line line;
  describe_place(line << kind << access << as_pointer(address) << ", ", *record, address);
  if (is_freed) line << (is_inside ? ", which is free" : ", which is free (or of an object before it)");
  os::report(line);
  Line title;
  title << "the access, by thread " << os::thread_id() << ":";
  report_all_stacks({title.data(), fault.ip, fault.link, reinterpret_cast<const std::uint64_t*>(fault.sp),
                     os::readable_words(fault.sp, kWords)},
                    record);
  return true;
}

void report_bad_guarded(std::uint64_t address, const GuardRecord* record, const char* call) {
  begin_report();
  Line line;
  if (record != nullptr) {
    const bool is_free = call[0] == 'f';
    line << (is_free ? "double free: " : "use after free: ") << call << "(" << as_pointer(address) << "): ";
    describe(line, *record) << " is already free";
  } else {
    record = nearest_guarded(address);
    line << (address % kObjectAlignment != 0 ? "misaligned pointer: " : "interior pointer: ") << call << "("
         << as_pointer(address) << "): ";
    if (record != nullptr) describe_place(line, *record, address);
    if (record == nullptr) line << "no object was ever there";
  }
  os::report(line);
  end_with_stacks(call, record);
}

void report_changed(const GuardRecord& record, std::uint64_t address, const char* call) {
  begin_report();
  Line line;
  line << (address < record.address ? "buffer underflow: " : "buffer overflow: ") << call << "("
       << as_pointer(record.address) << "): the byte at " << as_pointer(address) << " was written to, ";
  describe_place(line, record, address);
  os::report(line);
  end_with_stacks(call, &record);
}

}  // namespace brimful::slots
