// SPDX-License-Identifier: MIT
#include "stacks/modules.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

namespace brimful::observer::stacks {

struct Modules::Parsed {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  bool executable = false;
  std::string path;
};

namespace {

constexpr std::size_t kMostNotes = 4096;
constexpr std::size_t kMostVdso = 1 << 16;

bool is_file(const std::string& path) { return !path.empty() && path[0] == '/' && path.rfind("/memfd:", 0) != 0; }

// The build-id among the notes in `bytes`, in hexadecimal.
std::string build_id_among(const std::vector<char>& bytes) {
  std::size_t at = 0;
  while (at + sizeof(Elf64_Nhdr) <= bytes.size()) {
    Elf64_Nhdr note;
    std::memcpy(&note, &bytes[at], sizeof note);
    const std::size_t name = at + sizeof note;
    const std::size_t content = name + ((note.n_namesz + 3U) & ~3U);
    const std::size_t next = content + ((note.n_descsz + 3U) & ~3U);
    if (next > bytes.size() || next <= at) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(&bytes[name], "GNU", 4) == 0) {
      std::string text;
      for (std::size_t i = 0; i < note.n_descsz; i++) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(bytes[content + i]));
        text += digits;
      }
      return text;
    }
    at = next;
  }
  return {};
}

}  // namespace

Modules::~Modules() {
  if (root_ >= 0) ::close(root_);
}

void Modules::update(const std::string& maps) {
  code_.clear();
  std::istringstream lines(maps);
  std::string line;
  std::uint64_t first_page = 0;  // where the file's first page lies that was mapped last
  std::string first_path;
  while (std::getline(lines, line)) {
    Parsed mapping;
    char rights[5] = "";
    unsigned major = 0;
    unsigned minor = 0;
    int path_at = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %x:%x %lu %n", &mapping.start, &mapping.end, rights, &mapping.offset,
                    &major, &minor, &mapping.inode, &path_at) < 7) {
      continue;
    }
    mapping.executable = rights[2] == 'x';
    if (path_at > 0 && static_cast<std::size_t>(path_at) < line.size()) mapping.path = line.substr(path_at);
    if (mapping.offset == 0 && is_file(mapping.path)) {
      first_page = mapping.start;
      first_path = mapping.path;
    }
    if (!mapping.executable || mapping.path == "[vsyscall]") continue;
    const bool code_of_file = is_file(mapping.path) || mapping.path == "[vdso]";
    const int module = code_of_file ? known(mapping, first_path == mapping.path ? first_page : 0) : kNoFile;
    code_.push_back({mapping.start, mapping.end, module});
  }
  std::sort(code_.begin(), code_.end(), [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
}

int Modules::known(const Parsed& mapping, std::uint64_t first_page) {
  // The same file at another address is another entry, so that a place that was kept stays right.
  for (std::size_t i = 0; i < known_.size(); i++) {
    const Known& other = known_[i];
    std::uint64_t bias = 0;
    if (other.path != mapping.path || other.inode != mapping.inode) continue;
    if (other.module == nullptr) {
      if (other.bias == mapping.start - mapping.offset) return static_cast<int>(i);
    } else if (other.module->bias_of(mapping.start, mapping.offset, bias) && bias == other.bias) {
      return static_cast<int>(i);
    }
  }
  Known entry{mapping.path, mapping.inode, mapping.start - mapping.offset, nullptr};
  entry.module = mapping.path == "[vdso]" ? open_vdso(mapping) : open(mapping, first_page);
  std::uint64_t bias = 0;
  if (entry.module != nullptr && entry.module->bias_of(mapping.start, mapping.offset, bias)) {
    entry.bias = bias;
  } else {
    entry.module = nullptr;
  }
  known_.push_back(std::move(entry));
  return static_cast<int>(known_.size()) - 1;
}

std::unique_ptr<Module> Modules::open(const Parsed& mapping, std::uint64_t first_page) const {
  std::string path = mapping.path;
  constexpr char kDeleted[] = " (deleted)";
  const std::size_t at = path.rfind(kDeleted);
  if (at != std::string::npos && at + sizeof kDeleted - 1 == path.size()) path.resize(at);
  // Relative to the process's root; a symbolic link with an absolute target can't occur, because maps has real paths.
  const int descriptor = ::openat(root_, path.c_str() + 1, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  struct stat status;
  const bool known = ::fstat(descriptor, &status) == 0;
  std::unique_ptr<Module> module = Module::open(path, descriptor);
  if (module == nullptr || !known) return nullptr;
  const std::string in_memory = first_page == 0 ? std::string() : build_id_in_memory(first_page);
  if (!in_memory.empty()) return in_memory == module->build_id() ? std::move(module) : nullptr;
  const bool same = status.st_ino == mapping.inode && (changed_ == 0 || status.st_ctime <= changed_);
  return same ? std::move(module) : nullptr;
}

std::unique_ptr<Module> Modules::open_vdso(const Parsed& mapping) const {
  if (!read_ || mapping.end - mapping.start > kMostVdso) return nullptr;
  std::vector<char> bytes(mapping.end - mapping.start);
  if (!read_(mapping.start, bytes.data(), bytes.size())) return nullptr;
  const int descriptor = ::memfd_create("vdso", MFD_CLOEXEC);
  if (descriptor < 0) return nullptr;
  if (::write(descriptor, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    ::close(descriptor);
    return nullptr;
  }
  return Module::open(mapping.path, descriptor);
}

std::string Modules::build_id_in_memory(std::uint64_t header) const {
  Elf64_Ehdr elf;
  if (!read_ || !read_(header, &elf, sizeof elf) || std::memcmp(elf.e_ident, ELFMAG, SELFMAG) != 0) return {};
  if (elf.e_phentsize != sizeof(Elf64_Phdr) || elf.e_phnum > 64) return {};
  std::vector<Elf64_Phdr> segments(elf.e_phnum);
  if (!read_(header + elf.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) return {};
  std::uint64_t lowest = UINT64_MAX;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_LOAD) lowest = std::min<std::uint64_t>(lowest, segment.p_vaddr & ~4095ULL);
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_memsz > kMostNotes) continue;
    std::vector<char> notes(segment.p_memsz);
    if (!read_(header + segment.p_vaddr - lowest, notes.data(), notes.size())) continue;
    std::string id = build_id_among(notes);
    if (!id.empty()) return id;
  }
  return {};
}

bool Modules::find(std::uint64_t address, Place& place) const {
  auto after = std::upper_bound(code_.begin(), code_.end(), address,
                                [](std::uint64_t wanted, const Mapping& mapping) { return wanted < mapping.start; });
  if (after == code_.begin()) return false;
  const Mapping& mapping = *--after;
  if (address >= mapping.end) return false;
  place.module = mapping.module;
  place.address = mapping.module == kNoFile ? address : address - bias(mapping.module);
  return true;
}

bool Modules::read_code(std::uint64_t address, void* into, std::size_t size) const {
  Place place;
  if (!find(address, place)) return false;
  if (const Module* code = module(place.module)) return code->read(place.address, into, size);
  return read_ && read_(address, into, size);
}

}  // namespace brimful::observer::stacks
