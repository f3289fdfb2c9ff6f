// SPDX-License-Identifier: MIT
//
// Numbers and switches by name: any name, any buffer of the caller's. A name that is turned into numbers and back means the
// same; a buffer that is too short is not written behind its end.
#include <errno.h>

#include <cstring>
#include <memory>
#include <string>

#include "brimful/brimful.h"
#include "config/options.h"
#include "control/names.h"
#include "input.h"
#include "oracle.h"

namespace brimful::fuzz {
namespace {

constexpr std::size_t kMostParts = 8;

void look_up(const std::string& name, Input& input) {
  std::size_t length = input.below(kMostParts + 1);
  const std::unique_ptr<std::size_t[]> mib(new std::size_t[length]());
  control::Name by_name = {};
  control::Name by_number = {};
  const bool is_known = control::find(name.c_str(), by_name);
  const int fault = control::to_mib(name.c_str(), mib.get(), &length);
  expect(is_known || fault == ENOENT, "an unknown name has no numbers");
  if (fault != 0) return;
  expect(control::from_mib(mib.get(), length, by_number), "numbers of a name are known");
  expect(by_name.entry == by_number.entry && by_name.which == by_number.which, "numbers mean what their name means");
  // And any numbers.
  for (std::size_t n = 0; n < length; ++n) mib[n] = input.number(2);
  control::from_mib(mib.get(), length, by_number);
}

void read(const std::string& name, Input& input) {
  std::size_t size = input.below(17);
  const std::unique_ptr<char[]> value(new char[size]);
  const bool asks = input.flag();
  brimful_get(name.c_str(), asks ? nullptr : value.get(), &size);
}

void write(const std::string& name, Input& input) {
  // A name of a file, which a number is not.
  if (name.find("dump") != std::string::npos || name.find("prefix") != std::string::npos) return;
  std::size_t size = input.below(17);
  const std::unique_ptr<char[]> value(new char[size]);
  for (std::size_t n = 0; n < size; ++n) value[n] = static_cast<char>(input.byte());
  brimful_set(name.c_str(), size == 0 && input.flag() ? nullptr : value.get(), size);
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  const std::string name = input.text_until('\n');
  brimful::fuzz::look_up(name, input);
  brimful::fuzz::read(name, input);
  brimful::fuzz::write(name, input);
  brimful::config::options = brimful::config::initial_options();
  return 0;
}
