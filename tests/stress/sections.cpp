// SPDX-License-Identifier: MIT
//
// Finding the restartable sections in this process; see sections.h.
#include "sections.h"

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "machine_code.h"

namespace brimful::stress {
namespace {

// struct rseq_cs of linux/rseq.h.
struct alignas(32) Descriptor {
  uint32_t version;
  uint32_t flags;
  uint64_t start_ip;
  uint64_t post_commit_offset;
  uint64_t abort_ip;
};

// The executable's symbol table, mapped from its file.
class Symbols {
 public:
  bool open() {
    const int file = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    struct stat status;
    if (file < 0 || fstat(file, &status) != 0) return false;
    void* image = mmap(nullptr, static_cast<size_t>(status.st_size), PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (image == MAP_FAILED) return false;
    const char* base = static_cast<const char*>(image);
    const auto* header = reinterpret_cast<const Elf64_Ehdr*>(base);
    const auto* sections = reinterpret_cast<const Elf64_Shdr*>(base + header->e_shoff);
    for (unsigned i = 0; i < header->e_shnum; ++i) {
      if (sections[i].sh_type != SHT_SYMTAB) continue;
      first_ = reinterpret_cast<const Elf64_Sym*>(base + sections[i].sh_offset);
      last_ = first_ + sections[i].sh_size / sizeof(Elf64_Sym);
      names_ = base + sections[sections[i].sh_link].sh_offset;
    }
    return first_ != nullptr;
  }

  // The value of a symbol, before relocation; 0 if there is none.
  uintptr_t find(const char* name) const {
    for (const Elf64_Sym* symbol = first_; symbol != last_; ++symbol) {
      if (symbol->st_shndx != SHN_UNDEF && std::strcmp(names_ + symbol->st_name, name) == 0) return symbol->st_value;
    }
    return 0;
  }

  // The section whose descriptor is at an address, before relocation: "free_foreign" of brimful_section_free_foreign.
  const char* section_at(uintptr_t address) const {
    static constexpr char kPrefix[] = "brimful_section_";
    static constexpr size_t kLength = sizeof kPrefix - 1;
    for (const Elf64_Sym* symbol = first_; symbol != last_; ++symbol) {
      const char* name = names_ + symbol->st_name;
      if (symbol->st_value == address && std::strncmp(name, kPrefix, kLength) == 0) return name + kLength;
    }
    return "?";
  }

 private:
  const Elf64_Sym* first_ = nullptr;
  const Elf64_Sym* last_ = nullptr;
  const char* names_ = nullptr;
};

// The difference between where the executable lies and where it was linked to lie.
uintptr_t load_bias() {
  uintptr_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        *static_cast<uintptr_t*>(out) = info->dlpi_addr;
        return 1;  // the executable comes first
      },
      &bias);
  return bias;
}

bool disassemble(Section* section, uintptr_t bias) {
  if (kInstructionBytes != 0) {
    for (uintptr_t at = section->start; at < section->end && section->count < Section::kMaxInstructions;
         at += kInstructionBytes) {
      section->instructions[section->count++] = at;
    }
    return section->count > 0;
  }
  char command[256];
  std::snprintf(command, sizeof command,
                "objdump -d --no-show-raw-insn --start-address=%#zx --stop-address=%#zx /proc/%d/exe 2>/dev/null",
                section->start - bias, section->end - bias, static_cast<int>(getpid()));
  FILE* output = popen(command, "r");
  if (output == nullptr) return false;
  char line[512];
  while (std::fgets(line, sizeof line, output) != nullptr) {
    char* end = nullptr;
    const uintptr_t address = std::strtoull(line, &end, 16) + bias;
    if (end == line || *end != ':' || !section->contains(address)) continue;
    if (section->count == Section::kMaxInstructions) break;
    section->instructions[section->count++] = address;
  }
  pclose(output);
  return section->count > 0 && section->instructions[0] == section->start;
}

}  // namespace

const char* read_sections(SectionTable* table) {
  Symbols symbols;
  if (!symbols.open()) return "this program has no symbol table";
  const uintptr_t begin = symbols.find("brimful_rseq_sections_begin");
  const uintptr_t end = symbols.find("brimful_rseq_sections_end");
  if (begin == 0 || end <= begin) return "this build has no restartable sections (portable sequences)";
  const uintptr_t bias = load_bias();
  const auto* descriptor = reinterpret_cast<const Descriptor*>(begin + bias);
  const auto* last = reinterpret_cast<const Descriptor*>(end + bias);
  for (; descriptor != last && table->count < SectionTable::kMaxSections; ++descriptor) {
    Section& section = table->sections[table->count++];
    section.start = descriptor->start_ip;
    section.end = descriptor->start_ip + descriptor->post_commit_offset;
    section.abort = descriptor->abort_ip;
    std::snprintf(section.name, sizeof section.name, "%s",
                  symbols.section_at(reinterpret_cast<uintptr_t>(descriptor) - bias));
    if (!disassemble(&section, bias)) return "objdump is missing or could not disassemble this program";
  }
  return nullptr;
}

}  // namespace brimful::stress
