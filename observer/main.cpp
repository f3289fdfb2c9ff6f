// SPDX-License-Identifier: MIT
//
// brimful-observer: looks at a process or a core from outside. Each subcommand has a folder; what it prints is for programs,
// and the command `brimful` draws it.
#include <cstdio>
#include <cstring>

#include "inspect/command.h"
#include "leaks/command.h"
#include "stacks/samples_command.h"
#include "stats/command.h"

namespace {

struct Subcommand {
  const char* name;
  int (*main)(int count, char** arguments);  // arguments[0] is the name
};

int samples(int count, char** arguments) {
  return brimful::observer::stacks::samples_command({arguments + 1, arguments + count});
}

constexpr Subcommand kSubcommands[] = {
    {"inspect", brimful::observer::inspect::main},
    {"leaks", brimful::observer::leaks::main},
    {"samples", samples},
    {"stats", brimful::observer::stats::main},
};

}  // namespace

int main(int count, char** arguments) {
  for (const Subcommand& subcommand : kSubcommands) {
    if (count > 1 && std::strcmp(arguments[1], subcommand.name) == 0) return subcommand.main(count - 1, arguments + 1);
  }
  std::fputs("usage: brimful-observer inspect|leaks|samples|stats [OPTION]... PID|CORE\n", stderr);
  return 2;
}
