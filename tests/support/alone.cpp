// SPDX-License-Identifier: MIT
//
// main() of the programs that hold many files of GoogleTest tests. Each test runs in a process of its own, so that no test
// sees the heap that another left and one that crashes takes no other with it.
//
//   unit_tests [FILE…]                 the tests of those files (no folder, no suffix), or all; a line for each test
//   unit_tests --alone SUITE.TEST      one test, in this process: for a debugger
//
// One program in place of one per file: what they share is linked once, and CTest starts one process per file where it
// started one per test. A process is started anew (posix_spawn), not forked: the library's handlers of fork() would
// start the allocator here, and no child would be fresh.
//
// The output of a test is shown when it fails or is skipped. The last line counts the tests (tools/test_report.py adds
// these counts up). Exit code: 0, 1 for a failure, 77 when all were skipped, 2 for a name that nothing has.
#include "alone.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace brimful::testing {
namespace {

constexpr unsigned kMostSeconds = 120;
constexpr int kSkipped = 77;

const Configured* newest = nullptr;

struct Test {
  std::string name;
  const ::testing::TestInfo* info;
};

// tests/unit/pages_limit_test.cpp is called pages_limit_test.
std::string_view stem_of(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  return path.substr(0, path.rfind('.'));
}

std::vector<Test> all_tests() {
  std::vector<Test> tests;
  const auto* all = ::testing::UnitTest::GetInstance();
  for (int i = 0; i < all->total_test_suite_count(); ++i) {
    const auto* suite = all->GetTestSuite(i);
    for (int j = 0; j < suite->total_test_count(); ++j) {
      const auto* info = suite->GetTestInfo(j);
      tests.push_back({std::string(suite->name()) + "." + info->name(), info});
    }
  }
  return tests;
}

int run_here(const std::string& name) {
  for (const Test& test : all_tests()) {
    if (test.name != name) continue;
    // No thread of the library's own runs while a test puts another operating system in its place.
    std::string conf = "background_thread:0";
    if (const char* own = Configured::conf_of(test.info->file())) conf.append(",").append(own);
    setenv("BRIMFUL_CONF", conf.c_str(), 1);
    ::testing::GTEST_FLAG(filter) = name;
    alarm(kMostSeconds);
    if (RUN_ALL_TESTS() != 0) return 1;
    return test.info->result()->Skipped() ? kSkipped : 0;
  }
  std::fprintf(stderr, "no test is called %s\n", name.c_str());
  return 2;
}

std::string contents_of(int file) {
  std::string text;
  char part[4096];
  lseek(file, 0, SEEK_SET);
  for (ssize_t got = 0; (got = read(file, part, sizeof part)) > 0;) text.append(part, static_cast<std::size_t>(got));
  return text;
}

// GoogleTest prints where a test was skipped, then why.
std::string reason_in(const std::string& output) {
  const std::size_t mark = output.find(": Skipped\n");
  if (mark == std::string::npos) return "";
  const std::size_t start = mark + std::strlen(": Skipped\n");
  return output.substr(start, output.find('\n', start) - start);
}

// Starts this program again for one test; returns how it ended (as wait() does) and what it printed.
int run_alone(const std::string& name, std::string* output) {
  const int file = memfd_create("output of a test", MFD_CLOEXEC);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, file, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, file, STDERR_FILENO);
  const char* arguments[] = {program_invocation_name, "--alone", name.c_str(), nullptr};
  pid_t child = 0;
  int status = -1;
  if (file < 0 ||
      posix_spawn(&child, "/proc/self/exe", &actions, nullptr, const_cast<char* const*>(arguments), environ) != 0 ||
      waitpid(child, &status, 0) != child) {
    std::perror("a test could not be started");
    status = -1;
  }
  posix_spawn_file_actions_destroy(&actions);
  *output = contents_of(file);
  close(file);
  return status;
}

struct Counts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
};

void run_and_count(const Test& test, Counts* counts) {
  const auto began = std::chrono::steady_clock::now();
  std::string output;
  const int status = run_alone(test.name, &output);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const char* name = test.name.c_str();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    ++counts->passed;
    std::printf("ok    %s (%.2f s)\n", name, seconds);
  } else if (WIFEXITED(status) && WEXITSTATUS(status) == kSkipped) {
    ++counts->skipped;
    std::printf("skip  %s: %s\n", name, reason_in(output).c_str());
  } else {
    ++counts->failed;
    std::printf("%s\nFAIL  %s (%.2f s), ", output.c_str(), name, seconds);
    if (WIFSIGNALED(status)) {
      std::printf("%s%s", strsignal(WTERMSIG(status)), WTERMSIG(status) == SIGALRM ? ": it took too long" : "");
    } else {
      std::printf("exit code %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    std::printf("; repeat it with: %s --alone %s\n", program_invocation_name, name);
  }
  std::fflush(stdout);
}

int run_files(const std::set<std::string_view>& files) {
  Counts counts;
  std::set<std::string> names;
  std::set<std::string_view> met;
  for (const Test& test : all_tests()) {
    const std::string_view stem = stem_of(test.info->file());
    if (!names.insert(test.name).second) {
      std::printf("FAIL  two tests are called %s; one would hide the other\n", test.name.c_str());
      ++counts.failed;
    }
    if (!files.empty() && !files.contains(stem)) continue;
    met.insert(stem);
    run_and_count(test, &counts);
  }
  for (const std::string_view file : files) {
    if (met.contains(file)) continue;
    std::printf("no test comes from a file %.*s\n", static_cast<int>(file.size()), file.data());
    return 2;
  }
  std::printf("%d passed, %d failed, %d skipped\n", counts.passed, counts.failed, counts.skipped);
  if (counts.failed != 0) return 1;
  return counts.passed == 0 ? kSkipped : 0;
}

}  // namespace

Configured::Configured(const char* file, const char* conf) : file_(file), conf_(conf), next_(newest) { newest = this; }

const char* Configured::conf_of(const char* file) {
  for (const Configured* one = newest; one != nullptr; one = one->next_) {
    if (std::strcmp(one->file_, file) == 0) return one->conf_;
  }
  return nullptr;
}

}  // namespace brimful::testing

int main(int count, char** arguments) {
  ::testing::InitGoogleTest(&count, arguments);
  if (count == 3 && std::strcmp(arguments[1], "--alone") == 0) return brimful::testing::run_here(arguments[2]);
  return brimful::testing::run_files(std::set<std::string_view>(arguments + 1, arguments + count));
}
