// SPDX-License-Identifier: MIT
//
// One process that is looked at again and again.
//
//   each look        what the library counts (stats/counters.h) and the kernel's RSS       0.1 to 0.5 ms, whatever the heap's size
//   now and then     the whole heap: what is live, what is free, page by page (heap/)      30 to 60 ms of processor time for each GiB
//
// The second is due again when twenty times as long has passed as it took, so it takes a twentieth of a processor at most: a
// heap of 500 MiB is looked at each second, one of 10 GiB every 6 to 12 s. In between the figures are those of the last one, and
// say how old they are.
#pragma once

#include <sys/types.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "memory/target.h"
#include "stats/counters.h"
#include "stats/options.h"

namespace brimful::observer::stats {

class Watch {
 public:
  // false: error() says why in one line.
  bool open(pid_t pid);
  // All that is known at this moment. `light`: without the whole heap. false: error() says why.
  bool look(bool light, nlohmann::json& into);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] const std::string& identity() const { return identity_; }
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  bool look_at_heap(nlohmann::json& into);
  bool fail(const std::string& why);
  bool fail_to_read(const std::string& why = "it can't be read");

  pid_t pid_ = 0;
  std::string identity_;
  std::string error_;
  std::unique_ptr<memory::Target> target_;
  bool has_names_ = false;
  Counters counters_;
  Options options_;
  double next_heap_at_ = 0;  // when the whole heap is to be looked at; by now_seconds()
  nlohmann::json heap_;      // what was seen then
};

}  // namespace brimful::observer::stats
