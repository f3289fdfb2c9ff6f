// SPDX-License-Identifier: MIT
//
// The kernel's part, played by the fuzzer. While a Script is in force, files that the library opens below /proc and /sys hold what the
// script says, reads are as short as it likes, and what is written to standard error is collected. All other calls go
// through to the kernel.
//
// It stands between the library and libc's syscall() by the linker's --wrap, so the library is the one that is shipped, without a
// seam for tests.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "input.h"

namespace brimful::fuzz {

class Script {
 public:
  Script();
  ~Script();
  Script(const Script&) = delete;
  Script& operator=(const Script&) = delete;

  // The next file that is opened. Files that are opened when none is left are not there.
  void add_file(std::string content) { files_.push_back(std::move(content)); }
  // Every read gives at most so many bytes; 0: none may be read (EIO).
  void set_read_bytes(std::size_t bytes) { read_bytes_ = bytes; }
  void set_address_space(std::uint64_t bytes) { address_space_ = bytes; }
  // What was written to standard error: each element one write.
  [[nodiscard]] const std::vector<std::string>& written() const { return written_; }

  // For the calls themselves: the answer, or kPass.
  static constexpr long kPass = -1000000;
  long answer(long number, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::uint64_t d);
  static Script* current();

 private:
  long open(const char* path);
  long read(std::uint64_t file, void* into, std::size_t bytes);

  std::vector<std::string> files_;
  std::vector<std::size_t> places_;  // of those that were opened: how much was read
  std::vector<std::string> written_;
  std::size_t read_bytes_ = ~std::size_t{0};
  std::uint64_t address_space_ = 0;
};

// Each is one line: "brimful: …\n", not too long, without control characters.
void expect_lines(const std::vector<std::string>& written);

}  // namespace brimful::fuzz
