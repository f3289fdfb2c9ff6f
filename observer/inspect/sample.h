// SPDX-License-Identifier: MIT
//
// The sample of an object, if it is one: who allocated it and, if it is free, who freed it (src/meta/sample_record.h).
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "heap/model.h"

namespace brimful::observer::inspect {

// Who allocated a guarded object and, if it is free, who freed it, by its record.
nlohmann::json guarded_stacks(const memory::Read& read, const heap::Guarded& object);

// null: there is none. Frames are return addresses, innermost first; names are the business of whoever prints them.
nlohmann::json sample_of(const heap::Model& model, const memory::Read& read, std::uint64_t object);

}  // namespace brimful::observer::inspect
