// SPDX-License-Identifier: MIT
//
// What lies at an address: an object, live or free and where its freedom is written down; a block; free memory of the
// heap; metadata; or something of the program's that is not the heap's.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "heap/model.h"
#include "memory/mapping.h"

namespace brimful::observer::inspect {

// `read` is for what samples are there of the object.
nlohmann::json describe(const heap::Model& model, const std::vector<memory::Mapping>& mappings,
                        const memory::Read& read, std::uint64_t address);

}  // namespace brimful::observer::inspect
