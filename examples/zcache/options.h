// SPDX-License-Identifier: MIT
//
// The command line of zcache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "codec.h"

namespace zcache {

struct Options {
  bool handles = true;  // else malloc
  CodecKind codec = CodecKind::kZstd;
  std::string codec_name = "zstd";
  int level = 0;
  std::size_t piece = 4096;
  std::size_t bytes = std::size_t{256} << 20;
  std::size_t limit = 0;
  double churn = 4;
  double erase_percent = 25;
  double thin_percent = 40;
  double waste_percent = 3;
  std::size_t moves = 16;
  double settle = 0;
  std::uint64_t seed = 1;
  bool help = false;
  std::vector<std::string> folders;
};

extern const char* const kHelp;

// Throws std::invalid_argument with a sentence that names the argument.
Options parse(int argc, char** argv);

}  // namespace zcache
