// SPDX-License-Identifier: MIT
//
// leaks:exit: when the program exits, the observer is started, looks at this process for what nothing leads to any more,
// and writes what it finds to standard error (docs/guide/leaks.md).
//
// A destructor of the library, for the reasons of stats/at_exit.cpp: what the program's own exit handlers and destructors
// free is freed by then. The observer is another program, because it needs memory and a C++ run time, and the heap that
// it looks at must not change meanwhile; it stops our other threads for as long as it copies. What it says changes
// nothing about the exit code.
#include <errno.h>
#include <string.h>

#include "base/line.h"
#include "config/options.h"
#include "os/environment.h"
#include "os/kept_stderr.h"
#include "os/observer.h"

namespace brimful::debug {
namespace {

const char* observer_path() {
  const char* const chosen = os::environment("BRIMFUL_OBSERVER");
  return chosen != nullptr && *chosen != '\0' ? chosen : BRIMFUL_OBSERVER_PATH;
}

__attribute__((destructor(101))) void look_for_leaks() {
  if (config::leaks() == config::Leaks::kOff) return;
  const char* const path = observer_path();
  const char* const arguments[] = {path, "leaks", "--at-exit", "%pid", nullptr};
  const int fault = os::be_observed_by(path, arguments);
  if (fault == 0) return;
  Line line;
  line << "brimful: no look for leaks: " << path;
  if (fault == ENOENT) {
    line << " is not there; BRIMFUL_OBSERVER=PATH names the program brimful-observer\n";
  } else {
    line << " does not start (errno " << static_cast<std::uint64_t>(fault) << ")\n";
  }
  os::write_to_kept_stderr(line.data(), line.size());
}

}  // namespace
}  // namespace brimful::debug
