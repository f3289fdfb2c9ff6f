// SPDX-License-Identifier: MIT
//
// stats/command.h.
#include "stats/command.h"

#include <getopt.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "stats/finder.h"
#include "stats/process.h"

namespace brimful::observer::stats {
namespace {

using nlohmann::json;

struct Request {
  double every_seconds = 0;  // 0: once
  bool is_light = false;
  std::vector<pid_t> pids;  // none: all processes that run brimful
};

constexpr double kLeastSeconds = 0.01;
constexpr double kMostSeconds = 86400;

bool number_of(const char* text, double& value) {
  char* end = nullptr;
  value = std::strtod(text, &end);
  return *text >= '0' && *text <= '9' && *end == '\0';
}

bool parse(int count, char** arguments, Request& request) {
  enum : int { kEvery = 256, kLight };
  static const option kLong[] = {
      {"every", required_argument, nullptr, kEvery}, {"light", no_argument, nullptr, kLight}, {nullptr, 0, nullptr, 0}};
  double number = 0;
  for (int found = 0; (found = getopt_long(count, arguments, "", kLong, nullptr)) != -1;) {
    if (found == kLight) {
      request.is_light = true;
    } else if (found != kEvery || !number_of(optarg, request.every_seconds) || request.every_seconds < kLeastSeconds ||
               request.every_seconds > kMostSeconds) {
      return false;
    }
  }
  for (int n = optind; n < count; ++n) {
    if (!number_of(arguments[n], number) || number < 1 || number > 1 << 30) return false;
    request.pids.push_back(static_cast<pid_t>(number));
  }
  return true;
}

// The processes to look at, and those that can't be.
class Processes {
 public:
  explicit Processes(const Request& request) : is_given_(!request.pids.empty()) {
    for (const pid_t pid : request.pids) {
      auto watch = std::make_unique<Watch>();
      if (watch->open(pid)) {
        given_.push_back(std::move(watch));
      } else {
        errors_.push_back({{"pid", pid}, {"error", watch->error()}});
      }
    }
  }

  // One look at all; what has ended, or can't be read any more, is told once.
  json look(bool is_light) {
    json all = json::array();
    std::vector<std::unique_ptr<Watch>> left;
    if (!is_given_) {
      for (Watch* const watch : finder_.look()) add(*watch, is_light, all);
    }
    for (auto& watch : given_) {
      if (add(*watch, is_light, all)) left.push_back(std::move(watch));
    }
    given_ = std::move(left);
    json errors = std::move(errors_);
    errors_ = json::array();
    return {{"schema", "brimful-stats-1"}, {"processes", std::move(all)}, {"errors", std::move(errors)}};
  }
  [[nodiscard]] bool is_any_left() const { return !is_given_ || !given_.empty(); }

 private:
  bool add(Watch& watch, bool is_light, json& all) {
    json seen;
    if (watch.look(is_light, seen)) {
      all.push_back(std::move(seen));
      return true;
    }
    const std::string& error = watch.error();
    if (std::exchange(told_[watch.pid()], error) != error) errors_.push_back({{"pid", watch.pid()}, {"error", error}});
    return false;
  }

  bool is_given_;
  std::vector<std::unique_ptr<Watch>> given_;
  Finder finder_;
  json errors_ = json::array();
  std::map<pid_t, std::string> told_;
};

bool print(const json& line) {
  std::puts(line.dump(-1, ' ', false, json::error_handler_t::replace).c_str());
  return std::fflush(stdout) == 0;
}

int once(const Request& request, Processes& processes) {
  const json seen = processes.look(request.is_light);
  for (const json& error : seen["errors"]) {
    std::fprintf(stderr, "brimful-observer stats: %s\n", error["error"].get<std::string>().c_str());
  }
  return print(seen) && (request.pids.empty() || seen["errors"].empty()) ? 0 : 1;
}

// Ends when its output does, or by a signal.
int again_and_again(const Request& request, Processes& processes) {
  for (double next = now_seconds(); print(processes.look(request.is_light));) {
    if (!processes.is_any_left()) break;
    next = std::max(next + request.every_seconds, now_seconds());
    const auto seconds = static_cast<time_t>(next);
    const timespec until = {seconds, static_cast<long>((next - static_cast<double>(seconds)) * 1e9)};
    clock_nanosleep(CLOCK_BOOTTIME, TIMER_ABSTIME, &until, nullptr);
  }
  return 1;
}

}  // namespace

int main(int count, char** arguments) {
  Request request;
  if (!parse(count, arguments, request)) {
    std::fputs("usage: brimful-observer stats [--every SECONDS] [--light] [PID]...\n", stderr);
    return 2;
  }
  Processes processes(request);
  return request.every_seconds > 0 ? again_and_again(request, processes) : once(request, processes);
}

}  // namespace brimful::observer::stats
