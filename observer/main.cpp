// SPDX-License-Identifier: MIT
//
// brimful-observer: reads other processes and answers in JSON; the command `brimful` draws what it says.
#include <cstdio>
#include <string>
#include <vector>

#include "stacks/samples_command.h"

int main(int count, char** words) {
  const std::vector<std::string> arguments(words + 1, words + count);
  if (!arguments.empty() && arguments[0] == "samples") {
    return brimful::observer::stacks::samples_command({arguments.begin() + 1, arguments.end()});
  }
  std::fputs("usage: brimful-observer samples TARGET [OPTION]...\n", stderr);
  return 2;
}
