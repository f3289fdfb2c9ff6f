// SPDX-License-Identifier: MIT
//
// C++ sized delete with a size of another class. Arguments: size, claimed size.
#include "misuse.h"

int main(int argc, char** argv) {
  void* object = hide(_Znwm(argument(argc, argv, 1, 64)));
  _ZdlPvm(about_to_misuse(object), argument(argc, argv, 2, 4000));
  return survived();
}
