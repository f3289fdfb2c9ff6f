// SPDX-License-Identifier: MIT
//
// Slabs of one class that no context owns, by the NUMA node that their memory was taken for: who takes one gets its own
// node's first. Slabs of node 0 have the list in place, those of the others an array that is made when the first of
// them comes: on a machine of one node there is nothing but the one list.
//
// Rejected: one list, and a look at the first few slabs for one of the own node. Each look is at a line of a header that
// another CPU wrote, which costs what it shall save.
//
// Every member: the caller holds the central lock of the class.
#pragma once

#include <cstdint>

#include "base/list.h"
#include "meta/header.h"
#include "os/numa.h"

namespace brimful::slots {

class NodeLists {
 public:
  void push_back(Slab* slab);
  void remove(Slab* slab) { list_of(slab).remove(slab); }
  // The oldest slab of the node, else of another; nullptr when there is none. O(nodes).
  Slab* pop_front(std::uint32_t node);

  // Calls visit(slab) for each slab; it may remove that slab.
  template <class Visit>
  void for_each(const Visit& visit) {
    visit_list(near_, visit);
    for (std::uint32_t i = 0; far_ != nullptr && i < kFarLists; ++i) visit_list(far_[i], visit);
  }

  // Calls visit(slab) for each slab, and puts it behind the others of its list, until visit() returns false: over many
  // calls each gets its turn, and the order in which they are taken stays.
  template <class Visit>
  void rotate(const Visit& visit) {
    bool goes_on = rotate_list(near_, visit);
    for (std::uint32_t i = 0; goes_on && far_ != nullptr && i < kFarLists; ++i) goes_on = rotate_list(far_[i], visit);
  }

 private:
  static constexpr std::uint32_t kFarLists = os::kMaxNodes - 1;

  List<Slab>& list_of(const Slab* slab) { return slab->node == 0 ? near_ : far_[slab->node - 1]; }

  template <class Visit>
  static void visit_list(List<Slab>& list, const Visit& visit) {
    for (Slab* slab = list.front(); slab != nullptr;) {
      Slab* next = slab->next;
      visit(slab);
      slab = next;
    }
  }

  template <class Visit>
  static bool rotate_list(List<Slab>& list, const Visit& visit) {
    Slab* first = nullptr;
    for (Slab* slab = list.front(); slab != nullptr && slab != first; slab = list.front()) {
      if (!visit(slab)) return false;
      if (first == nullptr) first = slab;
      list.remove(slab);
      list.push_back(slab);
    }
    return true;
  }

  List<Slab> near_;            // of node 0
  List<Slab>* far_ = nullptr;  // of node 1 and so on
};

}  // namespace brimful::slots
