// SPDX-License-Identifier: MIT
#include "options.h"

#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>
#include <string_view>

namespace zcache {

const char* const kHelp =
    "zcache [OPTION…] FOLDER…\n"
    "\n"
    "Fills a cache of compressed values with the files below each FOLDER, replaces and erases values at random, thins\n"
    "them out, checks every value against its file, and prints as JSON what the values weigh and how long calls took.\n"
    "\n"
    "  --store handles|malloc  where the values are: the handle pool, or malloc (any, by LD_PRELOAD)   handles\n"
    "  --codec zstd|lz4|none   what compresses them                                                    zstd\n"
    "  --level N               its level (zstd: -7 … 22; lz4: acceleration); 0: the codec's default     0\n"
    "  --piece SIZE            files are cut into values of this size, 64 … 64K                        4K\n"
    "  --bytes SIZE            the most to read, an equal share of it from each FOLDER                 256M\n"
    "  --limit SIZE            the most bytes of compressed values; the oldest go; 0: no limit         0\n"
    "  --churn N               after loading, N changes for each value that was loaded                 4\n"
    "  --erase PERCENT         of the changes erase a value; the others put one                        25\n"
    "  --thin PERCENT          after the churn, values are erased until this many are left             40\n"
    "  --waste PERCENT         handles: compact when it could give back so much of the values; -1: never 3\n"
    "  --moves N               handles: values that one change may move                                16\n"
    "  --settle SECONDS        weigh again after so long with little traffic (some allocators wait)    0\n"
    "  --seed N                of the random choices                                                   1\n"
    "  --help                  this text\n"
    "\n"
    "SIZE: bytes, or with K, M or G behind it. Exit code: 0; 1: a value was wrong, memory ran out or nothing could be\n"
    "read; 2: the command line is wrong; 130: interrupted.\n";

namespace {

[[noreturn]] void reject(std::string_view name, std::string_view value, const char* expected) {
  throw std::invalid_argument(std::string(name) + ": \"" + std::string(value) + "\" is not " + expected);
}

double number(std::string_view name, std::string_view value, double least, double most) {
  double result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  if (error != std::errc() || end != value.data() + value.size() || std::isnan(result)) {
    reject(name, value, "a number");
  }
  if (result < least || result > most) {
    const auto text = [](double bound) { return std::to_string(static_cast<long long>(bound)); };
    reject(name, value, ("between " + text(least) + " and " + text(most)).c_str());
  }
  return result;
}

std::size_t size(std::string_view name, std::string_view value, std::size_t least, std::size_t most) {
  std::size_t result = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), result);
  const std::string_view unit(end, static_cast<std::size_t>(value.data() + value.size() - end));
  const int shift = unit.empty() ? 0 : unit == "K" ? 10 : unit == "M" ? 20 : unit == "G" ? 30 : -1;
  if (error != std::errc() || shift < 0 || result > std::numeric_limits<std::size_t>::max() >> shift) {
    reject(name, value, "a size such as 4096, 4K or 1G");
  }
  result <<= shift;
  if (result < least || result > most) reject(name, value, "a size in its range (see --help)");
  return result;
}

void choose_store(Options& options, std::string_view name, std::string_view value) {
  if (value != "handles" && value != "malloc") reject(name, value, "handles or malloc");
  options.handles = value == "handles";
}

void choose_codec(Options& options, std::string_view name, std::string_view value) {
  if (value == "zstd") {
    options.codec = CodecKind::kZstd;
  } else if (value == "lz4") {
    options.codec = CodecKind::kLz4;
  } else if (value == "none") {
    options.codec = CodecKind::kNone;
  } else {
    reject(name, value, "zstd, lz4 or none");
  }
  options.codec_name = value;
}

// false: there is no such option.
bool set(Options& options, std::string_view name, std::string_view value) {
  constexpr double kMany = 1e9;
  constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
  const auto real = [&](double least, double most) { return number(name, value, least, most); };
  if (name == "--store") {
    choose_store(options, name, value);
  } else if (name == "--codec") {
    choose_codec(options, name, value);
  } else if (name == "--level") {
    options.level = static_cast<int>(real(-100, 100));
  } else if (name == "--piece") {
    options.piece = size(name, value, 64, 65536);
  } else if (name == "--bytes") {
    options.bytes = size(name, value, 1, kAll);
  } else if (name == "--limit") {
    options.limit = size(name, value, 0, kAll);
  } else if (name == "--churn") {
    options.churn = real(0, kMany);
  } else if (name == "--erase") {
    options.erase_percent = real(0, 100);
  } else if (name == "--thin") {
    options.thin_percent = real(0, 100);
  } else if (name == "--waste") {
    options.waste_percent = real(-1, kMany);
  } else if (name == "--moves") {
    options.moves = static_cast<std::size_t>(real(1, kMany));
  } else if (name == "--settle") {
    options.settle = real(0, kMany);
  } else if (name == "--seed") {
    options.seed = size(name, value, 0, kAll);
  } else {
    return false;
  }
  return true;
}

}  // namespace

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      options.help = true;
      return options;
    }
    if (!argument.starts_with("--")) {
      options.folders.emplace_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    const std::string_view name = argument.substr(0, equals);
    if (equals == std::string_view::npos && i + 1 == argc) {
      throw std::invalid_argument(std::string(name) + ": no such option, or its value is missing (see --help)");
    }
    const std::string_view value = equals == std::string_view::npos ? argv[++i] : argument.substr(equals + 1);
    if (!set(options, name, value)) throw std::invalid_argument(std::string(name) + ": no such option (see --help)");
  }
  if (options.folders.empty()) throw std::invalid_argument("no FOLDER is named (see --help)");
  return options;
}

}  // namespace zcache
