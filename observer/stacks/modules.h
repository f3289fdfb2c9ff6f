// SPDX-License-Identifier: MIT
//
// What code lies where in a process: /proc/PID/maps, or the copy of it that a prof_file holds, turned into modules.
//
// An address is resolved to its module when the stack is unwound, not when it is named: by then the process may have
// unloaded the file. A file is believed to be the one that is mapped only if its build-id is that of the memory, or,
// where the memory isn't there to read (a prof_file), if it is the same inode and hasn't been changed since; a file of
// another build would give names that are wrong and look right.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "memory/mapping.h"
#include "stacks/module.h"

namespace brimful::observer::stacks {

constexpr int kNoFile = -1;  // code that belongs to no file: what a JIT wrote

// Code at an address of the process.
struct Place {
  int module;             // index for Modules::module, or kNoFile
  std::uint64_t address;  // the file's own; the process's for kNoFile
};

class Modules {
 public:
  // `root` is an open folder that the paths of the maps are below (/proc/PID/root, so that containers work), `changed`
  // the time (seconds since 1970) after which a file without a build-id to compare must not have been changed; 0: any.
  Modules(int root, memory::Read read, std::int64_t changed) : root_(root), read_(std::move(read)), changed_(changed) {}
  ~Modules();
  Modules(const Modules&) = delete;
  Modules& operator=(const Modules&) = delete;

  // Takes the text of /proc/PID/maps. Modules that are known keep their index.
  void update(const std::string& maps);

  // False if no executable mapping of the last maps holds the address.
  bool find(std::uint64_t address, Place& place) const;

  // Null if the file could not be read or was another one: such code has no names and no unwind tables.
  const Module* module(int index) const {
    return index < 0 ? nullptr : known_[static_cast<std::size_t>(index)].module.get();
  }
  const std::string& path(int index) const { return known_[static_cast<std::size_t>(index)].path; }
  int count() const { return static_cast<int>(known_.size()); }

  // Bytes of code at an address of the process: from the file, else from memory.
  bool read_code(std::uint64_t address, void* into, std::size_t size) const;

  // The process's own address of a file's address; of the mapping that was seen last.
  std::uint64_t bias(int index) const { return known_[static_cast<std::size_t>(index)].bias; }

 private:
  struct Mapping {
    std::uint64_t start;
    std::uint64_t end;
    int module;
  };
  struct Known {
    std::string path;
    std::uint64_t inode;
    std::uint64_t bias;
    std::unique_ptr<Module> module;
  };
  struct Parsed;
  int known(const Parsed& mapping, std::uint64_t first_page);
  std::unique_ptr<Module> open(const Parsed& mapping, std::uint64_t first_page) const;
  std::unique_ptr<Module> open_vdso(const Parsed& mapping) const;
  std::string build_id_in_memory(std::uint64_t header) const;

  int root_;
  memory::Read read_;
  std::int64_t changed_;
  std::vector<Mapping> code_;  // by start
  std::vector<Known> known_;
};

}  // namespace brimful::observer::stacks
