// SPDX-License-Identifier: MIT
//
// Command line and self-repetition of the stress programs; see options.h.
#include "options.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "random.h"
#include "report.h"

namespace brimful::stress {
namespace {

constexpr const char* kVariable = "BRIMFUL_CONF";

[[noreturn]] void print_usage(const char* program, const char* summary) {
  say("%s\nusage: %s [--threads N] [--ops N] [--seed S] [--seconds T] [--long] [--abort] [--no-self-test]\n"
      "       [--no-fork] [--sabotage KIND]\n",
      summary, program);
  std::exit(2);
}

uint64_t number(const char* text, const char* program, const char* summary) {
  char* end = nullptr;
  const uint64_t value = text == nullptr ? 0 : std::strtoull(text, &end, 0);
  if (text == nullptr || end == text || *end != '\0') print_usage(program, summary);
  return value;
}

void remember(const Options& options, char** arguments) {
  const char* configuration = std::getenv(kVariable);
  char line[1024];
  int length = std::snprintf(line, sizeof line, "%s=%s %s", kVariable, configuration == nullptr ? "" : configuration,
                             arguments[0]);
  for (char** argument = arguments + 1; *argument != nullptr && length < 800; ++argument) {
    length += std::snprintf(line + length, sizeof line - static_cast<size_t>(length), " %s", *argument);
  }
  std::snprintf(line + length, sizeof line - static_cast<size_t>(length), " --seed %llu",
                static_cast<unsigned long long>(options.seed));
  set_repeat_line(line);
}

}  // namespace

Options parse_options(int count, char** arguments, const char* summary) {
  Options options;
  const auto is = [](const char* argument, const char* name) { return std::strcmp(argument, name) == 0; };
  for (int i = 1; i < count; ++i) {
    const char* argument = arguments[i];
    const char* next = i + 1 < count ? arguments[i + 1] : nullptr;
    const auto value = [&] {
      ++i;
      return number(next, arguments[0], summary);
    };
    if (is(argument, "--threads")) {
      options.threads = static_cast<unsigned>(value());
    } else if (is(argument, "--ops")) {
      options.operations = value();
    } else if (is(argument, "--seed")) {
      options.seed = value();
    } else if (is(argument, "--seconds")) {
      options.seconds = static_cast<unsigned>(value());
    } else if (is(argument, "--long")) {
      options.long_run = true;
    } else if (is(argument, "--abort")) {
      abort_on_failure();
    } else if (is(argument, "--no-self-test")) {
      options.self_test = false;
    } else if (is(argument, "--no-fork")) {
      options.fork = false;
    } else if (is(argument, "--sabotage") && next != nullptr) {
      size_t kind = 0;
      while (kind < kSabotageCount && !is(next, kSabotageNames[kind])) ++kind;
      if (kind == kSabotageCount) print_usage(arguments[0], summary);
      options.sabotage = static_cast<Sabotage>(kind);
      ++i;
    } else {
      print_usage(arguments[0], summary);
    }
  }
  if (options.threads == 0 || options.threads > 250) print_usage(arguments[0], summary);
  if (options.seed == 0) {
    timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    options.seed = mix(static_cast<uint64_t>(time.tv_sec) * 1'000'000'000u + static_cast<uint64_t>(time.tv_nsec)) >> 16;
  }
  remember(options, arguments);
  return options;
}

bool front_end_is(const char* name) {
  const char* configuration = std::getenv(kVariable);
  if (configuration == nullptr) return false;
  char wanted[64];
  std::snprintf(wanted, sizeof wanted, "front_end:%s", name);
  return std::strstr(configuration, wanted) != nullptr;
}

int run_self(char** arguments, const char* const* extra, bool loud) {
  const char* all[64];
  size_t count = 0;
  for (; *arguments != nullptr && count < 40; ++arguments) all[count++] = *arguments;
  for (; *extra != nullptr && count < 63; ++extra) all[count++] = *extra;
  all[count] = nullptr;
  const pid_t child = fork();
  if (child == 0) {
    if (!loud) {
      const int null = open("/dev/null", O_WRONLY);
      dup2(null, STDOUT_FILENO);
      dup2(null, STDERR_FILENO);
    }
    execv("/proc/self/exe", const_cast<char* const*>(all));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) {
    say("stress: could not run a child\n");
    std::exit(1);
  }
  return status;
}

void run_in_both_modes(char** arguments) {
  const char* configuration = std::getenv(kVariable);
  if (configuration != nullptr && std::strstr(configuration, "front_end:") != nullptr) return;
  bool failed = false;
  bool skipped = false;
  for (const char* mode : {"thread", "percpu"}) {
    char value[512];
    std::snprintf(value, sizeof value, "%s%sfront_end:%s", configuration == nullptr ? "" : configuration,
                  configuration == nullptr || *configuration == '\0' ? "" : ",", mode);
    setenv(kVariable, value, 1);
    const char* const none[] = {nullptr};
    const int status = run_self(arguments, none, true);
    if (WIFSIGNALED(status)) say("stress: %s mode ended by signal %d\n", mode, WTERMSIG(status));
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    skipped = skipped || code == 77;
    failed = failed || (code != 0 && code != 77);
  }
  std::exit(failed ? 1 : skipped ? 77 : 0);
}

}  // namespace brimful::stress
