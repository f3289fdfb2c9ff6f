// SPDX-License-Identifier: MIT
//
// What a pool asks of the table that it is created with (brimful/pool_host.h).
#pragma once

#include <cstddef>

#include "base/units.h"
#include "brimful/pool_host.h"

namespace brimful::pools {

inline constexpr std::size_t kLeastPageBytes = 4096;
inline constexpr std::size_t kMostPageBytes = 65536;

inline bool is_usable(const brimful_pool_host* host) {
  return host != nullptr && host->size >= sizeof(*host) && is_power_of_two(host->page_bytes) &&
         host->page_bytes >= kLeastPageBytes && host->page_bytes <= kMostPageBytes && host->get_pages != nullptr &&
         host->give_pages != nullptr && (host->wait == nullptr) == (host->wake == nullptr);
}

}  // namespace brimful::pools
