// SPDX-License-Identifier: MIT
//
// What is said of a fault with a guarded object, by meta/misuse.h: a line for the fault, then the stacks of this call or
// access, of the allocation and of the free, each a title and lines `file+0xoffset`. Each returns when the program goes on.
#pragma once

#include <cstdint>

#include "arch/fault.h"
#include "base/compiler.h"
#include "meta/guard_record.h"
#include "os/fault.h"

namespace brimful::slots {

// A fault at any address, for os::watch_faults(). When the program shall go on, the page can be accessed from then on: of a
// freed object until its slot serves another, of a page between two for good. So an access is reported once for each page.
os::FaultAnswer report_fault(std::uint64_t address, const arch::Fault& fault);

// `call` got the address, at which no live object starts. `record`: of an object that did; or nullptr.
BRIMFUL_COLD void report_bad_guarded(std::uint64_t address, const meta::GuardRecord* record, const char* call);

// `call` found the byte at `address`, beside the object, written to.
BRIMFUL_COLD void report_changed(const meta::GuardRecord& record, std::uint64_t address, const char* call);

}  // namespace brimful::slots
