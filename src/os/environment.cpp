// SPDX-License-Identifier: MIT
//
// os/environment.h on Linux with glibc or musl.
#include "os/environment.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>

#include "os/calls.h"
#include "os/errno_guard.h"
#include "os/small_file.h"

// glibc's dynamic linker keeps the address of the initial stack, where argc, argv and the environment lie. It is there
// before libc sets `environ`.
extern "C" __attribute__((weak)) void* __libc_stack_end;

namespace brimful::os {
namespace {

char** initial_environment() {
  if (environ != nullptr) return environ;
  if (&__libc_stack_end == nullptr || __libc_stack_end == nullptr) return nullptr;
  auto* stack = static_cast<char**>(__libc_stack_end);
  const auto argument_count = reinterpret_cast<std::uintptr_t>(stack[0]);
  return stack + 1 + argument_count + 1;
}

}  // namespace

long read_small_file(const char* path, char* buffer, std::size_t capacity) {
  const ErrnoGuard guard;
  const long file = syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  const long length = syscall(SYS_read, file, buffer, capacity - 1);
  syscall(SYS_close, file);
  if (length < 0) return -1;
  buffer[length] = '\0';
  return length;
}

const char* environment(const char* name) {
  char** entries = initial_environment();
  if (entries == nullptr) return nullptr;
  const std::size_t length = strlen(name);
  for (; *entries != nullptr; ++entries) {
    if (strncmp(*entries, name, length) == 0 && (*entries)[length] == '=') return *entries + length + 1;
  }
  return nullptr;
}

bool environment_has_prefix(const char* prefix) {
  char** entries = initial_environment();
  if (entries == nullptr) return false;
  const std::size_t length = strlen(prefix);
  for (; *entries != nullptr; ++entries) {
    if (strncmp(*entries, prefix, length) == 0) return true;
  }
  return false;
}

bool is_secure_mode() {
  const ErrnoGuard guard;
  return getauxval(AT_SECURE) != 0;
}

std::size_t address_space_left() {
  const ErrnoGuard guard;
  rlimit limit = {};
  if (syscall(SYS_prlimit64, 0, RLIMIT_AS, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
    return SIZE_MAX;
  }
  char text[64];
  std::size_t used_pages = 0;
  if (read_small_file("/proc/self/statm", text, sizeof text) > 0) {
    for (const char* c = text; *c >= '0' && *c <= '9'; ++c)
      used_pages = used_pages * 10 + static_cast<unsigned>(*c - '0');
  }
  const std::size_t used = used_pages * page_bytes();
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

std::uint64_t dynamic_linker() {
  const ErrnoGuard guard;
  return getauxval(AT_BASE);
}

std::uint64_t program_entry() {
  const ErrnoGuard guard;
  return getauxval(AT_ENTRY);
}

std::uint64_t process_random() {
  const ErrnoGuard guard;
  const auto* bytes = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM));
  if (bytes == nullptr) return 0;
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  memcpy(&low, bytes, sizeof low);
  memcpy(&high, bytes + 8, sizeof high);
  // Mixed, so that what we derive from it says nothing about the stack protector's canary made of the same bytes.
  std::uint64_t mixed = (low ^ (high >> 7)) * 0x9E3779B97F4A7C15U;
  mixed ^= mixed >> 29;
  return mixed * 0xBF58476D1CE4E5B9U;
}

bool is_overcommit_strict() {
  enum : int { kUnread, kNo, kYes };
  static constinit std::atomic<int> known{kUnread};
  int answer = known.load(std::memory_order_relaxed);  // relaxed: a number that is written once
  if (answer == kUnread) {
    char text[8];
    const bool strict = read_small_file("/proc/sys/vm/overcommit_memory", text, sizeof text) > 0 && text[0] == '2';
    // Of two threads that read at once the first decides: memory was charged, or given back, by its answer.
    const int mine = strict ? kYes : kNo;
    // relaxed: as above
    if (known.compare_exchange_strong(answer, mine, std::memory_order_relaxed)) answer = mine;
  }
  return answer == kYes;
}

}  // namespace brimful::os
