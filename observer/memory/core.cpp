// SPDX-License-Identifier: MIT
//
// ELF core files (core(5)): PT_LOAD segments are the memory, NT_PRSTATUS and its like the registers of each thread, NT_FILE
// which file was mapped where. What the core left out of files is read from the files, for names of types only: a page that
// is not in the core holds no pointer that the program wrote.
#include "memory/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

namespace brimful::observer::memory {
namespace {

class CoreTarget : public Target {
 public:
  explicit CoreTarget(std::string path) : path_(std::move(path)) {}
  CoreTarget(const CoreTarget&) = delete;
  CoreTarget& operator=(const CoreTarget&) = delete;
  ~CoreTarget() override {
    if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), bytes_);
  }

  bool open() {
    if (!map() || !read_segments()) return false;
    if (!anatomy_.find(mappings_, reader())) return fail(anatomy_.error());
    return true;
  }

  bool read(std::uint64_t address, void* into, std::size_t bytes) override { return read(address, into, bytes, true); }
  bool read_held(std::uint64_t address, void* into, std::size_t bytes) override {
    return read(address, into, bytes, false);
  }

  bool mappings(std::vector<Mapping>& into) override {
    into = mappings_;
    return true;
  }

  std::string maps() override {
    std::string text;
    for (const Mapping& mapping : mappings_) {
      const File* const file = file_at(mapping.start);
      char line[128];
      // No number of a device or a file: a core names none.
      std::snprintf(line, sizeof line, "%" PRIx64 "-%" PRIx64 " %c%c%cp %" PRIx64 " 0:0 0 ", mapping.start, mapping.end,
                    mapping.is_readable ? 'r' : '-', mapping.is_writable ? 'w' : '-', mapping.is_executable ? 'x' : '-',
                    file == nullptr ? 0 : file->offset + (mapping.start - file->start));
      text += line + mapping.path + "\n";
    }
    return text;
  }

  [[nodiscard]] std::string root() const override { return "/"; }
  std::vector<std::uint64_t> kernel_words() override { return {}; }
  std::vector<ThreadState> threads() override { return threads_; }
  [[nodiscard]] pid_t pid() const override { return 0; }
  [[nodiscard]] std::string program() const override { return path_; }
  [[nodiscard]] std::string name() const override { return path_; }

 private:
  struct Segment {
    std::uint64_t start;
    std::uint64_t bytes;
    std::uint64_t offset;
    std::uint64_t file_bytes;  // that are in the core
  };
  struct File {
    std::uint64_t start;
    std::uint64_t end;
    std::uint64_t offset;
    std::string path;
  };

  bool read(std::uint64_t address, void* into, std::size_t bytes, bool with_files) const {
    while (bytes > 0) {
      const Segment* const segment = segment_at(address);
      if (segment == nullptr) return false;
      const std::uint64_t offset = address - segment->start;
      std::size_t part = 0;
      if (offset < segment->file_bytes) {
        part = std::min<std::uint64_t>(bytes, segment->file_bytes - offset);
        std::memcpy(into, data_ + segment->offset + offset, part);
      } else {
        part = std::min<std::uint64_t>(bytes, segment->bytes - offset);
        if (!with_files || !read_file(address, into, part)) return false;
      }
      into = static_cast<char*>(into) + part;
      address += part;
      bytes -= part;
    }
    return true;
  }

