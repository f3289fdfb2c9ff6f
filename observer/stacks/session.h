// SPDX-License-Identifier: MIT
//
// Watching the samples of one process from one moment to another.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>

#include "stacks/collect.h"
#include "stacks/modules.h"
#include "stacks/perf_map.h"

namespace brimful::observer::stacks {

struct Request {
  pid_t process = 0;
  std::uint64_t control = 0;      // address of the control block
  double seconds = 0;             // 0: until the process ends
  std::uint64_t interval = 0;     // bytes from one sample to the next, where sampling is off
  bool from_start = false;        // sampling was on before the program's first allocation
  bool ignore_interrupt = false;  // Ctrl-C is meant for the program; its end is what ends us
};

// What is told beside the samples themselves.
struct Report {
  pid_t process = 0;
  std::string program;         // path of the file
  std::string name;            // what ps calls the process; empty for a file
  std::uint64_t began_ns = 0;  // CLOCK_MONOTONIC, as in the records
  std::uint64_t ended_ns = 0;
  double began_unix = 0;
  std::uint64_t interval = 0;
  bool complete = false;
  std::string ended;  // "time", "interrupt", "exit", "file"
  std::uint64_t missed = 0;
  std::uint64_t lost = 0;
  std::uint64_t allocated_bytes = 0;  // that the library estimates itself, of all samples, missed ones included
};

// A process or a file with everything that names need.
class Session {
 public:
  // Null with a reason in `why` where the process can't be read.
  static std::unique_ptr<Session> of_process(pid_t process, std::string& why);

  // The samples of a file that prof_file wrote. Null likewise.
  static std::unique_ptr<Session> of_file(const std::string& path, Report& report, std::string& why);

  // Watches; false with a reason in `why` if not one look was possible.
  bool watch(const Request& request, Report& report, std::string& why);

  // Adds what the process itself wrote when it ended. False if the file isn't there or can't be read.
  bool add_file(const std::string& path, Report& report, std::string& why);

  const Samples& samples() const { return *samples_; }
  const Modules& modules() const { return *modules_; }
  PerfMap perf_map() const;

 private:
  Session() = default;
  void refresh_mappings();

  pid_t process_ = 0;
  int root_ = -1;          // the process's root folder, which stays readable when it has ended
  int inner_process_ = 0;  // its number in its own container, which perf maps are named after
  std::string program_;
  std::string name_;
  std::unique_ptr<Modules> modules_;
  std::unique_ptr<Samples> samples_;
};

// Writes samples, stacks and names as JSON to standard output.
void print(const Session& session, const Report& report);

// Whether the process runs at all (not even as a zombie).
bool is_running(pid_t process);

}  // namespace brimful::observer::stacks
