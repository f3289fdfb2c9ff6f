// SPDX-License-Identifier: MIT
//
// Containers of the standard library: what they hold is behind them.
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "plant.h"

std::map<std::string, std::vector<int>>* kept;

__attribute__((noinline)) static void plant() {
  auto* const text = new std::string(500, 'x');
  note(text, LOST);
  note(text->data(), BEHIND);
  auto* const texts = new std::vector<std::string>(10, std::string(100, 'y'));
  note(texts, LOST);
  note(texts->data(), BEHIND);
  for (const std::string& one : *texts) note(one.data(), BEHIND);
  kept = new std::map<std::string, std::vector<int>>;
  note(kept, KEPT);
  for (int n = 0; n < 20; ++n) {
    auto& numbers = (*kept)[std::to_string(n) + std::string(40, 'k')];
    numbers.resize(30);
    note(numbers.data(), KEPT);
  }
  // A block with the counts and the string behind them, and a pointer to it on the heap.
  auto* const shared = new std::shared_ptr<std::string>(std::make_shared<std::string>(300, 'z'));
  note(shared, LOST);
  note(reinterpret_cast<const char*>(shared->get()) - 16, BEHIND);
  note((*shared)->data(), BEHIND);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
