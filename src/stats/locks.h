// SPDX-License-Identifier: MIT
//
// How much the locks are used and waited for: their counters (sync/counters.h), read when somebody asks. Takes no lock
// itself, so the answer is there also when a lock is what the program hangs on; numbers of threads that run meanwhile
// are of slightly different moments.
#pragma once

#include <cstdint>

#include "classes/size_classes.h"
#include "sync/counters.h"

namespace brimful::stats {

struct LockReport {
  sync::LockUse heap;
  sync::LockUse central;               // sum over the classes
  sync::LockUse classes[kClassCount];  // the central index's, by class
  sync::LockUse context;               // sum over all contexts, those that wait for a thread included
  std::uint64_t contexts;
  sync::LockUse user_heap;   // sum over the program's heaps
  std::uint64_t user_heaps;  // locks that this is the sum of; 0 in a program that never made a heap
};

// O(classes + contexts + heaps).
void read_locks(LockReport& into);

// The lock of one class.
sync::LockUse central_lock(ClassId size_class);

}  // namespace brimful::stats
