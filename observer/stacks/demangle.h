// SPDX-License-Identifier: MIT
//
// The linker's names, as a programmer writes them. libiberty reads C++, D and both of Rust's ways; abi::__cxa_demangle
// would know C++ only, and take Rust's older names for C++ with a hash behind them.
#pragma once

#include <string>

namespace brimful::observer::stacks {

// The name itself where it is no mangled one.
std::string demangled(const char* name);

}  // namespace brimful::observer::stacks
