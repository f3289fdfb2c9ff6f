// SPDX-License-Identifier: MIT
//
// base/treap.h against std::set: the same elements in the same order after any history, and a depth that does not follow
// the order of insertion.
#include "base/treap.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace brimful {
namespace {

struct Node {
  std::uint64_t start;
  std::uint64_t length;
  Node* left;
  Node* right;
};

struct BySize {
  static bool less(const Node& a, const Node& b) {
    return a.length != b.length ? a.length < b.length : a.start < b.start;
  }
};

using Tree = Treap<Node, BySize>;
using Key = std::pair<std::uint64_t, std::uint64_t>;  // length, start

std::vector<Key> keys_of(const Tree& tree) {
  std::vector<Key> keys;
  tree.for_each([&keys](const Node* node) { keys.emplace_back(node->length, node->start); });
  return keys;
}

unsigned depth(const Node* node) { return node == nullptr ? 0 : 1 + std::max(depth(node->left), depth(node->right)); }

TEST(Treap, HoldsWhatASetHoldsAfterAnyHistory) {
  std::mt19937_64 random(1);
  Tree tree;
  std::set<Key> oracle;
  std::vector<std::unique_ptr<Node>> nodes;
  for (int step = 0; step < 20000; ++step) {
    if (nodes.empty() || (random() % 5 < 3 && nodes.size() < 400)) {
      // Lengths repeat often: then the start decides.
      auto node = std::make_unique<Node>(Node{random() % 100000 << 16, random() % 20, nullptr, nullptr});
      if (!oracle.emplace(node->length, node->start).second) continue;
      tree.insert(node.get());
      nodes.push_back(std::move(node));
    } else {
      std::swap(nodes[random() % nodes.size()], nodes.back());
      tree.remove(nodes.back().get());
      EXPECT_EQ(nodes.back()->left, nullptr);
      EXPECT_EQ(nodes.back()->right, nullptr);
      oracle.erase({nodes.back()->length, nodes.back()->start});
      nodes.pop_back();
    }
    const std::uint64_t wanted = random() % 22;
    const Node* found = tree.lower_bound([wanted](const Node& node) { return node.length >= wanted; });
    const auto expected = oracle.lower_bound({wanted, 0});
    ASSERT_EQ(found == nullptr, expected == oracle.end());
    if (found != nullptr) {
      ASSERT_EQ(Key(found->length, found->start), *expected);
    }
    if (step % 100 == 0) {
      ASSERT_EQ(keys_of(tree), std::vector<Key>(oracle.begin(), oracle.end()));
    }
    ASSERT_EQ(tree.empty(), oracle.empty());
  }
}

TEST(Treap, IsEmptyAgainWhenAllIsRemoved) {
  Tree tree;
  Node nodes[64];
  for (std::uint64_t i = 0; i < 64; ++i) {
    nodes[i] = {i << 16, i % 4, nullptr, nullptr};
    tree.insert(&nodes[i]);
  }
  for (Node& node : nodes) tree.remove(&node);
  EXPECT_TRUE(tree.empty());
  EXPECT_EQ(tree.lower_bound([](const Node&) { return true; }), nullptr);
}

TEST(Treap, StaysShallowWhenInsertedInOrder) {
  constexpr std::size_t kCount = 1 << 14;
  for (const std::uint64_t step : {std::uint64_t{1} << 16, std::uint64_t{1} << 21, std::uint64_t{3} << 20}) {
    Tree tree;
    std::vector<Node> nodes(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      nodes[i] = {0x7F0000000000 + i * step, i, nullptr, nullptr};
      tree.insert(&nodes[i]);
    }
    std::set<const Node*> children;
    for (const Node& node : nodes) {
      children.insert(node.left);
      children.insert(node.right);
    }
    const Node* root = nullptr;
    for (const Node& node : nodes) {
      if (children.count(&node) == 0) {
        EXPECT_EQ(root, nullptr) << "two roots";
        root = &node;
      }
    }
    // A random search tree of n nodes is about 4.3 ln n deep at most: 42.
    EXPECT_LE(depth(root), 56U) << "step " << step;
  }
}

}  // namespace
}  // namespace brimful
