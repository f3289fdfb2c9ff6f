// SPDX-License-Identifier: MIT
#include "stacks/module.h"

#include <dwarf.h>
#include <fcntl.h>
#include <gelf.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "stacks/demangle.h"

namespace brimful::observer::stacks {

namespace {

// A symbol that doesn't say how long it is (assembly) names at most this much behind it: a name that merely precedes an
// address may be of another function altogether.
constexpr std::uint64_t kUnsizedReach = 512;

std::string hexadecimal(const unsigned char* bytes, int count) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (int i = 0; i < count; i++) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

// The folders in which debuginfod's clients keep what they fetched, then what libdwfl knows itself (/usr/lib/debug with
// its .build-id, and .debug beside the file). BRIMFUL_DEBUG_PATH names more of the former kind, with colons.
int find_debug_file(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, const char* file,
                    const char* link, GElf_Word checksum, char** found) {
  const unsigned char* id = nullptr;
  GElf_Addr at = 0;
  const int size = dwfl_module_build_id(module, &id, &at);
  if (size > 0) {
    const std::string digits = hexadecimal(id, size);
    std::string folders;
    if (const char* own = std::getenv("BRIMFUL_DEBUG_PATH")) folders = std::string(own) + ":";
    if (const char* cache = std::getenv("DEBUGINFOD_CACHE_PATH")) folders += std::string(cache) + ":";
    if (const char* home = std::getenv("HOME")) folders += std::string(home) + "/.cache/debuginfod_client:";
    for (std::size_t from = 0; from < folders.size();) {
      const std::size_t colon = folders.find(':', from);
      const std::string folder = folders.substr(from, colon - from);
      from = colon + 1;
      if (folder.empty()) continue;
      const std::string paths[] = {folder + "/" + digits + "/debuginfo",
                                   folder + "/.build-id/" + digits.substr(0, 2) + "/" + digits.substr(2) + ".debug"};
      for (const std::string& path : paths) {
        const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
        if (descriptor < 0) continue;
        *found = ::strdup(path.c_str());
        return descriptor;
      }
    }
  }
  return dwfl_standard_find_debuginfo(module, user, name, base, file, link, checksum, found);
}

int find_no_file(Dwfl_Module*, void**, const char*, Dwarf_Addr, char**, Elf**) { return -1; }

const Dwfl_Callbacks kCallbacks = {
    .find_elf = find_no_file,
    .find_debuginfo = find_debug_file,
    .section_address = dwfl_offline_section_address,
    .debuginfo_path = nullptr,
};

// A function's name from its debug information: the linker's name, because it has the parameters, else the plain one.
std::string name_of(Dwarf_Die* function) {
  Dwarf_Attribute attribute;
  const char* linkage = dwarf_formstring(dwarf_attr_integrate(function, DW_AT_linkage_name, &attribute));
  if (linkage != nullptr) return demangled(linkage);
  Dwarf_Attribute plain;
  const char* name = dwarf_formstring(dwarf_attr_integrate(function, DW_AT_name, &plain));
  if (name == nullptr) return {};
  // Of a function with internal linkage that is the last part; the namespaces are what it stands in.
  std::string whole = name;
  Dwarf_Die declared = *function;
  for (const unsigned link : {DW_AT_abstract_origin, DW_AT_specification}) {
    Dwarf_Attribute reference;
    Dwarf_Die other;
    if (dwarf_formref_die(dwarf_attr(&declared, link, &reference), &other) != nullptr) declared = other;
  }
  Dwarf_Die* around = nullptr;
  const int count = dwarf_getscopes_die(&declared, &around);
  for (int i = 1; i < count; i++) {
    if (dwarf_tag(&around[i]) != DW_TAG_namespace) continue;
    const char* outer = dwarf_diename(&around[i]);
    whole.insert(0, std::string(outer == nullptr ? "(anonymous namespace)" : outer) + "::");
  }
  std::free(around);
  return whole;
}

// Where the caller of an inlined function stands.
void call_place(Dwarf_Die* unit, Dwarf_Die* inlined, std::string& file, int& line) {
  Dwarf_Attribute attribute;
  Dwarf_Word number = 0;
  file.clear();
  line = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) == 0) line = static_cast<int>(number);
  Dwarf_Files* files = nullptr;
  std::size_t count = 0;
  if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0) return;
  if (dwarf_getsrcfiles(unit, &files, &count) != 0 || number >= count) return;
  if (const char* path = dwarf_filesrc(files, number, nullptr, nullptr)) file = path;
}

}  // namespace

std::unique_ptr<Module> Module::open(const std::string& path, int descriptor) {
  std::unique_ptr<Module> module(new Module(path, descriptor));
  if (!module->load()) return nullptr;
  return module;
}

