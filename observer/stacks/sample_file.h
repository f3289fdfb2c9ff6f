// SPDX-License-Identifier: MIT
//
// The file that prof_file makes a program write when it ends: its control block, its records and its mappings.
//
//   "brimful samples 1\n", zeros up to 32 bytes
//   then sections: 8 letters of a name, filled with spaces; 8 bytes of length; the content, filled to 8 bytes
//     CONTROL  meta::SampleControl
//     SAMPLE   meta::SampleRecord and the copies of its stacks; any number of these
//     MAPS     the text of /proc/self/maps; the last one, up to the end of the file
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brimful::observer::stacks {

class SampleFile {
 public:
  // False with a reason in `why`: no such file, another kind of file, or one that ends too early.
  bool load(const std::string& path, std::string& why);

  const std::vector<std::span<const unsigned char>>& slots() const { return slots_; }
  const std::string& maps() const { return maps_; }
  const std::string& program() const { return program_; }
  std::int64_t written() const { return written_; }  // seconds since 1970
  std::uint64_t taken() const { return taken_; }
  std::uint64_t lost() const { return lost_; }
  std::uint64_t allocated_bytes() const { return allocated_bytes_; }

 private:
  bool read_control(std::span<const unsigned char> content, std::string& why);

  std::vector<unsigned char> bytes_;
  std::vector<std::span<const unsigned char>> slots_;
  std::string maps_;
  std::string program_;
  std::int64_t written_ = 0;
  std::uint64_t taken_ = 0;
  std::uint64_t lost_ = 0;
  std::uint64_t allocated_bytes_ = 0;
};

}  // namespace brimful::observer::stacks
