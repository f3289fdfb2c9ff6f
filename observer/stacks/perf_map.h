// SPDX-License-Identifier: MIT
//
// /tmp/perf-PID.map, in which a JIT names what it generates: a line with start, size (both hexadecimal) and name. perf made
// the format; java (-XX:+DumpPerfMapAtExit, jcmd PID Compiler.perfmap), node (--perf-basic-prof) and python (-X perf)
// write it. A JIT that reuses an address adds a line, so of lines that overlap the last one counts.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace brimful::observer::stacks {

class PerfMap {
 public:
  // Takes the text of such a file; lines that can't be read are left out.
  explicit PerfMap(const std::string& text);

  // Null if no function covers the address.
  const std::string* name(std::uint64_t address) const;
  std::size_t size() const { return functions_.size(); }

 private:
  struct Function {
    std::uint64_t end;
    std::string name;
  };
  void add(std::uint64_t start, std::uint64_t end, std::string name);

  std::map<std::uint64_t, Function> functions_;  // by start; none overlap
};

}  // namespace brimful::observer::stacks
