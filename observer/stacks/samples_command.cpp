// SPDX-License-Identifier: MIT
#include "stacks/samples_command.h"

#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <memory>

#include "memory/process.h"
#include "stacks/control.h"
#include "stacks/live_samples.h"
#include "stacks/session.h"

namespace brimful::observer::stacks {

namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;
constexpr double kDefaultInterval = 512 << 10;
// How long a program that has just been started may take until the loader has mapped the library.
constexpr int kStartLooks = 1000;
constexpr useconds_t kStartPause = 5000;

struct Options {
  std::string target;
  double seconds = 0;
  double interval = kDefaultInterval;
  bool from_start = false;
  bool off = false;
  std::string then_file;
};

bool number(const std::string& text, double& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size() && value >= 0 && value < 1e18;
}

int say(const std::string& text, int code) {
  std::cerr << "brimful-observer: " << text << '\n';
  return code;
}

bool parse(const std::vector<std::string>& arguments, Options& options) {
  for (std::size_t i = 0; i < arguments.size(); i++) {
    const std::string& word = arguments[i];
    const bool has_value = i + 1 < arguments.size();
    if (word == "--from-start") {
      options.from_start = true;
    } else if (word == "--off") {
      options.off = true;
    } else if (word == "--then-file" && has_value) {
      options.then_file = arguments[++i];
    } else if (word == "--seconds" && has_value) {
      if (!number(arguments[++i], options.seconds)) return false;
    } else if (word == "--interval" && has_value) {
      if (!number(arguments[++i], options.interval) || options.interval < 1) return false;
    } else if (options.target.empty() && !word.empty() && word[0] != '-') {
      options.target = word;
    } else {
      return false;
    }
  }
  return !options.target.empty();
}

// Whether the kernel lets us read its memory, of which the first mapping always has some.
bool may_read(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/maps");
  std::uint64_t start = 0;
  unsigned char byte = 0;
  return static_cast<bool>(file >> std::hex >> start) && memory::read_process(process, start, &byte, 1);
}

// Why the process can't be watched, in words for whoever asked.
std::string reason(pid_t process, const std::string& why) {
  const std::string who = "process " + std::to_string(process);
  if (!is_running(process)) return "there is no process " + std::to_string(process) + " that runs";
  if (!may_read(process)) {
    return who + " may not be read: it belongs to another user, or kernel.yama.ptrace_scope forbids it (try as root)";
  }
  return who + ": " + why;
}

int watch(const Options& options, pid_t process) {
  std::string why;
  Request request;
  // Of a program that has just been started the loader may not have mapped the library yet.
  for (int looks = options.from_start ? kStartLooks : 1; looks > 0; looks--) {
    if (find_control(process, request.control, why) || !is_running(process)) break;
    if (looks > 1) ::usleep(kStartPause);
  }
  if (!is_running(process)) return say(reason(process, why), kFailure);
  const std::unique_ptr<Session> session = Session::of_process(process, why);
  if (session == nullptr || request.control == 0) return say(reason(process, why), kFailure);
  request.process = process;
  request.seconds = options.seconds;
  request.interval = static_cast<std::uint64_t>(options.interval);
  request.from_start = request.ignore_interrupt = options.from_start;
  if (options.off) {
    LiveSamples live(process, request.control);
    return live.look() && live.set_interval(0) ? 0 : say(reason(process, std::strerror(errno)), kFailure);
  }
  Report report;
  if (!session->watch(request, report, why)) return say(reason(process, why), kFailure);
  if (report.ended == "exit" && !options.then_file.empty()) {
    // Without it the program was killed, and what was seen is what there is.
    session->add_file(options.then_file, report, why);
  }
  print(*session, report);
  return 0;
}

int convert(const Options& options) {
  std::string why;
  Report report;
  const std::unique_ptr<Session> session = Session::of_file(options.target, report, why);
  if (session == nullptr) return say(options.target + ": " + why, kFailure);
  print(*session, report);
  return 0;
}

}  // namespace

int samples_command(const std::vector<std::string>& arguments) {
  Options options;
  if (!parse(arguments, options)) {
    return say("usage: samples PID|FILE [--seconds N] [--interval BYTES] [--from-start] [--then-file PATH] [--off]",
               kUsage);
  }
  // libdwfl would ask servers for debug files.
  ::unsetenv("DEBUGINFOD_URLS");
  double process = 0;
  const bool is_process = options.target.find_first_not_of("0123456789") == std::string::npos;
  if (!is_process) return convert(options);
  if (!number(options.target, process) || process < 1 || process > 1 << 30) return say("no such process", kFailure);
  return watch(options, static_cast<pid_t>(process));
}

}  // namespace brimful::observer::stacks