Module::~Module() {
  if (session_ != nullptr) dwfl_end(session_);
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool Module::load() {
  session_ = dwfl_begin(&kCallbacks);
  if (session_ == nullptr) return false;
  dwfl_report_begin(session_);
  // libdwfl closes the descriptor that it is given, and we go on reading from ours.
  const int copy = ::dup(descriptor_);
  module_ = dwfl_report_elf(session_, path_.c_str(), path_.c_str(), copy, 0, true);
  dwfl_report_end(session_, nullptr, nullptr);
  if (module_ == nullptr) {
    ::close(copy);
    return false;
  }
  GElf_Addr bias = 0;
  Elf* elf = dwfl_module_getelf(module_, &bias);
  GElf_Ehdr header;
  std::size_t count = 0;
  if (elf == nullptr || gelf_getehdr(elf, &header) == nullptr || elf_getphdrnum(elf, &count) != 0) return false;
  for (std::size_t i = 0; i < count; i++) {
    GElf_Phdr segment;
    if (gelf_getphdr(elf, static_cast<int>(i), &segment) == nullptr || segment.p_type != PT_LOAD) continue;
    segments_.push_back({segment.p_vaddr, segment.p_offset, segment.p_filesz, (segment.p_flags & PF_X) != 0});
  }
  const unsigned char* id = nullptr;
  GElf_Addr at = 0;
  const int size = dwfl_module_build_id(module_, &id, &at);
  if (size > 0) build_id_ = hexadecimal(id, size);
  Dwarf_Addr ignored = 0;
  eh_frame_ = dwfl_module_eh_cfi(module_, &ignored);
  debug_frame_ = dwfl_module_dwarf_cfi(module_, &ignored);
  return true;
}

bool Module::bias_of(std::uint64_t start, std::uint64_t offset, std::uint64_t& bias) const {
  constexpr std::uint64_t kPage = 4096;
  for (const Segment& segment : segments_) {
    const std::uint64_t first = segment.offset & ~(kPage - 1);
    if (!segment.executable || offset < first || offset >= segment.offset + segment.size) continue;
    bias = start - offset - (segment.address - segment.offset);
    return true;
  }
  return false;
}

bool Module::read(std::uint64_t address, void* into, std::size_t size) const {
  for (const Segment& segment : segments_) {
    if (address < segment.address || address + size > segment.address + segment.size) continue;
    const auto offset = static_cast<off_t>(address - segment.address + segment.offset);
    return ::pread(descriptor_, into, size, offset) == static_cast<ssize_t>(size);
  }
  return false;
}

bool Module::symbol_name(std::uint64_t address, std::string& name) const {
  GElf_Off offset = 0;
  GElf_Sym symbol;
  GElf_Word section = 0;
  const char* text = dwfl_module_addrinfo(module_, address, &offset, &symbol, &section, nullptr, nullptr);
  if (text == nullptr || *text == '\0') return false;
  if (offset >= (symbol.st_size != 0 ? symbol.st_size : kUnsizedReach)) return false;
  name = demangled(text);
  return true;
}

std::vector<Line> Module::lines(std::uint64_t address) const {
  std::vector<Line> result;
  Dwarf_Addr bias = 0;
  Line here;
  if (Dwfl_Line* source = dwfl_module_getsrc(module_, address)) {
    Dwarf_Addr of_line = 0;
    if (const char* file = dwfl_lineinfo(source, &of_line, &here.line, nullptr, nullptr, nullptr)) here.file = file;
  }
  Dwarf_Die* unit = dwfl_module_addrdie(module_, address, &bias);
  Dwarf_Die* scopes = nullptr;
  const int count = unit == nullptr ? 0 : dwarf_getscopes(unit, address - bias, &scopes);
  for (int i = 0; i < count; i++) {
    const int tag = dwarf_tag(&scopes[i]);
    if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram) continue;
    here.function = name_of(&scopes[i]);
    if (here.function.empty()) break;
    result.push_back(here);
    if (tag == DW_TAG_subprogram) break;
    call_place(unit, &scopes[i], here.file, here.line);
  }
  std::free(scopes);
  if (!result.empty()) return result;
  if (symbol_name(address, here.function)) result.push_back(here);
  return result;
}

bool Module::symbol(const char* name, std::uint64_t& address, std::uint64_t& size) const {
  const int count = dwfl_module_getsymtab(module_);
  for (int i = 1; i < count; i++) {
    GElf_Sym symbol;
    GElf_Addr value = 0;
    const char* text = dwfl_module_getsym_info(module_, i, &symbol, &value, nullptr, nullptr, nullptr);
    if (text == nullptr || std::strcmp(text, name) != 0 || symbol.st_shndx == SHN_UNDEF) continue;
    address = value;
    size = symbol.st_size;
    return true;
  }
  return false;
}

}  // namespace brimful::observer::stacks
