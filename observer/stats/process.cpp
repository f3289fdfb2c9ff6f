// SPDX-License-Identifier: MIT
//
// stats/process.h.
#include "stats/process.h"

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

namespace brimful::observer::stats {
namespace {

using nlohmann::json;

// Fields of /proc/PID/stat, numbered as in proc(5).
enum StatField : std::size_t { kState = 3, kUserTime = 14, kSystemTime, kThreads = 20, kStart = 22, kCode = 26 };
constexpr std::size_t kMostLetters = 1000;

std::string whole_file(pid_t pid, const char* name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + name, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Empty: there is no such process, or it has ended. The first field is looked for behind the name, which may hold anything.
std::vector<std::string> stat_fields(pid_t pid) {
  const std::string text = whole_file(pid, "stat");
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream rest(text.substr(name_end + 1));
  std::vector<std::string> fields(kState);
  fields.insert(fields.end(), std::istream_iterator<std::string>(rest), {});
  const bool is_alive = fields.size() > kCode && fields[kState] != "Z" && fields[kState] != "X";
  return is_alive ? fields : std::vector<std::string>();
}

double ticks(const std::string& field) {
  return static_cast<double>(std::strtoull(field.c_str(), nullptr, 10)) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace

std::string identity(pid_t pid) {
  const std::vector<std::string> fields = stat_fields(pid);
  return fields.empty() ? "" : fields[kStart] + " " + fields[kCode];
}

double now_seconds() {
  timespec now = {};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

bool add_kernel_figures(pid_t pid, bool whole, json& into) {
  const std::vector<std::string> fields = stat_fields(pid);
  if (fields.empty()) return false;
  into["uptime_seconds"] = now_seconds() - ticks(fields[kStart]);
  json& kernel = into["process"];
  kernel["threads"] = std::strtoull(fields[kThreads].c_str(), nullptr, 10);
  kernel["processor_seconds"] = ticks(fields[kUserTime]) + ticks(fields[kSystemTime]);
  unsigned long long pages = 0;
  if (std::sscanf(whole_file(pid, "statm").c_str(), "%*u %llu", &pages) != 1) return false;
  kernel["rss"] = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (!whole) return true;
  std::istringstream rollup(whole_file(pid, "smaps_rollup"));
  for (std::string line; std::getline(rollup, line);) {
    unsigned long long kilobytes = 0;
    char key[32] = {};
    if (std::sscanf(line.c_str(), "%31[^:]: %llu kB", key, &kilobytes) != 2) continue;
    const std::string name = key;
    if (name == "Rss") kernel["rss"] = kilobytes * 1024;
    if (name == "Pss") kernel["pss"] = kilobytes * 1024;
    if (name == "AnonHugePages") kernel["hugepages"] = kilobytes * 1024;
    if (name == "Anonymous") kernel["anonymous"] = kilobytes * 1024;
    if (name == "Swap") kernel["swap"] = kilobytes * 1024;
  }
  return kernel.contains("pss");
}

std::string command_line(pid_t pid) {
  std::string text = whole_file(pid, "cmdline");
  while (!text.empty() && text.back() == '\0') text.pop_back();
  if (text.size() > kMostLetters) text.resize(kMostLetters);
  for (char& letter : text) {
    if (letter == '\0') letter = ' ';
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  }
  return text;
}

}  // namespace brimful::observer::stats
