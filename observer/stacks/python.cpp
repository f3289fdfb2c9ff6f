// SPDX-License-Identifier: MIT
#include "stacks/python.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace brimful::observer::stacks {

namespace {

// Offsets in CPython 3.11 (Include/cpython/code.h, unicodeobject.h); they change with each minor version.
constexpr std::uint64_t kVersion = 0x030b;
constexpr std::uint64_t kType = 8;
constexpr std::uint64_t kSize = 16;
constexpr std::uint64_t kFirstLine = 72;
constexpr std::uint64_t kFile = 112;
constexpr std::uint64_t kQualifiedName = 128;
constexpr std::uint64_t kBytecode = 184;
constexpr std::uint64_t kTextLength = 16;
constexpr std::uint64_t kTextState = 32;
constexpr std::uint64_t kAsciiText = 48;
constexpr std::uint64_t kOtherText = 72;

constexpr std::uint64_t kMostBytecode = 64 << 10;
constexpr std::uint64_t kMostText = 1024;
constexpr std::size_t kChunk = 4096;
constexpr unsigned kHolders[] = {kBx, kBp, kR12, kR12 + 1, kR12 + 2, kR12 + 3};

void append_utf8(std::string& text, std::uint32_t letter) {
  if (letter < 0x80) {
    text += static_cast<char>(letter);
  } else if (letter < 0x800) {
    text += static_cast<char>(0xc0 | letter >> 6);
    text += static_cast<char>(0x80 | (letter & 0x3f));
  } else if (letter < 0x10000) {
    text += static_cast<char>(0xe0 | letter >> 12);
    text += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (letter & 0x3f));
  } else {
    text += static_cast<char>(0xf0 | letter >> 18);
    text += static_cast<char>(0x80 | (letter >> 12 & 0x3f));
    text += static_cast<char>(0x80 | (letter >> 6 & 0x3f));
    text += static_cast<char>(0x80 | (letter & 0x3f));
  }
}

}  // namespace

const Python::Interpreter& Python::interpreter(int index) {
  const auto [at, fresh] = interpreters_.try_emplace(index);
  Interpreter& found = at->second;
  const Module* module = modules_.module(index);
  if (!fresh || module == nullptr || !read_) return found;
  std::uint64_t size = 0;
  std::uint64_t version_at = 0;
  std::uint64_t version = 0;
  std::uint64_t ignored = 0;
  if (!module->symbol("_PyEval_EvalFrameDefault", found.begin, size)) return found;
  if (!module->symbol("Py_Version", version_at, ignored) || !module->read(version_at, &version, sizeof version) ||
      version >> 16 != kVersion) {
    return found;
  }
  found.end = found.begin + size;
  found.usable = module->symbol("PyCode_Type", found.code_type, ignored) &&
                 module->symbol("PyUnicode_Type", found.text_type, ignored);
  found.code_type += modules_.bias(index);
  found.text_type += modules_.bias(index);
  return found;
}

bool Python::is_code(const Interpreter& interpreter, std::uint64_t object, std::uint64_t address) const {
  std::uint64_t head[3];  // references, type, units of bytecode
  if (!read_(object, head, sizeof head)) return false;
  return head[0] > 0 && head[0] < 1ULL << 40 && head[1] == interpreter.code_type && head[2] < kMostBytecode &&
         address >= object + kBytecode && address < object + kBytecode + head[2] * 2;
}

std::uint64_t Python::code_around(const Interpreter& interpreter, std::uint64_t address) {
  auto known = ends_.upper_bound(address);
  if (known != ends_.begin() && address < std::prev(known)->second) {
    const std::uint64_t object = std::prev(known)->first;
    return is_code(interpreter, object, address) ? object : 0;
  }
  std::uint64_t words[kChunk / 8];
  std::uint64_t until = address & ~7ULL;
  for (std::uint64_t scanned = 0; scanned < kMostBytecode && until > kChunk; scanned += kChunk) {
    const std::uint64_t from = until - kChunk;
    if (!read_(from, words, sizeof words)) return 0;
    for (std::size_t i = kChunk / 8; i-- > 0;) {
      const std::uint64_t object = from + i * 8 - kType;
      if (words[i] != interpreter.code_type) continue;
      // The nearest one decides: what lies behind it is not the bytecode of one before it.
      return is_code(interpreter, object, address) ? object : 0;
    }
    until = from;
  }
  return 0;
}

bool Python::text(const Interpreter& interpreter, std::uint64_t object, std::string& into) const {
  unsigned char head[kAsciiText];
  if (!read_(object, head, sizeof head)) return false;
  std::uint64_t type = 0;
  std::uint64_t length = 0;
  std::uint32_t state = 0;
  std::memcpy(&type, head + kType, sizeof type);
  std::memcpy(&length, head + kTextLength, sizeof length);
  std::memcpy(&state, head + kTextState, sizeof state);
  const std::uint32_t width = state >> 2 & 7;
  const bool compact = (state >> 5 & 1) != 0;
  const bool ascii = (state >> 6 & 1) != 0;
  if (type != interpreter.text_type || !compact || length == 0 || length > kMostText) return false;
  if (width != 1 && width != 2 && width != 4) return false;
  std::vector<unsigned char> bytes(length * width);
  if (!read_(object + (ascii ? kAsciiText : kOtherText), bytes.data(), bytes.size())) return false;
  into.clear();
  for (std::size_t i = 0; i < length; i++) {
    std::uint32_t letter = 0;
    std::memcpy(&letter, &bytes[i * width], width);
    append_utf8(into, letter);
  }
  return true;
}

const PythonFunction* Python::function(const Place& place, const Registers& registers,
                                       std::span<const std::uint64_t> words) {
  const Interpreter& here = interpreter(place.module);
  if (!here.usable || place.address < here.begin || place.address >= here.end) return nullptr;
  std::uint64_t object = 0;
  const auto consider = [&](std::uint64_t word) {
    Place code;
    if (word < 1 << 16 || word >= 1ULL << 47 || modules_.find(word, code)) return true;
    if (in_vain_.contains(word)) return true;
    const std::uint64_t found = code_around(here, word);
    if (found == 0) in_vain_.insert(word);
    if (found == 0 || found == object) return true;
    const bool first = object == 0;
    object = found;
    return first;
  };
  for (const unsigned number : kHolders) {
    if (registers.has(number) && !consider(registers.value[number])) return nullptr;
  }
  for (const std::uint64_t word : words) {
    if (!consider(word)) return nullptr;
  }
  if (object == 0) return nullptr;
  PythonFunction function;
  std::uint64_t name = 0;
  std::uint64_t file = 0;
  std::uint64_t units = 0;
  if (!read_(object + kQualifiedName, &name, sizeof name) || !read_(object + kFile, &file, sizeof file) ||
      !read_(object + kFirstLine, &function.line, sizeof function.line) ||
      !read_(object + kSize, &units, sizeof units) || !text(here, name, function.name) ||
      !text(here, file, function.file)) {
    return nullptr;
  }
  ends_[object] = object + kBytecode + units * 2;
  return &(functions_[object] = std::move(function));
}

}  // namespace brimful::observer::stacks
