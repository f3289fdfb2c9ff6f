// SPDX-License-Identifier: MIT
//
// The samples of a running process: switched on and off through its control block, read while it runs.
//
// The process executes nothing for us and is not stopped. A record is taken if its sequence number is even and the same
// before and after; one that is being written is read at the next look. Sampling is left as it was found: who finds it on
// doesn't switch it off, and who finds it switched off meanwhile (by another profiler, which had come first) switches it on
// again and is then the one to switch it off. Of a core the same records are read, which nothing changes any more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "memory/mapping.h"
#include "stacks/collect.h"

namespace brimful::observer::stacks {

class LiveSamples {
 public:
  LiveSamples(pid_t process, std::uint64_t control);
  // Of a core: read by `read`, never switched.
  LiveSamples(memory::Read read, std::uint64_t control) : read_(std::move(read)), control_(control) {}

  // Reads the control block; false if the process is gone, or if it is none that this reader knows (why() says so).
  bool look();
  const std::string& why() const { return why_; }

  std::uint64_t interval() const { return interval_; }
  std::uint64_t taken() const { return taken_; }
  std::uint64_t lost() const { return lost_; }
  // What all samples so far stand for, those included that were gone before they could be read.
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }

  // Samples every `bytes` on average from now on; 0 switches off. False if the process is gone.
  bool set_interval(std::uint64_t bytes);

  // Gives `into` every record that it doesn't know yet. False if the process is gone.
  bool poll(Samples& into);

 private:
  struct Head;
  // The heads of `count` records from `first` on.
  bool read_heads(std::uint64_t first, std::size_t count, Head* into) const;
  bool take(std::uint64_t slot, Samples& into);

  pid_t process_ = 0;  // 0: a core
  memory::Read read_;
  std::uint64_t control_;
  std::uint64_t interval_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t allocated_bytes_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t slot_bytes_ = 0;
  std::uint64_t used_ = 0;
  std::string why_;
  std::vector<unsigned char> buffer_;
};

}  // namespace brimful::observer::stacks
