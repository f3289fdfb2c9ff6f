// SPDX-License-Identifier: MIT
//
// Which processes run brimful: those whose files' data holds the anatomy (memory/anatomy.h), preloaded, linked or static.
// To look into all files of a process takes a few milliseconds, so it is done once for each program that a process runs, or
// a few times, because of one that has just been started the loader may not have mapped the library yet.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "stats/watch.h"

namespace brimful::observer::stats {

class Finder {
 public:
  // All processes that may be read and run brimful now, by number. What belongs to others is left out silently.
  std::vector<Watch*> look();

 private:
  struct Known {
    std::string identity;
    std::unique_ptr<Watch> watch;  // nullptr: it does not run brimful
    int looks = 0;                 // after the first few, what does not run brimful never will
  };
  std::map<pid_t, Known> known_;
};

}  // namespace brimful::observer::stats
