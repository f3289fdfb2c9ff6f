// SPDX-License-Identifier: MIT
//
// All calls of the allocator in one thread, in any order, against the oracle. The options are those of the environment:
// run.py starts the target with one choice of them after the other.
#include "caller.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  brimful::fuzz::Caller caller(1);
  while (!input.is_empty()) caller.step(input);
  caller.finish();
  return 0;
}
