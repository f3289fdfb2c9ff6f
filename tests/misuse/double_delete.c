// SPDX-License-Identifier: MIT
//
// operator delete twice. Argument: size.
#include "misuse.h"

int main(int argc, char** argv) {
  void* object = hide(_Znwm(argument(argc, argv, 1, 64)));
  _ZdlPv(object);
  _ZdlPv(about_to_misuse(object));
  return survived();
}
