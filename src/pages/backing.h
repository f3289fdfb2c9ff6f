// SPDX-License-Identifier: MIT
//
// Where the page heap tells others what it is about to do with memory: on which node it should lie, and whether it should
// be backed by hugepages or populated. Called under the heap lock, before the caller of allocate() has the memory. None may
// allocate; what they do is advice, so none can fail.
#pragma once

#include <cstdint>

namespace brimful::pages::backing {

// `count` hugepages from `start` (an address) on are used for the first time, or for another NUMA node than before.
inline void on_new_hugepage(std::uint64_t /*start*/, std::uint32_t /*count*/, unsigned /*node*/) {}

enum class Reason : std::uint8_t {
  kFirstUse,   // none of the granules was handed out before
  kGivenBack,  // some were, and went back to the system since
};

// Granules (a mask: bit i is the i-th of the hugepage that starts at `hugepage`) are being handed out that hold nothing:
// the first touch of each of their pages will be a fault. They are committed.
inline void prepare_backing(std::uint64_t /*hugepage*/, std::uint32_t /*granules*/, Reason /*reason*/) {}

}  // namespace brimful::pages::backing
