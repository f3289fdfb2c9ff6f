// SPDX-License-Identifier: MIT
//
// What a tool looks at: a process, or a core.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/anatomy.h"
#include "memory/mapping.h"
#include "memory/thread_state.h"

namespace brimful::observer::memory {

class Target {
 public:
  virtual ~Target() = default;
  // Reads an exact stretch of its memory. false: not all of it is there, or it may not be read.
  virtual bool read(std::uint64_t address, void* into, std::size_t bytes) = 0;
  // The same of what the target itself holds: a core leaves out most of the files that were mapped, and read() opens them.
  virtual bool read_held(std::uint64_t address, void* into, std::size_t bytes) = 0;
  // What is mapped where, by address. false: error() says why.
  virtual bool mappings(std::vector<Mapping>& into) = 0;
  // The same as the text of /proc/PID/maps.
  virtual std::string maps() = 0;
  // The folder below which the paths of mappings lie.
  [[nodiscard]] virtual std::string root() const = 0;
  // Pointers that the kernel keeps for the program.
  virtual std::vector<std::uint64_t> kernel_words() = 0;
  // Of a core: what the threads' registers were.
  virtual std::vector<ThreadState> threads() = 0;
  // Address of the samples' control block; 0: not known.
  std::uint64_t sample_control() { return anatomy_["samples.control"]; }
  [[nodiscard]] virtual pid_t pid() const = 0;  // 0: a core
  [[nodiscard]] virtual std::string program() const = 0;
  // What to call it in a message.
  [[nodiscard]] virtual std::string name() const = 0;
  // Why the last call that failed did, in one line; empty: none did.
  [[nodiscard]] const std::string& error() const { return error_; }
  // The library's table of itself, found when the target was opened.
  [[nodiscard]] Anatomy& anatomy() { return anatomy_; }
  [[nodiscard]] const Read& reader() const { return reader_; }

 protected:
  bool fail(const std::string& why) {
    error_ = name() + ": " + why;
    return false;
  }

  Anatomy anatomy_;
  std::string error_;

 private:
  Read reader_ = [this](std::uint64_t address, void* into, std::size_t bytes) { return read(address, into, bytes); };
};

// A process by its number, or a core by its path. nullptr: *error says why in one line.
std::unique_ptr<Target> open_target(const std::string& name, std::string* error);

}  // namespace brimful::observer::memory
