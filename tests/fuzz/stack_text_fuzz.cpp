// SPDX-License-Identifier: MIT
//
// Reports with stacks: /proc/self/maps is the input's, the words of the stack are places behind calls of this program, which a
// mapping of the input may or may not hold. What is written are lines, whatever a path is made of.
#include "os/stack_text.h"

#include <cstring>
#include <string>

#include "oracle.h"
#include "system_calls.h"

namespace brimful::fuzz {
namespace {

__attribute__((noinline)) std::uint64_t behind_call() {
  return reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
}

// Texts can't know where this program lies: '@' stands for the address of its code, to the page, '#' for the page behind.
std::string with_addresses(const std::string& text, std::uint64_t code) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string result;
  for (const char c : text) {
    if (c != '@' && c != '#') {
      result += c;
      continue;
    }
    const std::uint64_t value = (code & ~std::uint64_t{4095}) + (c == '#' ? 4096 : 0);
    for (int shift = 44; shift >= 0; shift -= 4) result += kDigits[value >> shift & 15];
  }
  return result;
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  std::uint64_t words[16];
  const std::uint64_t code = brimful::fuzz::behind_call();
  const std::size_t count = input.below(17);
  for (std::size_t n = 0; n < count; ++n) words[n] = input.flag() ? code : code + input.number(2) - 32768;
  const std::uint8_t read_bytes = input.byte();
  brimful::fuzz::Script script;
  script.set_read_bytes(read_bytes == 0 ? ~std::size_t{0} : read_bytes);
  script.add_file(brimful::fuzz::with_addresses(input.rest(), code));
  const brimful::os::StackWords stacks[] = {{"called from:", code, 0, words, count},
                                            {"freed from:", 0, 0, words, count / 2}};
  brimful::os::report_stacks(stacks, 2);
  brimful::fuzz::expect_lines(script.written());
  return 0;
}
