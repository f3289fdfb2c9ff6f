// SPDX-License-Identifier: MIT
//
// The samples of a process, read once; names are looked up for the stacks that are asked for.
#include "stacks/origins.h"

#include <fcntl.h>

#include <fstream>
#include <sstream>

#include "memory/process.h"
#include "stacks/live_samples.h"
#include "stacks/modules.h"
#include "stacks/names.h"
#include "stacks/perf_map.h"

namespace brimful::observer::stacks {
namespace {

constexpr std::size_t kMostFrames = 24;

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::string text_of_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

Origins::Origins() = default;

Origins::~Origins() = default;

void Origins::read(memory::Target& target) {
  const std::uint64_t control = target.sample_control();
  if (control == 0) return;
  const int root = open(target.root().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) return;
  // What files say is asked of the files, if they are still those that were mapped.
  const memory::Read read = [&target](std::uint64_t address, void* into, std::size_t bytes) {
    return target.read_held(address, into, bytes);
  };
  modules_ = std::make_unique<Modules>(root, read, 0);
  samples_ = std::make_unique<Samples>(*modules_, read);
  modules_->update(target.maps());
  const pid_t pid = target.pid();
  const std::string map = "/tmp/perf-" + std::to_string(memory::inner_number(pid)) + ".map";
  jit_ = std::make_unique<PerfMap>(pid == 0 ? std::string() : text_of_file(target.root() + map));
  LiveSamples live = pid == 0 ? LiveSamples(read, control) : LiveSamples(pid, control);
  if (!live.look() || !live.poll(*samples_)) return;
  for (const Sample& sample : samples_->samples()) {
    if (sample.freed_ns == 0 && sample.allocation >= 0) stack_at_[sample.address] = sample.allocation;
  }
}

std::string Origins::name_of(int location) const {
  const Location& where = samples_->locations()[static_cast<std::size_t>(location)];
  if (where.function >= 0) {
    const PythonFunction& function = samples_->functions()[static_cast<std::size_t>(where.function)];
    return function.name + " (" + file_name(function.file) + ")";
  }
  const bool has_file = where.place.module != kNoFile;
  const std::string module = has_file ? file_name(modules_->path(where.place.module)) : "JIT";
  if (module.compare(0, 10, "libbrimful") == 0) return "";
  const auto lines = stacks::names_of(*modules_, *jit_, where.place);
  const std::string function = lines.empty() || lines.back().function.empty() ? "?" : lines.back().function;
  return function + " (" + module + ")";
}

std::vector<std::string> Origins::names_of(int stack) const {
  std::vector<std::string> names;
  if (stack < 0) return names;
  for (const int location : samples_->stacks()[static_cast<std::size_t>(stack)].locations) {
    std::string name = name_of(location);
    if (!name.empty() && names.size() < kMostFrames) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> Origins::of(std::uint64_t address) const {
  const auto found = stack_at_.find(address);
  return names_of(found == stack_at_.end() ? -1 : found->second);
}

std::vector<std::string> Origins::allocation(std::uint64_t number) const {
  if (samples_ == nullptr) return {};
  for (const Sample& sample : samples_->samples()) {
    if (sample.number == number) return names_of(sample.allocation);
  }
  return {};
}

std::vector<std::string> Origins::release(std::uint64_t number) const {
  if (samples_ == nullptr) return {};
  for (const Sample& sample : samples_->samples()) {
    if (sample.number == number) return names_of(sample.release);
  }
  return {};
}

}  // namespace brimful::observer::stacks
