// SPDX-License-Identifier: MIT
//
// The library's protocols on the weak memory: each scenario is a few calls of two or three threads, made of the functions of
// src/ themselves. What a program does with an object is a plain write to its first word: so an object that is handed out
// without its last use being known is a race. check() looks for what is lost.
//
//   protocols                         all scenarios, each in a process of its own
//   protocols --list                  their names
//   protocols NAME [P S]              one, with other bounds: preemptions, stale accesses
//     --sites                         and where it has atomic accesses
//     --weaken ADDRESS[=ORDER]        with one of them relaxed (or another order, as a number)
//     --trace                         and the steps that led to the fault
//
// Exit code: 0 no fault, 1 a fault was found, 2 not every run was tried.
#include <sys/single_threaded.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "explorer.h"
#include "world.h"

namespace brimful::weak {
namespace {

constexpr std::uint64_t kMostRuns = 3'000'000;

std::vector<Scenario> all_scenarios() {
  std::vector<Scenario> all;
  for (const Scenario& scenario : slab_scenarios()) all.push_back(scenario);
  for (const Scenario& scenario : other_scenarios()) all.push_back(scenario);
  return all;
}

int run(const Scenario& scenario, Bounds bounds, bool sites, bool trace) {
  const Result result = explore(scenario, bounds, kMostRuns);
  std::printf("%s  %8lu runs  %8lu states  %s%s%s\n",
              !result.fault.empty() ? "FAULT "
              : result.is_complete  ? "ok    "
                                    : "PART  ",
              static_cast<unsigned long>(result.runs), static_cast<unsigned long>(result.states), scenario.name,
              result.fault.empty() ? "" : ": ", result.fault.c_str());
  if (trace && !result.fault.empty()) print_trace();
  if (sites) print_sites();
  std::fflush(stdout);
  return !result.fault.empty() ? 1 : result.is_complete ? 0 : 2;
}

}  // namespace
}  // namespace brimful::weak

int main(int count, char** arguments) {
  using namespace brimful::weak;
  setenv("BRIMFUL_CONF", "front_end:thread,purge_delay_ms:-1,guards:1000000000", 1);
  __libc_single_threaded = 0;  // the threads are fibers, of which the C library knows nothing
  const char* name = nullptr;
  bool sites = false;
  bool trace = false;
  unsigned numbers[2];
  unsigned given = 0;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--list") == 0) {
      for (const Scenario& scenario : all_scenarios()) std::printf("%s\n", scenario.name);
      return 0;
    }
    if (std::strcmp(arguments[i], "--sites") == 0) {
      sites = true;
    } else if (std::strcmp(arguments[i], "--trace") == 0) {
      trace = true;
      trace_faults();
    } else if (std::strcmp(arguments[i], "--weaken") == 0 && i + 1 < count) {
      char* end = nullptr;
      const std::uintptr_t site = std::strtoul(arguments[++i], &end, 16);
      weaken(site, *end == '=' ? static_cast<Order>(std::atoi(end + 1)) : Order::kRelaxed);
    } else if (name == nullptr) {
      name = arguments[i];
    } else if (given < 2) {
      numbers[given++] = static_cast<unsigned>(std::atoi(arguments[i]));
    }
  }
  int worst = 0;
  for (const Scenario& scenario : all_scenarios()) {
    if (name != nullptr && std::strcmp(name, scenario.name) != 0) continue;
    const Bounds bounds = given == 2 ? Bounds{numbers[0], numbers[1]} : scenario.bounds;
    if (name != nullptr) return run(scenario, bounds, sites, trace);
    std::fflush(stdout);
    // Begun anew, because a fork() is something that the library notices.
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", arguments[0], scenario.name, nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (!WIFEXITED(status)) std::printf("FAULT   %s: signal %d\n", scenario.name, WTERMSIG(status));
    if (code > worst) worst = code;
  }
  return worst;
}
