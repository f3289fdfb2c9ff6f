// SPDX-License-Identifier: MIT
//
// print_stats: the statistics, printed when the program exits; prof_file: the samples, written then.
//
// A destructor of the library rather than an exit handler: of a shared library it runs after all handlers that the
// program registered, of a static program after all of its own destructors (priority 101 is the last), so what those
// allocate and free is counted. What comes when the process does not run exit(), a signal, _exit(), quick_exit(), exec, is
// not there at all, by the nature of these. A forked child that exits prints as its parent does, with its own number.
#include <errno.h>

#include "base/line.h"
#include "config/options.h"
#include "os/errno_guard.h"
#include "os/kept_stderr.h"
#include "os/report.h"
#include "stats/output.h"
#include "stats/print.h"
#include "stats/sample_file.h"

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

// Before the tables, whose own printing is nobody's business here: destructors of higher numbers run first.
__attribute__((destructor(102))) void write_samples_at_exit() {
  if (config::prof_file[0] == '\0') return;
  const int fault = write_samples(config::prof_file);
  if (fault == 0) return;
  const os::ErrnoGuard guard;
  os::report(Line() << "prof_file: \"" << config::prof_file << "\" can't be written (error " << fault
                    << "): the samples are lost");
}

}  // namespace
}  // namespace brimful::stats
