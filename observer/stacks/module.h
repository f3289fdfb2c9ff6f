// SPDX-License-Identifier: MIT
//
// One file of code that a process has mapped: its unwind tables and its names.
//
// A module lies at bias 0 here, so that an address in it is the file's own and stays right when the process unloads the
// file and maps another one at the same place. elfutils (libdwfl) reads symbol tables, compressed ones (.gnu_debugdata)
// and separate debug files included; it was taken because Debian keeps it, it reads all that compilers write, and it
// verifies the build-id of a debug file before it believes it. Debug files are looked for in local folders only: an
// observer of a process that is in trouble doesn't wait for a network.
#pragma once

#include <elfutils/libdwfl.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace brimful::observer::stacks {

// One line of a stack as a reader sees it. An address has several where the compiler inlined calls, innermost first.
struct Line {
  std::string function;
  std::string file;
  int line = 0;
};

class Module {
 public:
  // `descriptor` is the open file, owned from here on. Null if it is no ELF file for this machine.
  static std::unique_ptr<Module> open(const std::string& path, int descriptor);
  ~Module();
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& path() const { return path_; }
  const std::string& build_id() const { return build_id_; }  // hexadecimal; empty if the file has none

  // What has to be subtracted from an address in a mapping of `offset` in the file that begins at `start` to get the
  // file's own. False if no executable segment holds the offset.
  bool bias_of(std::uint64_t start, std::uint64_t offset, std::uint64_t& bias) const;

  // The file's bytes at its own address `address`; false where a segment doesn't hold them.
  bool read(std::uint64_t address, void* into, std::size_t size) const;

  // .eh_frame and .debug_frame, either of which may be null.
  Dwarf_CFI* eh_frame() const { return eh_frame_; }
  Dwarf_CFI* debug_frame() const { return debug_frame_; }

  // The functions at an address, innermost first; empty if no symbol and no debug information covers it.
  std::vector<Line> lines(std::uint64_t address) const;

  // Address and size of a symbol of that exact name; false if there is none.
  bool symbol(const char* name, std::uint64_t& address, std::uint64_t& size) const;

 private:
  Module(std::string path, int descriptor) : path_(std::move(path)), descriptor_(descriptor) {}
  bool load();
  bool symbol_name(std::uint64_t address, std::string& name) const;

  std::string path_;
  int descriptor_;
  std::string build_id_;
  Dwfl* session_ = nullptr;
  Dwfl_Module* module_ = nullptr;
  Dwarf_CFI* eh_frame_ = nullptr;
  Dwarf_CFI* debug_frame_ = nullptr;
  struct Segment {
    std::uint64_t address;
    std::uint64_t offset;
    std::uint64_t size;
    bool executable;
  };
  std::vector<Segment> segments_;
};

}  // namespace brimful::observer::stacks
