// SPDX-License-Identifier: MIT
//
// brimful-observer stats: the statistics of processes, for `brimful top` and exporters. One line of JSON for each look:
//
//   {"schema": "brimful-stats-1", "processes": [{"pid": …}, …], "errors": [{"pid": …, "error": "…"}, …]}
#pragma once

namespace brimful::observer::stats {

// arguments[0] is the subcommand's name. Returns the exit code: 0, 1 when a process can't be read (once) or none is left
// (with --every), 2 wrong usage.
int main(int count, char** arguments);

}  // namespace brimful::observer::stats
