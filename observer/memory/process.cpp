// SPDX-License-Identifier: MIT
//
// memory/process.h.
#include "memory/process.h"

#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace brimful::observer::memory {
namespace {

class ProcessTarget : public Target {
 public:
  explicit ProcessTarget(pid_t pid) : pid_(pid) {}

  bool open() {
    char path[4096];
    const ssize_t length = readlink(("/proc/" + std::to_string(pid_) + "/exe").c_str(), path, sizeof path);
    if (length > 0) {
      program_ = std::string(path, static_cast<std::size_t>(length));
    } else if (errno == EACCES || errno == EPERM) {
      error_ = "process " + std::to_string(pid_) + " may not be read: run this as its user, or as root";
      return false;
    } else {
      error_ = "there is no process " + std::to_string(pid_) + (errno == ENOENT ? "" : " that runs a program");
      return false;
    }
    std::vector<Mapping> found;
    if (!mappings(found)) return false;
    if (anatomy_.find(found, reader())) return true;
    return error_.empty() ? fail(anatomy_.error()) : false;
  }

  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (read_process(pid_, address, into, bytes)) return true;
    if (errno == EPERM)
      error_ = name() + " may not be read: run this as its user, or as root (kernel.yama.ptrace_scope?)";
    return false;
  }

  bool read_held(std::uint64_t address, void* into, std::size_t bytes) override { return read(address, into, bytes); }

  bool mappings(std::vector<Mapping>& into) override {
    into = mappings_of(pid_);
    if (!into.empty()) return true;
    error_ = "process " + std::to_string(pid_) + " has ended, or its memory may not be read by this user";
    return false;
  }

  std::string maps() override {
    std::ostringstream text;
    text << std::ifstream("/proc/" + std::to_string(pid_) + "/maps").rdbuf();
    return text.str();
  }

  [[nodiscard]] std::string root() const override { return "/proc/" + std::to_string(pid_) + "/root"; }

  // What the program gave epoll to remember (epoll_event.data), which is a pointer more often than not, and may be the only
  // one: /proc/PID/fdinfo shows it.
  std::vector<std::uint64_t> kernel_words() override {
    std::vector<std::uint64_t> words;
    std::error_code error;
    const std::string folder = "/proc/" + std::to_string(pid_) + "/fdinfo";
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) {
        unsigned long long data = 0;
        if (std::sscanf(line.c_str(), "tfd: %*d events: %*x data: %llx", &data) == 1) words.push_back(data);
      }
    }
    return words;
  }

  std::vector<ThreadState> threads() override { return {}; }
  [[nodiscard]] pid_t pid() const override { return pid_; }
  [[nodiscard]] std::string program() const override { return program_; }
  [[nodiscard]] std::string name() const override { return "process " + std::to_string(pid_) + " (" + program_ + ")"; }

 private:
  pid_t pid_;
  std::string program_;
};

}  // namespace

bool read_process(pid_t pid, std::uint64_t address, void* into, std::size_t bytes) {
  while (bytes > 0) {
    const iovec to = {into, bytes};
    const iovec from = {reinterpret_cast<void*>(address), bytes};
    const ssize_t got = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (got <= 0) {
      if (got == 0) errno = 0;
      return false;
    }
    into = static_cast<char*>(into) + got;
    address += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
  return true;
}

pid_t inner_number(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);) {
    // The numbers from the outermost namespace to its own.
    if (line.compare(0, 6, "NSpid:") == 0) return std::atoi(line.c_str() + line.rfind('\t') + 1);
  }
  return pid;
}

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> mappings;
  std::ifstream file("/proc/" + std::to_string(pid) + "/maps");
  for (std::string line; std::getline(file, line);) {
    Mapping mapping;
    unsigned long long start = 0;
    unsigned long long end = 0;
    char rights[8] = {};
    int behind = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx %7s %*s %*s %*s %n", &start, &end, rights, &behind) < 3) continue;
    mapping.start = start;
    mapping.end = end;
    mapping.is_readable = rights[0] == 'r';
    mapping.is_writable = rights[1] == 'w';
    mapping.is_executable = rights[2] == 'x';
    mapping.is_shared = rights[3] == 's';
    if (behind > 0) mapping.path = line.substr(static_cast<std::size_t>(behind));
    mappings.push_back(std::move(mapping));
  }
  return mappings;
}

std::unique_ptr<Target> open_process(pid_t pid, std::string* error) {
  auto target = std::make_unique<ProcessTarget>(pid);
  if (target->open()) return target;
  *error = target->error();
  return nullptr;
}

}  // namespace brimful::observer::memory
