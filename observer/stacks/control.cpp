// SPDX-License-Identifier: MIT
#include "stacks/control.h"

#include "memory/anatomy.h"
#include "memory/process.h"

namespace brimful::observer::stacks {

bool find_control(pid_t process, std::uint64_t& control, std::string& why) {
  memory::Anatomy anatomy;
  const auto read = [process](std::uint64_t address, void* into, std::size_t size) {
    return memory::read_process(process, address, into, size);
  };
  if (!anatomy.find(memory::mappings_of(process), read)) {
    why = anatomy.error();
    return false;
  }
  control = anatomy["samples.control"];
  if (control == 0) why = "its brimful (" + anatomy.version() + ") is older than samples";
  return control != 0;
}

}  // namespace brimful::observer::stacks
