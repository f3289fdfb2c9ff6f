// SPDX-License-Identifier: MIT
//
// The command line of `brimful-observer leaks`, and what it does when the library starts it as the process exits.
#include "leaks/command.h"

#include <getopt.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "leaks/findings.h"
#include "memory/target.h"

namespace brimful::observer::leaks {
namespace {

constexpr char kUsage[] =
    "usage: brimful-observer leaks [OPTION]... PID|CORE\n"
    "  --json               all of it, for programs\n"
    "  --possibly           list what only pointers to the inside lead to\n"
    "  --contents           show the first 64 bytes of one object of each group\n"
    "  --groups N           list so many groups (20)\n"
    "  --addresses N        name so many objects of each group (3)\n"
    "  --suppressions FILE  leave out what its rules match; may be repeated\n"
    "  --once               one look only, at a process that stands still\n"
    "  --width N            columns of the terminal\n";

struct Request {
  std::string target;
  bool is_json = false;
  bool is_at_exit = false;
  Wanted wanted;
  TextOptions text;
  Suppressions suppressions;
};

int fail(const std::string& why) {
  std::fprintf(stderr, "brimful leaks: %s\n", why.c_str());
  return 1;
}

bool number_of(const char* text, std::size_t& value) {
  char* end = nullptr;
  value = std::strtoull(text, &end, 10);
  return *text >= '0' && *text <= '9' && *end == '\0';
}

// 0: go on.
int parse(int count, char** arguments, Request& request) {
  enum : int { kJson = 256, kPossibly, kContents, kGroups, kAddresses, kSuppressions, kOnce, kWidth, kAtExit, kHelp };
  static const option kLong[] = {{"json", no_argument, nullptr, kJson},
                                 {"possibly", no_argument, nullptr, kPossibly},
                                 {"contents", no_argument, nullptr, kContents},
                                 {"groups", required_argument, nullptr, kGroups},
                                 {"addresses", required_argument, nullptr, kAddresses},
                                 {"suppressions", required_argument, nullptr, kSuppressions},
                                 {"once", no_argument, nullptr, kOnce},
                                 {"width", required_argument, nullptr, kWidth},
                                 {"at-exit", no_argument, nullptr, kAtExit},
                                 {"help", no_argument, nullptr, kHelp},
                                 {nullptr, 0, nullptr, 0}};
  bool is_good = true;
  for (int found = 0; is_good && (found = getopt_long(count, arguments, "", kLong, nullptr)) != -1;) {
    switch (found) {
      case kJson:
        request.is_json = true;
        break;
      case kPossibly:
        request.text.with_possible = true;
        break;
      case kContents:
        request.text.with_contents = true;
        break;
      case kGroups:
        is_good = number_of(optarg, request.text.most_groups);
        break;
      case kAddresses:
        is_good = number_of(optarg, request.wanted.addresses);
        break;
      case kWidth:
        is_good = number_of(optarg, request.text.width);
        break;
      case kOnce:
        request.wanted.once = true;
        break;
      case kAtExit:
        request.is_at_exit = true;
        break;
      case kSuppressions:
        if (!request.suppressions.read(optarg)) {
          fail(request.suppressions.error());
          return 2;
        }
        break;
      case kHelp:
        std::fputs(kUsage, stdout);
        std::exit(0);
      default:
        is_good = false;
        break;
    }
  }
  if (!is_good || optind + 1 != count) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  request.target = arguments[optind];
  return 0;
}

// Started by the library of the process that we are to look at, which gives us the right to and then closes our input. What
// somebody wants otherwise than usual stands in a variable, an option or a value a line.
int begin_at_exit(Request& request) {
  char c;
  while (read(STDIN_FILENO, &c, 1) > 0) {
  }
  request.wanted.once_if_alone = true;
  const char* const wanted = std::getenv("BRIMFUL_LEAKS_OPTIONS");
  if (wanted == nullptr) return 0;
  std::vector<std::string> lines = {"leaks"};
  std::istringstream text(wanted);
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  lines.push_back(request.target);
  std::vector<char*> arguments;
  arguments.reserve(lines.size() + 1);
  for (std::string& line : lines) arguments.push_back(line.data());
  arguments.push_back(nullptr);
  optind = 0;  // glibc: begin anew
  return parse(static_cast<int>(lines.size()), arguments.data(), request);
}

// Paths may hold any bytes, and JSON only UTF-8.
std::string line_of(const Report& report, int indent) {
  return json_of(report).dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// For `brimful leaks -- COMMAND`: the report of each process goes into files of a folder, named by its number.
int write_files(const std::string& folder, const Report& report, const TextOptions& options) {
  const std::string stem = folder + "/" + std::to_string(report.pid);
  std::ofstream(stem + ".txt") << text_of(report, options);
  std::ofstream json(stem + ".json");
  json << line_of(report, -1) << "\n";
  return json.flush() ? 0 : fail("can't write " + stem + ".json");
}

}  // namespace

int main(int count, char** arguments) {
  Request request;
  if (const int code = parse(count, arguments, request); code != 0) return code;
  if (request.is_at_exit) {
    if (const int code = begin_at_exit(request); code != 0) return code;
  }
  std::string error;
  const std::unique_ptr<memory::Target> target = memory::open_target(request.target, &error);
  if (target == nullptr) return fail(error);
  Report report;
  if (!find_leaks(*target, request.wanted, request.suppressions, report, &error)) return fail(error);
  const char* const folder = request.is_at_exit ? std::getenv("BRIMFUL_LEAKS_REPORT") : nullptr;
  if (folder != nullptr && *folder != '\0') {
    if (const int code = write_files(folder, report, request.text); code != 0) return code;
  } else if (request.is_json) {
    std::printf("%s\n", line_of(report, 2).c_str());
  } else {
    std::fputs(text_of(report, request.text).c_str(), stdout);
  }
  return report.direct().count > 0 ? 1 : 0;
}

}  // namespace brimful::observer::leaks
