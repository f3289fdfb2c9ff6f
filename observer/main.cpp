// SPDX-License-Identifier: MIT
//
// brimful-observer: looks at a process or a core from outside. Each subcommand has a folder.
#include <cstdio>
#include <cstring>

#include "leaks/command.h"
#include "stacks/samples_command.h"

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "leaks") == 0) {
    return brimful::observer::leaks::main(count - 1, arguments + 1);
  }
  if (count > 1 && std::strcmp(arguments[1], "samples") == 0) {
    return brimful::observer::stacks::samples_command({arguments + 2, arguments + count});
  }
  std::fputs(
      "usage: brimful-observer leaks [OPTION]... PID|CORE\n       brimful-observer samples PID|FILE [OPTION]...\n",
      stderr);
  return 2;
}
