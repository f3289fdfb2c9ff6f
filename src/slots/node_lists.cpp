// SPDX-License-Identifier: MIT
//
// slots/node_lists.h.
#include "slots/node_lists.h"

#include "pages/heap.h"

namespace brimful::slots {

void NodeLists::push_back(Slab* slab) {
  if (slab->node != 0 && far_ == nullptr) {
    const sync::MutexLock guard(pages::heap.lock);
    far_ = static_cast<List<Slab>*>(pages::heap.arena.allocate(kFarLists * sizeof(List<Slab>)));  // zeros: empty lists
  }
  if (far_ == nullptr) slab->node = 0;  // no memory for lists: it counts as near from now on
  list_of(slab).push_back(slab);
}

Slab* NodeLists::pop_front(std::uint32_t node) {
  if (far_ == nullptr) return near_.pop_front();
  Slab* slab = (node == 0 ? near_ : far_[node - 1]).pop_front();
  if (slab == nullptr) slab = near_.pop_front();
  for (std::uint32_t i = 0; slab == nullptr && i < kFarLists; ++i) slab = far_[i].pop_front();
  return slab;
}

}  // namespace brimful::slots
