// SPDX-License-Identifier: MIT
//
// stats/coverage.h.
#include "stats/coverage.h"

#include <string.h>

#include "os/small_file.h"
#include "pages/fault_costs.h"
#include "pages/heap.h"
#include "slots/thread.h"

namespace brimful::stats {
namespace {

// The number behind `key` in lines of "Key:   123 kB", in bytes; 0 without such a line.
std::uint64_t bytes_of(const char* text, const char* key) {
  const char* at = strstr(text, key);
  if (at == nullptr) return 0;
  at += strlen(key);
  while (*at == ' ') ++at;
  std::uint64_t kilobytes = 0;
  for (; *at >= '0' && *at <= '9'; ++at) kilobytes = kilobytes * 10 + static_cast<unsigned>(*at - '0');
  return kilobytes * 1024;
}

}  // namespace

void read_coverage(Coverage& into) {
  into = Coverage();
  {
    const slots::SlowScope scope;  // a handler that allocates must not wait for our lock
    const sync::MutexLock guard(pages::heap.lock);
    const pages::BackingStats backing = pages::heap.pages.backing().stats();
    into.advised_bytes = backing.advised_bytes;
    into.populated_bytes = backing.populated_bytes;
    into.is_refused = backing.is_refused;
    into.touched_ns = pages::fault_costs.ns_per_page(pages::FaultCosts::kTouched);
    into.populated_ns = pages::fault_costs.ns_per_page(pages::FaultCosts::kPopulated);
    into.huge_ns = pages::fault_costs.ns_per_page(pages::FaultCosts::kHuge);
  }
  char text[2048];  // the file has some 25 lines of 30 letters
  if (os::read_small_file("/proc/self/smaps_rollup", text, sizeof text) > 0) {
    into.huge_bytes = bytes_of(text, "\nAnonHugePages:");
  }
}

}  // namespace brimful::stats
