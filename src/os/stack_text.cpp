// SPDX-License-Identifier: MIT
//
// os/stack_text.h.
#include "os/stack_text.h"

#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "arch/fault.h"
#include "arch/stack.h"
#include "arch/system_call.h"
#include "base/compiler.h"
#include "base/units.h"
#include "os/calls.h"
#include "os/environment.h"
#include "os/probe.h"
#include "os/report.h"

namespace brimful::os {
namespace {

constexpr std::size_t kMostPlaces = 120;  // of all stacks together
constexpr std::size_t kMostCalls = 12;    // printed of one
constexpr std::size_t kPathBytes = 200;
constexpr std::size_t kMostFiles = 24;

struct File {
  char path[kPathBytes];
  std::uint64_t base;  // what is taken off an address
};

struct Place {
  std::uint64_t address;
  const File* file;  // nullptr: code of no file
  std::uint8_t stack;
  bool is_call;  // an address to return to: the call is the byte before
  bool is_code;
};

struct Places {
  Place places[kMostPlaces];
  std::size_t count;
  File files[kMostFiles];
  std::size_t file_count;
  char text[4096];
};
BRIMFUL_ZEROS_COLD constinit Places found = {};  // of the thread that `reporter` names
constinit std::atomic<std::uint32_t> reporter{0};
constexpr std::uint64_t kWaitMs = 1000;  // for a thread that may be the one that forked this process

struct Mapping {
  std::uint64_t start;
  std::uint64_t end;
  bool is_code;
  const char* path;
};

std::uint64_t parse_hex(const char*& text) {
  std::uint64_t value = 0;
  for (;; ++text) {
    const char c = *text;
    if (c >= '0' && c <= '9') {
      value = value * 16 + static_cast<std::uint64_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = value * 16 + static_cast<std::uint64_t>(c - 'a' + 10);
    } else {
      return value;
    }
  }
}

// `start-end perm offset device inode path`
Mapping parse(const char* line) {
  Mapping mapping = {};
  mapping.start = parse_hex(line);
  if (*line == '-') ++line;
  mapping.end = parse_hex(line);
  const std::size_t length = strlen(line);
  mapping.is_code = length > 4 && line[3] == 'x';
  const char* path = strchr(line, '/');
  mapping.path = path != nullptr ? path : "";
  return mapping;
}

// Programs at fixed addresses are named by these.
bool is_at_fixed_address(std::uint64_t start) {
  const auto* head = reinterpret_cast<const Elf64_Ehdr*>(start);
  if (!is_readable(start) || !is_readable(start + 56)) return false;
  return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 && head->e_type == ET_EXEC;
}

// The file that is mapped from `start` on, for the first time.
void add_file(const char* path, std::uint64_t start) {
  if (found.file_count == kMostFiles) return;
  File& file = found.files[found.file_count];
  const std::size_t length = strnlen(path, kPathBytes - 1);
  memcpy(file.path, path, length);
  file.path[length] = '\0';
  file.base = is_at_fixed_address(start) ? 0 : start;
}

void use_line(const char* line, char* last_path, std::uint64_t* first_start) {
  const Mapping mapping = parse(line);
  if (strncmp(mapping.path, last_path, kPathBytes - 1) != 0) {
    strncpy(last_path, mapping.path, kPathBytes - 1);
    *first_start = mapping.start;
  }
  if (!mapping.is_code) return;
  bool is_added = false;
  for (std::size_t n = 0; n < found.count; ++n) {
    Place& place = found.places[n];
    if (place.address - mapping.start >= mapping.end - mapping.start) continue;
    place.is_code = true;
    if (mapping.path[0] == '\0' || (!is_added && found.file_count == kMostFiles)) continue;
    if (!is_added) add_file(mapping.path, *first_start);
    is_added = true;
    place.file = &found.files[found.file_count];
  }
  if (is_added) ++found.file_count;
}

// false: there is no /proc.
bool look_up_places() {
  const long file = arch::system_call(SYS_openat, static_cast<std::uint64_t>(AT_FDCWD),
                                      reinterpret_cast<std::uint64_t>("/proc/self/maps"), O_RDONLY | O_CLOEXEC, 0);
  if (file < 0) return false;
  static constinit char last_path[kPathBytes];
  std::uint64_t first_start = 0;
  std::size_t kept = 0;
  for (;;) {
    const long got =
        arch::system_call(SYS_read, static_cast<std::uint64_t>(file),
                          reinterpret_cast<std::uint64_t>(found.text + kept), sizeof found.text - 1 - kept, 0);
    if (got <= 0) break;
    const std::size_t end = kept + static_cast<std::size_t>(got);
    found.text[end] = '\0';
    char* line = found.text;
    for (char* mark = strchr(line, '\n'); mark != nullptr; mark = strchr(line, '\n')) {
      *mark = '\0';
      use_line(line, last_path, &first_start);
      line = mark + 1;
    }
    kept = end - static_cast<std::size_t>(line - found.text);
    if (kept == sizeof found.text - 1) kept = 0;  // no path is that long
    memmove(found.text, line, kept);
  }
  arch::system_call(SYS_close, static_cast<std::uint64_t>(file), 0, 0, 0);
  return true;
}

void add_place(std::uint64_t address, std::size_t stack, bool is_call) {
  if (found.count == kMostPlaces || address == 0) return;
  found.places[found.count++] = {address, nullptr, static_cast<std::uint8_t>(stack), is_call, false};
}

bool may_be_behind_call(std::uint64_t word) {
  constexpr std::uint64_t kFirst = std::uint64_t{1} << 16;
  return word >= kFirst && word < arch::kEndOfAddresses && is_readable(word - 8) && arch::is_behind_call(word);
}

// Words of a stack lie in whoever's frames.
BRIMFUL_UNCHECKED void collect(const StackWords& stack, std::size_t number, std::size_t most) {
  add_place(stack.first, number, false);
  if (stack.link != 0 && may_be_behind_call(stack.link)) add_place(stack.link, number, true);
  const std::size_t end = found.count + most;
  for (std::size_t n = 0; n < stack.count && found.count < end; ++n) {
    if (may_be_behind_call(stack.words[n])) add_place(stack.words[n], number, true);
  }
}

void print_stack(const char* title, std::size_t number, const File* own, bool has_maps) {
  report(Line() << "  " << title);
  std::size_t printed = 0;
  for (std::size_t n = 0; n < found.count && printed < kMostCalls; ++n) {
    const Place& place = found.places[n];
    if (place.stack != number || (has_maps && !place.is_code) || (own != nullptr && place.file == own)) continue;
    const std::uint64_t address = place.address - (place.is_call ? 1 : 0);
    Line line;
    line << "    #" << std::uint64_t{printed++} << " ";
    if (place.file != nullptr) {
      line << place.file->path << "+" << reinterpret_cast<const void*>(address - place.file->base);
    } else {
      line << reinterpret_cast<const void*>(address);
    }
    report(line);
  }
  if (printed == 0) report(Line() << "    not known");
}

}  // namespace

bool begin_stacks() {
  const std::uint32_t self = thread_id();
  const std::uint64_t began_ms = calls.now_ms();
  std::uint32_t expected = 0;
  // pairs with: end_stacks() (what the last one wrote)
  while (!reporter.compare_exchange_weak(expected, self, std::memory_order_acquire,
                                         std::memory_order_relaxed)) {  // relaxed: tried again
    if (expected == self || calls.now_ms() - began_ms > kWaitMs) return false;
    expected = 0;
    calls.yield();
  }
  return true;
}

void end_stacks() { reporter.store(0, std::memory_order_release); }  // pairs with: begin_stacks() (what we wrote)

void report_stacks(const StackWords* stacks, std::size_t count) {
  found.count = 0;
  found.file_count = 0;
  for (std::size_t n = 0; n < count; ++n) collect(stacks[n], n, kMostPlaces / (count + 1));
  // The library's own calls are left out, where it is a file of its own.
  add_place(reinterpret_cast<std::uint64_t>(&report_stacks), count, false);
  add_place(program_entry(), count, false);
  const bool has_maps = look_up_places();
  const File* own = found.places[found.count - 2].file;
  if (own == found.places[found.count - 1].file) own = nullptr;
  for (std::size_t n = 0; n < count; ++n) print_stack(stacks[n].title, n, own, has_maps);
}

StackWords own_stack(const char* title, const void* frame) {
  constexpr std::size_t kWords = 512;
  const auto sp = reinterpret_cast<std::uint64_t>(frame) & -sizeof(std::uint64_t);
  return {title, 0, 0, reinterpret_cast<const std::uint64_t*>(sp), readable_words(sp, kWords)};
}

std::size_t readable_words(std::uint64_t sp, std::size_t most) {
  const std::size_t page = page_bytes();
  const std::uint64_t last = sp + most * sizeof(std::uint64_t);
  std::uint64_t end = sp;
  while (end < last && is_readable(round_down(end, page))) end = round_down(end, page) + page;
  return ((end < last ? end : last) - sp) / sizeof(std::uint64_t);
}

}  // namespace brimful::os
