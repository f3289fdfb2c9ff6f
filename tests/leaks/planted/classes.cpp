// SPDX-License-Identifier: MIT
//
// Objects of classes with virtual functions: their types are told, across inheritance, from stripped programs, too.
#include <string>

#include "plant.h"

namespace zoo {
struct Animal {
  virtual ~Animal() = default;
  std::string name = std::string(60, 'n');
};
struct Horse : Animal {
  long legs[5] = {4};
};
template <class T>
struct Cage : Animal {
  T* inmate = nullptr;
};
}  // namespace zoo

__attribute__((noinline)) static void plant() {
  for (int n = 0; n < 7; ++n) {
    auto* const horse = new zoo::Horse;
    note(horse, LOST);
    note(horse->name.data(), BEHIND);
  }
  auto* const cage = new zoo::Cage<zoo::Animal>;
  cage->inmate = new zoo::Horse;
  note(cage, LOST);
  note(cage->inmate, BEHIND);
  note(cage->name.data(), BEHIND);
  note(cage->inmate->name.data(), BEHIND);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
