// SPDX-License-Identifier: MIT
//
// slots/guard_report.h. Tests match the beginning of these lines.
#include "slots/guard_report.h"

#include "meta/misuse.h"
#include "os/calls.h"
#include "os/probe.h"
#include "os/stack_text.h"
#include "slots/guards.h"

namespace brimful::slots {
namespace {

using meta::GuardRecord;
using meta::GuardState;
using meta::Misuse;

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

meta::History history_of(const GuardRecord* record) {
  if (record == nullptr) return {};
  return {record, &record->allocation, state_of(*record) == GuardState::kFreed ? &record->release : nullptr};
}

}  // namespace

os::FaultAnswer report_fault(std::uint64_t address, const arch::Fault& fault) {
  if (!is_guarded(address)) return os::FaultAnswer::kNotOurs;
  const GuardRecord* record = nearest_guarded(address);
  if (record == nullptr) return os::FaultAnswer::kNotOurs;
  const bool is_inside = address >= record->address && address < record->address + record->bytes;
  const bool is_freed = state_of(*record) == GuardState::kFreed || state_of(*record) == GuardState::kEnding;
  const Misuse kind = is_freed                    ? Misuse::kUseAfterFree
                      : address < record->address ? Misuse::kBufferUnderflow
                                                  : Misuse::kBufferOverflow;
  const char* const access = fault.access == arch::Access::kWrite  ? "write to"
                             : fault.access == arch::Access::kRead ? "read from"
                                                                   : "access to";
  const meta::Report report = {kind, access, address, record->address, record->bytes, history_of(record)};
  Line line;
  line << meta::kMisuseNames[static_cast<std::size_t>(kind)] << ": " << access << " " << as_pointer(address) << ", ";
  describe_place(line, *record, address);
  if (is_freed) line << (is_inside ? ", which is free" : ", which is free (or of an object before it)");
  Line title;
  title << "the access, by thread " << os::thread_id() << ":";
  os::StackWords now = os::own_stack(title.data(), reinterpret_cast<const void*>(fault.sp));
  now.first = fault.ip;
  now.link = fault.link;
  if (!meta::tell_fault(report, line, now)) return os::FaultAnswer::kEnd;
  return open_guard_page(address) ? os::FaultAnswer::kGoOn : os::FaultAnswer::kEnd;
}

void report_bad_guarded(std::uint64_t address, const GuardRecord* record, const char* call) {
  if (record != nullptr) {
    const bool is_free = call[0] == 'f';
    const meta::Report report = {is_free ? Misuse::kDoubleFree : Misuse::kUseAfterFree,
                                 call,
                                 address,
                                 address,
                                 record->bytes,
                                 history_of(record)};
    Line line = meta::begin_line(report);
    return meta::tell(report, describe(line, *record) << " is already free");
  }
  record = nearest_guarded(address);
  const bool is_misaligned = address % kObjectAlignment != 0;
  meta::Report report = {is_misaligned ? Misuse::kMisalignedPointer : Misuse::kInteriorPointer, call, address};
  if (record != nullptr) {
    report.object = record->address;
    report.bytes = record->bytes;
    report.history = history_of(record);
  }
  Line line = meta::begin_line(report);
  record != nullptr ? describe_place(line, *record, address) : line << "no object was ever there";
  meta::tell(report, line);
}

void report_changed(const GuardRecord& record, std::uint64_t address, const char* call) {
  const meta::Report report = {address < record.address ? Misuse::kBufferUnderflow : Misuse::kBufferOverflow,
                               call,
                               record.address,
                               record.address,
                               record.bytes,
                               history_of(&record)};
  Line line = meta::begin_line(report);
  line << "the byte at " << as_pointer(address) << " was written to, ";
  meta::tell(report, describe_place(line, record, address));
}

}  // namespace brimful::slots
