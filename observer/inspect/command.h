// SPDX-License-Identifier: MIT
//
// brimful-observer inspect TARGET [--address ADDRESS] [--biggest N]
//
// Prints JSON: a picture of the heap (inspect/picture.h), or what lies at one address (inspect/address.h).
#pragma once

namespace brimful::observer::inspect {

// The subcommand; arguments[0] is its own name. Returns the exit code: 0, 1 (the target can't be read), 2 (wrong usage).
int main(int count, char** arguments);

}  // namespace brimful::observer::inspect
