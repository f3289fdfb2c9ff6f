// SPDX-License-Identifier: MIT
//
// stats/finder.h.
#include "stats/finder.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "stats/process.h"

namespace brimful::observer::stats {
namespace {

constexpr int kLooks = 3;

}  // namespace

std::vector<Watch*> Finder::look() {
  std::vector<Watch*> found;
  std::map<pid_t, Known> now;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::strtol(name.c_str(), nullptr, 10));
    std::string is = pid == getpid() ? "" : identity(pid);
    if (is.empty()) continue;
    const auto before = known_.find(pid);
    Known& process = now[pid];
    if (before != known_.end() && before->second.identity == is) process = std::move(before->second);
    if (process.watch != nullptr || process.looks >= kLooks) continue;
    process.identity = std::move(is);
    ++process.looks;
    process.watch = std::make_unique<Watch>();
    if (!process.watch->open(pid)) process.watch = nullptr;
  }
  known_ = std::move(now);
  for (auto& [pid, process] : known_) {
    if (process.watch != nullptr) found.push_back(process.watch.get());
  }
  return found;
}

}  // namespace brimful::observer::stats
