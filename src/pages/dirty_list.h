// SPDX-License-Identifier: MIT
//
// Hugepages with free memory that may be resident, the one to give back first in front. Linked by number inside the
// records (meta/hugepage.h), because the pointers there are in use by a tree or by the filler.
//
// The order is that of the stamps: of when memory was freed last. A hugepage that is in use all the time would never come
// to the front by that, so its stamp stands still once it has had free dirty memory for kMostFreshMs.
#pragma once

#include <cstdint>

#include "meta/granule_table.h"
#include "meta/hugepage.h"

namespace brimful::pages {

class DirtyList {
 public:
  using Hugepage = meta::Hugepage;

  constexpr DirtyList() = default;
  // `flag` says in a record that it is in this list.
  constexpr DirtyList(meta::GranuleTable& table, std::uint8_t flag) : table_(&table), flag_(flag) {}

  [[nodiscard]] Hugepage* front() const { return at(front_); }
  [[nodiscard]] Hugepage* back() const { return at(back_); }
  // The one that is older; nullptr before the front.
  [[nodiscard]] Hugepage* before(const Hugepage* hugepage) const { return at(hugepage->older); }
  [[nodiscard]] std::uint32_t count() const { return count_; }

  void push_back(Hugepage* hugepage) {
    const auto number = static_cast<std::uint32_t>(table_->index_of(hugepage)) + 1;
    hugepage->older = back_;
    hugepage->younger = 0;
    (back_ != 0 ? at(back_)->younger : front_) = number;
    back_ = number;
    hugepage->set(flag_);
    ++count_;
  }

  void remove(Hugepage* hugepage) {
    (hugepage->older != 0 ? at(hugepage->older)->younger : front_) = hugepage->younger;
    (hugepage->younger != 0 ? at(hugepage->younger)->older : back_) = hugepage->older;
    hugepage->unset(flag_);
    --count_;
  }

 private:
  [[nodiscard]] Hugepage* at(std::uint32_t number) const {
    return number != 0 ? table_->hugepage(number - 1) : nullptr;
  }

  meta::GranuleTable* table_ = nullptr;
  std::uint8_t flag_ = 0;
  std::uint32_t front_ = 0;
  std::uint32_t back_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace brimful::pages
