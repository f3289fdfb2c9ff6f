// SPDX-License-Identifier: MIT
//
// Files of samples (prof_file): any bytes behind the head, and records whose stacks lead anywhere. What is believed is unwound and
// printed, as `brimful-observer samples FILE` does it.
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "input.h"
#include "meta/sample_record.h"
#include "oracle.h"
#include "stacks/sample_file.h"
#include "stacks/session.h"

namespace brimful::fuzz {
namespace {

void add_section(std::string& file, const char* name, const std::string& content, std::uint64_t length) {
  std::string padded = name;
  padded.resize(8, ' ');
  file += padded;
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  file += content;
  file.resize((file.size() + 7) / 8 * 8);
}

// Zeros, of which some words are others.
std::string record(Input& input, std::size_t bytes) {
  std::string content(bytes, '\0');
  for (std::size_t n = input.below(12); n > 0 && bytes >= 8; --n) {
    const std::size_t at = input.number(2) % (bytes - 7) / 4 * 4;
    const std::uint64_t value = input.flag() ? input.number(1) : input.number(8);
    std::memcpy(content.data() + at, &value, sizeof value);
  }
  return content;
}

std::string sample_file(Input& input) {
  std::string file = input.below(32) == 0 ? input.text(32) : std::string("brimful samples 1\n");
  file.resize(32);
  while (!input.is_empty()) {
    const std::uint8_t what = input.byte() % 4;
    std::string content;
    if (what == 0) content = record(input, sizeof(meta::SampleControl) - (input.below(8) == 0 ? 8 : 0));
    if (what == 1) {
      content = record(input, sizeof(meta::SampleRecord) + input.below(3) * 64);
      // State and number, else it is empty.
      content[offsetof(meta::SampleRecord, state)] = static_cast<char>(1 + input.below(2));
      content[offsetof(meta::SampleRecord, number)] = static_cast<char>(input.byte());
    }
    if (what == 2) content = input.text(input.below(40));
    if (what == 3) {
      std::string path = "/nowhere/program";
      const std::string maps = "400000-500000 r-xp 0 0:0 7 " + path + "\n" + input.rest();
      add_section(file, "MAPS", maps, 0);
      return file;
    }
    static constexpr const char* kNames[] = {"CONTROL", "SAMPLE", "OTHER"};
    add_section(file, kNames[what], content, input.below(16) == 0 ? input.number(8) : content.size());
  }
  return file;
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using brimful::fuzz::expect;
  brimful::fuzz::Input input(data, size);
  const std::string bytes = brimful::fuzz::sample_file(input);
  char path[] = "/tmp/brimful-fuzz-samples-XXXXXX";
  const int file = mkstemp(path);
  expect(file >= 0 && write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
         "a file is written");
  close(file);
  std::string why;
  brimful::observer::stacks::Report report;
  const auto session = brimful::observer::stacks::Session::of_file(path, report, why);
  unlink(path);
  expect(session != nullptr || !why.empty(), "a file that can't be read is refused with a reason");
  return 0;
}
