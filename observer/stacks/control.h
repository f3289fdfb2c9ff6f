// SPDX-License-Identifier: MIT
//
// Where a process keeps the control block of its samples.
#pragma once

#include <cstdint>

#include "stacks/session.h"

namespace brimful::observer::stacks {

// False if no module of the process has one: it doesn't run brimful, or its symbols were stripped.
bool find_control(const Session& session, std::uint64_t& control);

}  // namespace brimful::observer::stacks
