// SPDX-License-Identifier: MIT
//
// topology: the allocator on machines that are not here. Runs every workload on a simulated machine (machine.h), checks
// that nothing is damaged or lost, and prints what happened per 1000 operations.
//
//     topology [--cpus N] [--nodes N] [--rounds N] [--seed N] [--front-end thread|percpu] [--workload NAME] [--json] [--blind]
//
// With --blind the allocator is not told that there are nodes: the other half of a comparison.
//
// It exists twice: with the library as it ships (its assembly, so the number of slow paths is what programs see), and as
// topology_traffic, whose library is watched access by access (traffic.h). docs/scaling.md is made from both.
//
// The exit code is 1 if an object lost its stamp, if the heap's count of live bytes is not the program's, or if memory
// is left with anybody after all was freed and the CPUs went idle.
#include <getopt.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "machine.h"
#include "pages/heap.h"
#include "report.h"
#include "slots/front_end.h"
#include "slots/thread.h"
#include "traffic.h"
#include "workloads.h"

namespace brimful::topology {
namespace {

constexpr unsigned kMostRounds = 1000000;
// Before anything is counted, every CPU gets its slabs and fills its queues. Traffic is watched from the second part on,
// so that it is known who wrote what.
constexpr unsigned kUnwatchedRounds = 112;
constexpr unsigned kWatchedRounds = 16;

struct Arguments {
  Setting setting = {256, 8, 400, 1, "thread"};
  const char* workload = nullptr;
  bool json = false;
  bool blind = false;
};

[[noreturn]] void refuse(const char* what) {
  std::fprintf(stderr, "topology: %s\n", what);
  std::exit(2);
}

unsigned number(const char* text, unsigned most, const char* name) {
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*text == '\0' || *end != '\0' || value == 0 || value > most) {
    std::fprintf(stderr, "topology: --%s wants a number from 1 to %u\n", name, most);
    std::exit(2);
  }
  return static_cast<unsigned>(value);
}

Arguments parse(int argc, char** argv) {
  constexpr option kLong[] = {{"cpus", required_argument, nullptr, 'c'},
                              {"nodes", required_argument, nullptr, 'n'},
                              {"rounds", required_argument, nullptr, 'r'},
                              {"seed", required_argument, nullptr, 's'},
                              {"front-end", required_argument, nullptr, 'f'},
                              {"workload", required_argument, nullptr, 'w'},
                              {"json", no_argument, nullptr, 'j'},
                              {"blind", no_argument, nullptr, 'b'},
                              {nullptr, 0, nullptr, 0}};
  Arguments result;
  bool nodes_given = false;
  for (int c = 0; (c = getopt_long(argc, argv, "", kLong, nullptr)) != -1;) {
    switch (c) {
      case 'c':
        result.setting.cpus = number(optarg, Machine::kMostCpus, "cpus");
        break;
      case 'n':
        result.setting.nodes = number(optarg, Machine::kMostCpus, "nodes");
        nodes_given = true;
        break;
      case 'r':
        result.setting.rounds = number(optarg, kMostRounds, "rounds");
        break;
      case 's':
        result.setting.seed = number(optarg, ~0U, "seed");
        break;
      case 'f':
        result.setting.front_end = optarg;
        break;
      case 'w':
        result.workload = optarg;
        break;
      case 'j':
        result.json = true;
        break;
      case 'b':
        result.blind = true;
        break;
      default:
        std::exit(2);
    }
  }
  const char* front_end = result.setting.front_end;
  if (std::strcmp(front_end, "thread") != 0 && std::strcmp(front_end, "percpu") != 0) refuse("no such front end");
  if (!nodes_given && result.setting.nodes > result.setting.cpus) result.setting.nodes = result.setting.cpus;
  if (result.setting.nodes > result.setting.cpus) refuse("more nodes than CPUs");
  return result;
}

class Checker {
 public:
  void expect(bool holds, const char* workload, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "topology: %s: %s\n", workload, what);
    failed_ = true;
  }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

// Bytes of the held objects, as the heap counts them.
std::uint64_t live_bytes(const Program& program) {
  std::uint64_t sum = 0;
  const auto add = [&sum](const auto& objects) {
    for (const Object& object : objects) sum += kSizeClasses[class_of(object.bytes)].bytes;
  };
  for (const Objects& objects : program.held) add(objects);
  for (const auto& objects : program.inbox) add(objects);
  return sum;
}

Result run(const Workload& workload, Machine& machine, const Setting& setting, Checker& checker) {
  Program program(machine, setting.seed);
  Result result = {};
  result.workload = workload.name;
  workload.run(program, kUnwatchedRounds);
  traffic::begin(machine);
  workload.run(program, kWatchedRounds);
  traffic::forget_counts();
  const slots::EventCounts before = slots::count_events();
  const std::uint64_t operations_before = program.operations();
  workload.run(program, setting.rounds);
  machine.leave();
  result.operations = program.operations() - operations_before;
  result.traffic = traffic::counts();
  traffic::end();
  result.events = slots::count_events();
  for (std::size_t i = 0; i < slots::kEventCount; ++i) result.events[i] -= before[i];
  result.loaded = take_census();
  checker.expect(result.loaded.live_bytes == live_bytes(program), workload.name, "the heap counts other live objects");

  program.free_all();
  machine.leave();
  result.freed = take_census();
  checker.expect(result.events[static_cast<std::size_t>(slots::Event::kSharedObject)] == 0, workload.name,
                 "an object came from a shared slab, although no lock is ever taken");
  checker.expect(program.is_sound(), workload.name, "an object has lost its stamp");
  checker.expect(program.live_objects() == 0 && result.freed.live_bytes == 0, workload.name, "live objects are left");

  machine.go_idle();
  result.idle = take_census();
  checker.expect(result.idle.kept_objects == 0, workload.name, "idle CPUs keep frees that nobody was told of");
  checker.expect(result.idle.owned_slabs == result.idle.most_owned, workload.name, "idle CPUs keep slabs");
  machine.shut_down();
  checker.expect(take_census().slabs == 0, workload.name, "slabs are left when no CPU works any more");
  return result;
}

}  // namespace
}  // namespace brimful::topology

int main(int argc, char** argv) {
  using namespace brimful::topology;
  const Arguments arguments = parse(argc, argv);
  const std::string options = std::string("front_end:") + arguments.setting.front_end;
  setenv("BRIMFUL_CONF", options.c_str(), 1);
  Machine machine(arguments.setting.cpus, arguments.setting.nodes);
  if (arguments.blind) machine.hide_nodes();
  const bool per_cpu = std::strcmp(arguments.setting.front_end, "percpu") == 0;
  if (per_cpu && !brimful::slots::is_per_cpu()) {
    std::fputs("topology: this kernel or this build has no restartable sequences\n", stderr);
    return 77;
  }
  Checker checker;
  std::vector<Result> results;
  for (const Workload& workload : kWorkloads) {
    if (arguments.workload != nullptr && std::strcmp(arguments.workload, workload.name) != 0) continue;
    results.push_back(run(workload, machine, arguments.setting, checker));
  }
  if (results.empty()) refuse("no such workload");
  (arguments.json ? print_json : print_table)(stdout, arguments.setting, results);
  return checker.failed() ? 1 : 0;
}
