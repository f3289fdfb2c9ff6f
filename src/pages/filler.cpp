// SPDX-License-Identifier: MIT
//
// pages/filler.h.
#include "pages/filler.h"

#include <bit>

namespace brimful::pages {
namespace {

constexpr unsigned kMostLooks = 64;

// The list for a mask that is neither empty nor full.
unsigned list_of(std::uint32_t free, unsigned per_length) {
  const unsigned longest = longest_run(free);
  const unsigned beside = count_ones(free) - longest;  // the fewer, the fuller; at most 30
  return longest * per_length + beside * per_length / meta::kGranulesPerHugepage;
}

}  // namespace

void Filler::update(Hugepage* hugepage) {
  const bool wanted = hugepage->state == Hugepage::State::kUsed && hugepage->free != 0;
  const unsigned list = wanted ? list_of(hugepage->free, kFullness) : 0;
  if (wanted && hugepage->has(Hugepage::kListed) && hugepage->list == list) return;
  take_out(hugepage);
  if (wanted) insert(hugepage, list);
}

void Filler::insert(Hugepage* hugepage, unsigned list) {
  Hugepage* head = heads_[list];
  if (head == nullptr || hugepage < head) {
    hugepage->left = nullptr;
    hugepage->right = head;
    if (head != nullptr) head->left = hugepage;
    heads_[list] = hugepage;
  } else {
    hugepage->left = head;
    hugepage->right = head->right;
    if (head->right != nullptr) head->right->left = hugepage;
    head->right = hugepage;
  }
  nonempty_[list / 64] |= std::uint64_t{1} << list % 64;
  hugepage->list = static_cast<std::uint8_t>(list);
  hugepage->set(Hugepage::kListed);
}

void Filler::take_out(Hugepage* hugepage) {
  if (!hugepage->has(Hugepage::kListed)) return;
  const unsigned list = hugepage->list;
  (hugepage->left != nullptr ? hugepage->left->right : heads_[list]) = hugepage->right;
  if (hugepage->right != nullptr) hugepage->right->left = hugepage->left;
  if (heads_[list] == nullptr) nonempty_[list / 64] &= ~(std::uint64_t{1} << list % 64);
  hugepage->left = hugepage->right = nullptr;
  hugepage->unset(Hugepage::kListed);
}

// The first list from `list` on that holds something, or kLists.
unsigned Filler::next_nonempty(unsigned list) const {
  if (list >= kLists) return kLists;
  std::uint64_t rest = nonempty_[list / 64] >> list % 64 << list % 64;
  for (unsigned word = list / 64;; rest = nonempty_[word]) {
    if (rest != 0) return word * 64 + static_cast<unsigned>(std::countr_zero(rest));
    if (++word == kLists / 64) return kLists;
  }
}

meta::Hugepage* Filler::choose(unsigned count, std::uint32_t places) const {
  unsigned list = next_nonempty(count * kFullness);
  if (list == kLists) return nullptr;
  if (places == kAllBits) return heads_[list];
  unsigned looks = 0;
  for (; list != kLists && looks != kMostLooks; list = next_nonempty(list + 1)) {
    for (Hugepage* page = heads_[list]; page != nullptr && looks != kMostLooks; page = page->right, ++looks) {
      if ((run_starts(page->free, count) & places) != 0) return page;
    }
  }
  if (list == kLists) return nullptr;
  // A range this long has a place in it wherever it begins.
  const auto step = static_cast<unsigned>(std::countr_zero(places & (places - 1)));
  list = step < 32 ? next_nonempty((count + step - 1) * kFullness) : kLists;
  return list != kLists ? heads_[list] : nullptr;
}

unsigned Filler::place(const Hugepage& hugepage, unsigned count, std::uint32_t places, std::uint32_t wanted) {
  const std::uint32_t free = hugepage.free;
  const std::uint32_t fits = run_starts(free, count) & places;
  const std::uint32_t good = run_starts(free & wanted, count) & places;
  const std::uint32_t exact = fits & ~(free << 1) & ~run_starts(free, count + 1);
  const std::uint32_t best = good != 0 ? good : fits;
  return static_cast<unsigned>(std::countr_zero((best & exact) != 0 ? best & exact : best));
}

}  // namespace brimful::pages
