// SPDX-License-Identifier: MIT
//
// An intrusive balanced search tree (treap: Aragon & Seidel 1989). Node has `Node* left`, `Node* right`; Order gives
// `less(a, b)`, a strict total order, and a priority is a hash of the node's start address, so a node carries no
// colour or height. Expected depth is O(log n) and insertion and removal rotate nothing but pointers. Chosen over a
// red-black tree because it is a third of the code for the same bounds in expectation. Not thread-safe.
#pragma once

#include <cstdint>

namespace brimful {

struct Anatomy;  // debug/anatomy.h

template <class Node, class Order>
class Treap {
 public:
  [[nodiscard]] bool empty() const { return root_ == nullptr; }

  void insert(Node* node) {
    Node** place = &root_;
    while (*place != nullptr && priority(*place) >= priority(node)) {
      place = Order::less(*node, **place) ? &(*place)->left : &(*place)->right;
    }
    split(*place, node, &node->left, &node->right);
    *place = node;
  }

  void remove(Node* node) {
    Node** place = &root_;
    while (*place != node) place = Order::less(*node, **place) ? &(*place)->left : &(*place)->right;
    *place = join(node->left, node->right);
    node->left = node->right = nullptr;
  }

  // The first node, in order, for which `fits(node)` holds; `fits` must be monotone (false …, then true …).
  template <class Fits>
  Node* lower_bound(Fits fits) const {
    Node* best = nullptr;
    for (Node* node = root_; node != nullptr;) {
      if (fits(*node)) {
        best = node;
        node = node->left;
      } else {
        node = node->right;
      }
    }
    return best;
  }

  template <class Visit>
  void for_each(Visit visit) const {
    walk(root_, visit);
  }

 private:
  friend struct ::brimful::Anatomy;

  static std::uint64_t priority(const Node* node) {
    std::uint64_t x = node->start * 0x9E3779B97F4A7C15U;
    x ^= x >> 32;
    return x * 0xD6E8FEB86659FD93U;
  }

  // Everything below `tree` that is less than `pivot` goes to *less, the rest to *more. Iterative: no deep recursion.
  static void split(Node* tree, const Node* pivot, Node** less, Node** more) {
    while (tree != nullptr) {
      if (Order::less(*tree, *pivot)) {
        *less = tree;
        less = &tree->right;
        tree = tree->right;
      } else {
        *more = tree;
        more = &tree->left;
        tree = tree->left;
      }
    }
    *less = nullptr;
    *more = nullptr;
  }

  static Node* join(Node* less, Node* more) {
    Node* result = nullptr;
    Node** place = &result;
    while (less != nullptr && more != nullptr) {
      if (priority(less) >= priority(more)) {
        *place = less;
        place = &less->right;
        less = less->right;
      } else {
        *place = more;
        place = &more->left;
        more = more->left;
      }
    }
    *place = less != nullptr ? less : more;
    return result;
  }

  template <class Visit>
  static void walk(Node* node, Visit& visit) {
    while (node != nullptr) {
      walk(node->left, visit);
      Node* right = node->right;
      visit(node);
      node = right;
    }
  }

  Node* root_ = nullptr;
};

}  // namespace brimful
