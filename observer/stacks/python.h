// SPDX-License-Identifier: MIT
//
// Which Python function a frame of CPython's interpreter was running.
//
// The interpreter is one C function, _PyEval_EvalFrameDefault, and somewhere in its registers or its part of the stack
// is the address of the next bytecode. That lies inside the code object, so the code object is found by going backwards
// from there to a word that points to PyCode_Type and whose size covers the address. This is what was so at the moment
// of the sample, unlike the interpreter's chain of frames, which py-spy follows in a stopped process: when a sample is
// read, those frames have long been used for other calls. The price: of Python functions that call each other without
// C in between (3.11 runs these in one C frame) only the innermost is seen.
//
// Code objects that contradict each other, a code object that is gone, or a version whose layout is not known give no
// name. From 3.12 on, `python3 -X perf` writes a perf map, which gives all of them.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_set>

#include "stacks/modules.h"
#include "stacks/unwind_rows.h"

namespace brimful::observer::stacks {

struct PythonFunction {
  std::string name;
  std::string file;
  int line = 0;  // where the function begins
};

class Python {
 public:
  Python(const Modules& modules, memory::Read read) : modules_(modules), read_(std::move(read)) {}

  // Whatever was looked at in vain may have come to be code. To be called now and then.
  void forget() { in_vain_.clear(); }

  // `words` is the frame's part of the stack. Null if the place is not the interpreter's or nothing is sure.
  const PythonFunction* function(const Place& place, const Registers& registers, std::span<const std::uint64_t> words);

 private:
  struct Interpreter {
    bool usable = false;
    std::uint64_t begin = 0;  // of the C function, in the file
    std::uint64_t end = 0;
    std::uint64_t code_type = 0;  // in the process
    std::uint64_t text_type = 0;
  };
  const Interpreter& interpreter(int module);
  // Address of the code object whose bytecode holds `address`, or 0.
  std::uint64_t code_around(const Interpreter& interpreter, std::uint64_t address);
  bool is_code(const Interpreter& interpreter, std::uint64_t object, std::uint64_t address) const;
  bool text(const Interpreter& interpreter, std::uint64_t object, std::string& into) const;

  const Modules& modules_;
  memory::Read read_;
  std::map<int, Interpreter> interpreters_;
  std::map<std::uint64_t, PythonFunction> functions_;  // by code object
  std::map<std::uint64_t, std::uint64_t> ends_;        // of the bytecode of known code objects
  std::unordered_set<std::uint64_t> in_vain_;          // words that lead to no code object
};

}  // namespace brimful::observer::stacks
