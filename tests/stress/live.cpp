// SPDX-License-Identifier: MIT
//
// See live.h. The test library shows its internals; the shipped one hides them, but answers for malloc_trim
// and mallinfo2.
#include "live.h"

#include <malloc.h>

#include "stats/snapshot.h"

namespace brimful {
namespace stats {
[[gnu::weak]] void take_snapshot(Snapshot& into);
}
namespace alloc {
[[gnu::weak]] std::size_t trim();
}
}  // namespace brimful

namespace brimful::stress {

size_t live_bytes() {
  if (&stats::take_snapshot != nullptr) {
    static stats::Snapshot snapshot;
    stats::take_snapshot(snapshot);
    return snapshot.live_bytes;
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

void trim() {
  if (&alloc::trim != nullptr) {
    alloc::trim();
  } else {
    malloc_trim(0);
  }
}

}  // namespace brimful::stress
