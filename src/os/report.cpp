// SPDX-License-Identifier: MIT
//
// os/report.h on Linux, and the end of BRIMFUL_CHECK.
#include "os/report.h"

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "os/errno_guard.h"

namespace brimful::os {

void report(const Line& line) {
  const ErrnoGuard guard;
  Line whole;
  whole << "brimful: ";
  whole.append(line.data(), line.size() < Line::kCapacity - 16 ? line.size() : Line::kCapacity - 16);
  whole << "\n";
  syscall(SYS_write, STDERR_FILENO, whole.data(), whole.size());
}

void report_and_abort(const Line& line) {
  report(line);
  abort();
}

}  // namespace brimful::os

namespace brimful {

void check_failed(const char* file, int line, const char* expression) {
  os::report_and_abort(Line() << "internal error: " << expression << " does not hold at " << file << ":" << line
                              << "; the heap is damaged or this is a bug of brimful");
}

}  // namespace brimful
