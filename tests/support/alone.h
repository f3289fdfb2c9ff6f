// SPDX-License-Identifier: MIT
//
// What a file of GoogleTest tests says about itself to the program it is part of (alone.cpp).
#pragma once

namespace brimful::testing {

// The value of BRIMFUL_CONF for every test of one file: `const Configured thread_mode(__BASE_FILE__, "front_end:thread");`
// In a header, __BASE_FILE__ is the test file that includes it, so the object has to be `static`.
class Configured {
 public:
  // Both texts live as long as the program.
  Configured(const char* file, const char* conf);

  // The value for a file, or nullptr.
  [[nodiscard]] static const char* conf_of(const char* file);

 private:
  const char* file_;
  const char* conf_;
  const Configured* next_;
};

}  // namespace brimful::testing
