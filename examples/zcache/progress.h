// SPDX-License-Identifier: MIT
//
// What a long run says on standard error, and how it is stopped: Ctrl-C sets a flag, tick() throws Interrupted, and
// everything is given back on the way out.
#pragma once

#include <cstddef>
#include <cstdint>

namespace zcache {

struct Interrupted {};

std::uint64_t now_ns();

// SIGINT and SIGTERM end the run at the next tick().
void handle_interrupts();

class Progress {
 public:
  // `total` of what is counted; 0: not known.
  Progress(const char* what, std::size_t total);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Throws Interrupted. Cheap enough for each value.
  void tick(std::size_t done);

 private:
  void show(std::size_t done);

  const char* what_;
  std::size_t total_;
  std::uint64_t began_ns_;
  std::uint64_t shown_ns_ = 0;
  std::size_t ticks_ = 0;
  bool terminal_;
};

}  // namespace zcache
