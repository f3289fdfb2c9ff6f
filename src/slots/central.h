// SPDX-License-Identifier: MIT
//
// The central index: per class, the slabs with free objects that no context owns, and one shared slab from which
// objects are served one by one under the class's lock. The index is where contexts meet: a context that lets go of
// partial slabs puts them here, one that needs memory looks here before it asks for new. The shared slab serves threads
// that own no context (exiting, or started under a filter that refuses everything) and those whose context's lock was
// busy.
//
// Slab ownership and this index (the model in tests/model explores it):
//
//     context ──detach full──▶ Detached ──first free by its last owner: CAS──▶ context
//        ▲                        │ a quarter freed by others: publish (CAS under the lock)
//        └────────take────── Central ──all free──▶ Released
#pragma once

#include <cstddef>
#include <cstdint>

#include "config/build.h"
#include "meta/header.h"
#include "slots/node_lists.h"
#include "sync/mutex.h"

namespace brimful::slots {

// Where these locks are all there is (the middle layers for study), two of them must not lie in one cache line.
inline constexpr std::size_t kCentralAlignment = config::kMiddle == config::Middle::kContexts ? alignof(void*) : 64;

// Which slabs a look for free pages takes.
enum class Look : std::uint8_t {
  kNext,  // of the next ones in turn, those that have now been left alone for long enough
  kEach,  // of all
  kSame,  // those that the last look had no time for
  kAll,   // any, however long they have been left alone
};

class alignas(kCentralAlignment) Central {
 public:
  // Takes a slab with free objects for context `id`, or nullptr.
  Slab* take(std::uint32_t id);

  // Puts a slab into the index that only the caller can reach: nobody else changes its owner.
  void add(Slab* slab);

  // Frees objects of a slab that lies in the index, and releases the slab if that was the last of them. *before gets
  // the group's remote mask as it was. false: the slab does not lie in the index, nothing was done.
  bool tell(Slab* slab, unsigned group, std::uint64_t mask, std::uint64_t* before);

  // Releases the slabs of the index that have no live object, and an empty shared slab.
  void release_empty();

  // Gives back free pages of up to `budget` slabs. Never waits for the lock. Returns how many slabs that were.
  int purge_free_pages(int budget, Look look);

  // One object of the shared slab; nullptr when there is no memory.
  void* allocate_shared(ClassId size_class);

  sync::CentralMutex lock;

 private:
  std::uint64_t take_from_shared();

  NodeLists slabs_;
  Slab* shared_ = nullptr;
};

// The index of each class.
extern Central central[kClassCount];

// Puts a detached slab into its class's index, if it is still detached. The exchange of the owner decides who may, so a
// stale pointer to a header that has become another slab's does no harm: publishing a detached slab is always legal.
void publish(Slab* slab);

}  // namespace brimful::slots
