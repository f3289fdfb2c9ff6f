/* SPDX-License-Identifier: MIT
 *
 * A tree that is lost whole, and one whose right half is.
 */
#include "plant.h"

struct node {
  struct node* left;
  struct node* right;
  long key;
};

struct node* kept_root;

static struct node* grow(int depth, enum plant_kind root, enum plant_kind rest) {
  if (depth == 0) return NULL;
  struct node* node = malloc(sizeof *node);
  node->key = depth;
  node->left = grow(depth - 1, rest, rest);
  node->right = grow(depth - 1, rest, rest);
  note(node, root);
  return node;
}

__attribute__((noinline)) static void plant(void) {
  grow(6, LOST, BEHIND);
  kept_root = malloc(sizeof *kept_root);
  note(kept_root, KEPT);
  kept_root->left = grow(5, KEPT, KEPT);
  kept_root->right = grow(5, LOST, BEHIND);
  kept_root->right = NULL;
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
