// SPDX-License-Identifier: MIT
//
// Core files. The input is described, not written: segments with addresses, lengths and flags, notes, names of files; and the file that
// comes of it may be cut off. So the parser gets past the head, which random bytes never do.
#include <elf.h>
#include <sys/procfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "input.h"
#include "memory/target.h"
#include "oracle.h"

namespace brimful::fuzz {
namespace {

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// A number that is near something: small, a page, or any.
std::uint64_t number(Input& input) {
  switch (input.byte() % 4) {
    case 0:
      return input.number(1);
    case 1:
      return input.number(2) * 4096;
    case 2:
      return 0x7f0000000000 + input.number(2) * 4096;
    default:
      return input.number(8);
  }
}

std::string note(Input& input) {
  static constexpr std::uint32_t kTypes[] = {NT_PRSTATUS, NT_PRFPREG, NT_X86_XSTATE, NT_FILE, NT_AUXV, 77};
  std::string content;
  const std::uint32_t type = kTypes[input.below(6)];
  if (type == NT_PRSTATUS) {
    elf_prstatus status = {};
    status.pr_pid = static_cast<pid_t>(input.number(2));
    append(content, status);
  } else if (type == NT_FILE) {
    const std::uint64_t count = input.below(6);
    append(content, input.flag() ? count : number(input));
    append(content, number(input));
    for (std::uint64_t n = 0; n < 3 * count; ++n) append(content, number(input));
    for (std::uint64_t n = 0; n < count; ++n) content += "/nowhere/" + input.text(input.below(8)) + '\0';
  } else {
    content = input.text(input.below(64));
  }
  Elf64_Nhdr head = {5, static_cast<Elf64_Word>(content.size()), type};
  if (input.below(8) == 0) head.n_descsz = static_cast<Elf64_Word>(number(input));
  if (input.below(8) == 0) head.n_namesz = static_cast<Elf64_Word>(number(input));
  std::string text;
  append(text, head);
  text.append("CORE\0\0\0\0", 8);
  text += content;
  text.resize((text.size() + 3) / 4 * 4);
  return text;
}

std::string core(Input& input) {
  Elf64_Ehdr head = {};
  std::memcpy(head.e_ident, ELFMAG, SELFMAG);
  head.e_ident[EI_CLASS] = ELFCLASS64;
  head.e_ident[EI_DATA] = ELFDATA2LSB;
  head.e_type = ET_CORE;
  head.e_machine = EM_X86_64;
  head.e_phoff = sizeof head;
  head.e_phentsize = input.below(16) == 0 ? static_cast<Elf64_Half>(input.number(2)) : Elf64_Half{sizeof(Elf64_Phdr)};
  const std::size_t segments = 1 + input.below(5);
  head.e_phnum = input.below(16) == 0 ? static_cast<Elf64_Half>(input.number(2)) : static_cast<Elf64_Half>(segments);
  std::vector<Elf64_Phdr> list(segments);
  std::string content;
  for (Elf64_Phdr& segment : list) {
    const std::size_t before = content.size();
    segment.p_type = input.below(3) == 0 ? PT_NOTE : PT_LOAD;
    segment.p_flags = input.byte() & 7U;
    segment.p_offset = sizeof head + segments * sizeof segment + before;
    if (segment.p_type == PT_NOTE) {
      for (std::size_t n = 1 + input.below(4); n > 0; --n) content += note(input);
    } else {
      segment.p_vaddr = number(input);
      // What the anatomy is known by, so that it is found, and is another one.
      if (input.flag()) content.append("brimful:anatomy\0\1\0\0\0", 20);
      content += input.text(input.below(200));
      content.resize((content.size() + 7) / 8 * 8);
      segment.p_memsz = input.flag() ? content.size() - before : number(input);
    }
    segment.p_filesz = input.below(8) != 0 ? content.size() - before : number(input);
    if (input.below(16) == 0) segment.p_offset = number(input);
  }
  std::string file;
  append(file, head);
  for (const Elf64_Phdr& segment : list) append(file, segment);
  file += content;
  if (input.below(8) == 0) file.resize(file.size() - std::min<std::size_t>(file.size() - 1, input.number(2)));
  return file;
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  const std::string bytes = brimful::fuzz::core(input);
  char path[] = "/tmp/brimful-fuzz-core-XXXXXX";
  const int file = mkstemp(path);
  brimful::fuzz::expect(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                        "a file is written");
  close(file);
  std::string why;
  const auto target = brimful::observer::memory::open_target(path, &why);
  unlink(path);
  if (target == nullptr) {
    brimful::fuzz::expect(!why.empty(), "a core that can't be read is refused with a reason");
    return 0;
  }
  std::vector<brimful::observer::memory::Mapping> mappings;
  target->mappings(mappings);
  char buffer[256];
  for (const auto& mapping : mappings) {
    target->read(mapping.start, buffer, sizeof buffer);
    target->read(mapping.end - 8, buffer, 16);
  }
  target->maps();
  target->threads();
  return 0;
}