  bool map() {
    const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0)
      return fail(std::string(std::strerror(errno)) + " (a process number or the path of a core file is wanted)");
    struct stat status = {};
    fstat(file, &status);
    bytes_ = static_cast<std::size_t>(status.st_size);
    void* const data = bytes_ == 0 ? MAP_FAILED : mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (data == MAP_FAILED) return fail("is empty, or no file");
    data_ = static_cast<const std::byte*>(data);
    return true;
  }

  template <class T>
  bool at(std::uint64_t offset, T& into) const {
    if (offset > bytes_ || bytes_ - offset < sizeof into) return false;
    std::memcpy(&into, data_ + offset, sizeof into);
    return true;
  }

  bool read_segments() {
    Elf64_Ehdr head = {};
    if (!at(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_type != ET_CORE ||
        head.e_ident[EI_CLASS] != ELFCLASS64) {
      return fail("is no core file of a 64-bit program");
    }
#if defined(__x86_64__)
    if (head.e_machine != EM_X86_64) return fail("is a core file of another kind of processor");
#endif
    for (unsigned n = 0; n < head.e_phnum; ++n) {
      Elf64_Phdr segment = {};
      if (!at(head.e_phoff + n * std::uint64_t{head.e_phentsize}, segment))
        return fail("is cut off in its list of segments");
      if (segment.p_offset > bytes_ || segment.p_filesz > bytes_ - segment.p_offset) {
        return fail("is cut off: it has " + std::to_string(bytes_) + " bytes of at least " +
                    std::to_string(segment.p_offset + segment.p_filesz) + " (limit of core files, full disk?)");
      }
      if (segment.p_type == PT_NOTE) read_notes(segment.p_offset, segment.p_filesz);
      if (segment.p_type != PT_LOAD) continue;
      segments_.push_back({segment.p_vaddr, segment.p_memsz, segment.p_offset, segment.p_filesz});
      Mapping mapping;
      mapping.start = segment.p_vaddr;
      mapping.end = segment.p_vaddr + segment.p_memsz;
      mapping.is_readable = (segment.p_flags & PF_R) != 0 && segment.p_filesz != 0;
      mapping.is_writable = (segment.p_flags & PF_W) != 0;
      mapping.is_executable = (segment.p_flags & PF_X) != 0;
      mappings_.push_back(std::move(mapping));
    }
    for (Mapping& mapping : mappings_) {
      if (const File* const file = file_at(mapping.start)) mapping.path = file->path;
    }
    std::sort(mappings_.begin(), mappings_.end(), [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
    std::sort(segments_.begin(), segments_.end(), [](const Segment& a, const Segment& b) { return a.start < b.start; });
    return !threads_.empty() || fail("has no registers of any thread");
  }

  void read_notes(std::uint64_t from, std::uint64_t bytes) {
    const std::uint64_t end = from + bytes;
    Elf64_Nhdr note = {};
    while (from + sizeof note <= end && at(from, note)) {
      const std::uint64_t content = from + sizeof note + (note.n_namesz + std::uint64_t{3}) / 4 * 4;
      from = content + (note.n_descsz + std::uint64_t{3}) / 4 * 4;
      if (from > end) return;
      if (note.n_type == NT_PRSTATUS && note.n_descsz >= sizeof(elf_prstatus)) {
        elf_prstatus status = {};
        at(content, status);
        ThreadState state;
        state.tid = status.pr_pid;
        read_general_registers(&status.pr_reg, sizeof status.pr_reg, state);
        threads_.push_back(std::move(state));
      } else if ((note.n_type == NT_PRFPREG || note.n_type == NT_X86_XSTATE) && !threads_.empty()) {
        std::vector<std::uint64_t>& words = threads_.back().words;
        const std::size_t before = words.size();
        const std::size_t count = note.n_descsz / sizeof words[0];
        words.resize(before + count);
        std::memcpy(words.data() + before, data_ + content, count * sizeof words[0]);
      } else if (note.n_type == NT_FILE) {
        read_files(content, note.n_descsz);
      }
    }
  }

  // count, page size, {start, end, offset in pages}…, then the names.
  void read_files(std::uint64_t from, std::uint64_t bytes) {
    std::uint64_t count = 0;
    std::uint64_t page = 0;
    if (!at(from, count) || !at(from + 8, page) || count > bytes / 24) return;
    std::uint64_t name = from + 16 + count * 24;
    for (std::uint64_t n = 0; n < count; ++n) {
      std::uint64_t place[3] = {};
      if (!at(from + 16 + n * 24, place) || name >= from + bytes) return;
      const char* const text = reinterpret_cast<const char*>(data_ + name);
      const std::size_t length = strnlen(text, from + bytes - name);
      files_.push_back({place[0], place[1], place[2] * page, std::string(text, length)});
      name += length + 1;
    }
  }

  [[nodiscard]] const File* file_at(std::uint64_t address) const {
    const auto found = std::find_if(files_.begin(), files_.end(),
                                    [address](const File& f) { return f.start <= address && address < f.end; });
    return found == files_.end() ? nullptr : &*found;
  }

  const Segment* segment_at(std::uint64_t address) const {
    const auto behind = std::upper_bound(segments_.begin(), segments_.end(), address,
                                         [](std::uint64_t a, const Segment& s) { return a < s.start; });
    if (behind == segments_.begin()) return nullptr;
    const Segment& segment = *(behind - 1);
    return address - segment.start < segment.bytes ? &segment : nullptr;
  }

  bool read_file(std::uint64_t address, void* into, std::size_t bytes) const {
    const File* const file = file_at(address);
    if (file == nullptr || address + bytes > file->end) return false;
    std::ifstream stream(file->path, std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(file->offset + (address - file->start)));
    stream.read(static_cast<char*>(into), static_cast<std::streamsize>(bytes));
    return stream.gcount() == static_cast<std::streamsize>(bytes);
  }

  std::string path_;
  const std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::vector<Segment> segments_;
  std::vector<Mapping> mappings_;
  std::vector<File> files_;
  std::vector<ThreadState> threads_;
};

}  // namespace

std::unique_ptr<Target> open_core(const std::string& path, std::string* error) {
  auto target = std::make_unique<CoreTarget>(path);
  if (target->open()) return target;
  *error = target->error();
  return nullptr;
}

}  // namespace brimful::observer::memory
