// SPDX-License-Identifier: MIT
//
// stats/locks.h.
#include "stats/locks.h"

#include "pages/heap.h"
#include "slots/central.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::stats {

sync::LockUse central_lock(ClassId size_class) { return slots::central[size_class].lock.use(); }

void read_locks(LockReport& into) {
  into = LockReport();
  into.heap = pages::heap.lock.use();
  for (std::size_t c = 0; c < kClassCount; ++c) {
    into.classes[c] = central_lock(static_cast<ClassId>(c));
    into.central += into.classes[c];
  }
  for (const Context* context = slots::all_contexts(); context != nullptr; context = context->next_all) {
    into.context += context->lock.use();
    ++into.contexts;
  }
  into.user_heap = slots::heap_lock_use(&into.user_heaps);
}

}  // namespace brimful::stats
