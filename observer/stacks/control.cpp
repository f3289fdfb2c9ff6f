// SPDX-License-Identifier: MIT
#include "stacks/control.h"

#include <cstdio>
#include <fstream>
#include <vector>

#include "leaks/anatomy_reader.h"
#include "stacks/live_samples.h"

namespace brimful::observer::stacks {

bool find_control(pid_t process, std::uint64_t& control, std::string& why) {
  std::vector<leaks::Mapping> mappings;
  std::ifstream file("/proc/" + std::to_string(process) + "/maps");
  for (std::string line; std::getline(file, line);) {
    leaks::Mapping mapping;
    char rights[5] = "";
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %n", &mapping.start, &mapping.end, rights, &path) < 3)
      continue;
    mapping.is_readable = rights[0] == 'r';
    mapping.is_executable = rights[2] == 'x';
    mapping.is_shared = rights[3] == 's';
    if (path > 0) mapping.path = line.substr(static_cast<std::size_t>(path));
    mappings.push_back(std::move(mapping));
  }
  leaks::Anatomy anatomy;
  const auto read = [process](std::uint64_t address, void* into, std::size_t size) {
    return read_process(process, address, into, size);
  };
  if (!anatomy.find(mappings, read)) {
    why = anatomy.error();
    return false;
  }
  control = anatomy["samples.control"];
  if (control == 0) why = "its brimful (" + anatomy.version() + ") is older than samples";
  return control != 0;
}

}  // namespace brimful::observer::stacks
