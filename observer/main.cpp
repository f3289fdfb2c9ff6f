// SPDX-License-Identifier: MIT
//
// brimful-observer: looks at a process or a core from outside. Each subcommand has a folder.
#include <cstdio>
#include <cstring>

#include "leaks/command.h"

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "leaks") == 0) {
    return brimful::observer::leaks::main(count - 1, arguments + 1);
  }
  std::fputs("usage: brimful-observer leaks [OPTION]... PID|CORE\n", stderr);
  return 2;
}
