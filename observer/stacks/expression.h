// SPDX-License-Identifier: MIT
//
// DWARF expressions, as far as unwind tables use them (DWARF 5, section 2.5): a stack of words, arithmetic, registers, and
// words of the sampled stack. What is not understood ends the unwinding: better a stack that is short than one made up.
#pragma once

#include <elfutils/libdw.h>

#include <cstdint>
#include <vector>

#include "stacks/unwind_rows.h"

namespace brimful::observer::stacks {

// Evaluates `operations`. `cfa` answers DW_OP_call_frame_cfa; `is_value` is set where the result is the value itself and
// not the address it was saved at.
bool evaluate(const std::vector<Dwarf_Op>& operations, const Registers& registers, std::uint64_t cfa,
              const ReadWord& read, std::uint64_t& result, bool& is_value);

}  // namespace brimful::observer::stacks
