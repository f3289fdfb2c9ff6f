// SPDX-License-Identifier: MIT
//
// Files that a process has mapped: this program's own is the model, and the input says which bytes of its head, its sections' heads, its notes and
// its unwind tables are other ones. Then an address in it is named and unwound. libdw reads the file; what it says is believed, and what it
// can't cope with is ours to find before our users do.
#include <elf.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "input.h"
#include "stacks/module.h"
#include "stacks/unwind_rows.h"

namespace brimful::fuzz {
namespace {

namespace stacks = brimful::observer::stacks;

// A small file: a library of the system that is always there.
std::vector<char> model;
struct Part {
  std::size_t from;
  std::size_t bytes;
};
std::vector<Part> parts;

void find_parts() {
  Elf64_Ehdr head;
  std::memcpy(&head, model.data(), sizeof head);
  parts.push_back({0, sizeof head});
  parts.push_back({head.e_phoff, std::size_t{head.e_phnum} * sizeof(Elf64_Phdr)});
  parts.push_back({head.e_shoff, std::size_t{head.e_shnum} * sizeof(Elf64_Shdr)});
  for (unsigned n = 0; n < head.e_shnum; ++n) {
    Elf64_Shdr section;
    std::memcpy(&section, model.data() + head.e_shoff + n * sizeof section, sizeof section);
    const bool is_used =
        section.sh_type != SHT_NOBITS && section.sh_size != 0 && (section.sh_flags & SHF_EXECINSTR) == 0;
    if (is_used) parts.push_back({section.sh_offset, std::min<std::size_t>(section.sh_size, 65536)});
  }
}

std::vector<char> changed(Input& input) {
  std::vector<char> bytes = model;
  for (std::size_t left = 1 + input.below(8); left > 0; --left) {
    const Part& part = parts[input.below(parts.size())];
    const std::uint64_t value = input.number(8);
    const std::size_t width = std::size_t{1} << input.below(4);
    const std::size_t at = part.from + input.number(2) % part.bytes;
    if (at + width <= bytes.size()) std::memcpy(bytes.data() + at, &value, width);
  }
  if (input.below(16) == 0) bytes.resize(input.number(3) % bytes.size() + 1);
  return bytes;
}

void use(const stacks::Module& module, Input& input) {
  stacks::Registers registers;
  for (unsigned n = 0; n < stacks::kRegisters; ++n) registers.set(n, 0x7000 + n * 8);
  for (int n = 0; n < 4; ++n) {
    const std::uint64_t address = input.number(2);
    module.lines(address);
    stacks::Row row;
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    if (!stacks::Row::find(module, address, row, start, end)) continue;
    bool signal = false;
    row.apply(
        registers, [](std::uint64_t where, std::uint64_t& word) { return (word = where + 64) < 0x10000; }, signal);
  }
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  module.symbol("dlopen", address, bytes);
  char code[16];
  module.read(input.number(8), code, sizeof code);
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  for (const char* path : {"/lib/x86_64-linux-gnu/libdl.so.2", "/lib/aarch64-linux-gnu/libdl.so.2", "/proc/self/exe"}) {
    std::ifstream file(path, std::ios::binary);
    brimful::fuzz::model.assign(std::istreambuf_iterator<char>(file), {});
    if (!brimful::fuzz::model.empty()) break;
  }
  brimful::fuzz::find_parts();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  const std::vector<char> bytes = brimful::fuzz::changed(input);
  const int file = memfd_create("fuzz", MFD_CLOEXEC);
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    close(file);
    return 0;
  }
  const auto module = brimful::observer::stacks::Module::open("/fuzz", file);
  if (module != nullptr) brimful::fuzz::use(*module, input);
  return 0;
}
