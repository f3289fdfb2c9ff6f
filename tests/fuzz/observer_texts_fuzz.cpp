// SPDX-License-Identifier: MIT
//
// Texts that the observer takes from others: a JIT's list of functions, /proc/PID/maps, mangled names, rules of suppression, and
// expressions of unwind tables, which are a small language. The first byte chooses.
#include <dwarf.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "input.h"
#include "leaks/suppressions.h"
#include "oracle.h"
#include "stacks/demangle.h"
#include "stacks/expression.h"
#include "stacks/modules.h"
#include "stacks/perf_map.h"

namespace brimful::fuzz {
namespace {

namespace stacks = brimful::observer::stacks;

void read_perf_map(Input& input) {
  const std::uint64_t address = input.number(4);
  const stacks::PerfMap map(input.rest());
  map.name(address);
}

void read_maps(Input& input) {
  const std::uint64_t address = input.number(6);
  stacks::Modules modules(-1, observer::memory::Read(), 0);
  modules.update(input.text_until('\0'));
  modules.update(input.rest());
  stacks::Place place = {};
  if (modules.find(address, place) && place.module != stacks::kNoFile) modules.path(place.module);
}

void read_rules(Input& input) {
  char path[] = "/tmp/brimful-fuzz-rules-XXXXXX";
  const int file = mkstemp(path);
  observer::leaks::Group group;
  group.size = input.number(1);
  group.type = {input.text_until('\n'), input.text_until('\n')};
  group.stack = {input.text_until('\n')};
  const std::string text = input.rest();
  expect(file >= 0 && write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()), "a file is written");
  close(file);
  observer::leaks::Suppressions rules;
  const bool is_read = rules.read(path);
  unlink(path);
  expect(is_read || !rules.error().empty(), "rules that can't be read are refused with a reason");
  static_cast<void>(is_read && rules.holds(group));
}

void evaluate(Input& input) {
  std::vector<Dwarf_Op> operations;
  stacks::Registers registers;
  for (unsigned n = 0; n < stacks::kRegisters; ++n) {
    if (input.flag()) registers.set(n, input.number(2));
  }
  while (!input.is_empty() && operations.size() < 200) {
    Dwarf_Op operation = {};
    operation.atom = input.byte();
    operation.number = input.flag() ? input.number(1) : input.number(8);
    operation.number2 = input.number(1);
    operation.offset = operations.size() * 3;
    operations.push_back(operation);
  }
  std::uint64_t result = 0;
  bool is_value = false;
  const stacks::ReadWord read = [](std::uint64_t address, std::uint64_t& word) {
    return (word = address * 3) % 2 == 0;
  };
  stacks::evaluate(operations, registers, 4096, read, result, is_value);
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  switch (input.byte() % 5) {
    case 0:
      brimful::fuzz::read_perf_map(input);
      break;
    case 1:
      brimful::fuzz::read_maps(input);
      break;
    case 2:
      brimful::fuzz::read_rules(input);
      break;
    case 3:
      brimful::fuzz::evaluate(input);
      break;
    default:
      brimful::observer::stacks::demangled(input.rest().c_str());
  }
  return 0;
}
