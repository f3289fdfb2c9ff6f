// SPDX-License-Identifier: MIT
#include "stacks/demangle.h"

#include <cstdlib>
#include <cstring>

// libiberty declares basename() itself unless told that <cstring> did.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

namespace brimful::observer::stacks {

std::string demangled(const char* name) {
  char* text = ::cplus_demangle(name, DMGL_AUTO | DMGL_PARAMS | DMGL_ANSI);
  if (text == nullptr) return name;
  std::string result = text;
  std::free(text);
  return result;
}

}  // namespace brimful::observer::stacks
