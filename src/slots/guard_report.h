// SPDX-License-Identifier: MIT
//
// What is said of a fault with a guarded object: a line for the fault, then the stacks of this call or access, of the
// allocation and of the free, each a title and lines `file+0xoffset`. No lock, no allocation; one thread's report at a
// time, and the process ends behind it.
#pragma once

#include <cstdint>

#include "arch/fault.h"
#include "base/compiler.h"
#include "meta/guard_record.h"

namespace brimful::slots {

// A fault at any address. false: it is none of the pool's. For os::watch_faults().
bool report_fault(std::uint64_t address, const arch::Fault& fault);

// `call` got the address, at which no live object starts. `record`: of an object that did; or nullptr.
[[noreturn]] BRIMFUL_COLD void report_bad_guarded(std::uint64_t address, const meta::GuardRecord* record,
                                                  const char* call);

// `call` found the byte at `address`, beside the object, written to.
[[noreturn]] BRIMFUL_COLD void report_changed(const meta::GuardRecord& record, std::uint64_t address, const char* call);

}  // namespace brimful::slots
