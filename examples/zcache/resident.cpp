// SPDX-License-Identifier: MIT
#include "resident.h"

#include <fcntl.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace zcache {
namespace {

// The number behind `name`, which the kernel gives in KiB.
std::size_t field(const char* text, const char* name) {
  const char* found = std::strstr(text, name);
  return found == nullptr ? 0 : std::strtoull(found + std::strlen(name), nullptr, 10) * 1024;
}

}  // namespace

// statm would do but for its per-CPU counters, which are off by some hundred KiB; smaps_rollup counts.
Resident resident() {
  char text[4096];
  const int file = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
  const ssize_t bytes = file < 0 ? -1 : read(file, text, sizeof(text) - 1);
  if (file >= 0) close(file);
  if (bytes <= 0) throw std::runtime_error("/proc/self/smaps_rollup cannot be read");
  text[bytes] = '\0';
  return {field(text, "\nRss:"), field(text, "\nLazyFree:")};
}

}  // namespace zcache
