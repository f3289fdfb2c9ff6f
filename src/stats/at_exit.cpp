// SPDX-License-Identifier: MIT
//
// print_stats: the statistics, printed when the program exits.
//
// A destructor of the library rather than an exit handler: of a shared library it runs after all handlers that the
// program registered, of a static program after all of its own destructors (priority 101 is the last), so what those
// allocate and free is counted. What comes when the process does not run exit(), a signal, _exit(), quick_exit(), exec, is
// not there at all, by the nature of these. A forked child that exits prints as its parent does, with its own number.
#include <errno.h>

#include "base/line.h"
#include "config/options.h"
#include "os/kept_stderr.h"
#include "stats/output.h"
#include "stats/print.h"

namespace brimful::stats {
namespace {

// A process that never allocated has not read its options either, and prints nothing.
__attribute__((destructor(101))) void print_at_exit() {
  const config::PrintStats wanted = config::print_stats();
  if (wanted == config::PrintStats::kOff) return;
  Output output;
  if (wanted == config::PrintStats::kJson) output << "brimful-stats: ";
  const int fault = print(output, wanted == config::PrintStats::kJson ? Format::kJson : Format::kText);
  if (fault == 0) {
    os::write_to_kept_stderr(output.data(), output.size());
  } else {
    const Line line = Line() << "brimful: no statistics: "
                             << (fault == ENOMEM ? "the system has no memory for their text\n"
                                                 : "a signal handler that interrupted malloc or free called exit\n");
    os::write_to_kept_stderr(line.data(), line.size());
  }
}

}  // namespace
}  // namespace brimful::stats
