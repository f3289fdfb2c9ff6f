// SPDX-License-Identifier: MIT
//
// Finding the anatomy, by its first 16 bytes in memory of files that the linker has written to: so programs without symbols
// and static ones are known, too.
#include "memory/anatomy.h"

#include <algorithm>
#include <cstring>

namespace brimful::observer::memory {
namespace {

// Not in one piece, so that this program is not taken for one with the library.
std::string magic() {
  std::string text = "brimful";
  text += ":anatomy";
  text.resize(16);
  return text;
}

constexpr std::uint32_t kSchema = 1;
constexpr std::size_t kNameBytes = 32;
constexpr std::size_t kHeadBytes = 16 + 8 + kNameBytes;
constexpr std::size_t kEntryBytes = kNameBytes + 8;
constexpr std::uint64_t kMostSearched = std::uint64_t{64}
                                        << 20;  // of one mapping: data that the linker relocates is smaller

std::string text_at(const char* bytes, std::size_t room) { return {bytes, strnlen(bytes, room)}; }

}  // namespace

bool Anatomy::read_at(std::uint64_t address, const Read& read) {
  char head[kHeadBytes];
  if (!read(address, head, sizeof head)) return false;
  std::uint32_t schema = 0;
  std::uint32_t count = 0;
  std::memcpy(&schema, head + 16, sizeof schema);
  std::memcpy(&count, head + 20, sizeof count);
  version_ = text_at(head + 24, kNameBytes);
  if (schema != kSchema) {
    error_ = "it has brimful " + version_ + ", whose anatomy (schema " + std::to_string(schema) +
             ") this program does not know: use the observer of that version";
    return false;
  }
  std::vector<char> entries(std::min<std::uint32_t>(count, 4096) * kEntryBytes);
  if (!read(address + kHeadBytes, entries.data(), entries.size())) return false;
  for (std::size_t at = 0; at < entries.size(); at += kEntryBytes) {
    std::uint64_t value = 0;
    std::memcpy(&value, entries.data() + at + kNameBytes, sizeof value);
    values_[text_at(entries.data() + at, kNameBytes)] = value;
  }
  return true;
}

bool Anatomy::find(const std::vector<Mapping>& mappings, const Read& read) {
  const std::string wanted = magic();
  // Most likely in a file of that name.
  for (const bool named : {true, false}) {
    for (const Mapping& mapping : mappings) {
      const bool is_named = mapping.path.find("brimful") != std::string::npos;
      if (is_named != named || mapping.path.empty() || mapping.path[0] != '/' || !mapping.is_readable ||
          mapping.is_shared || mapping.is_executable || mapping.end - mapping.start > kMostSearched) {
        continue;
      }
      std::vector<char> bytes(mapping.end - mapping.start);
      if (!read(mapping.start, bytes.data(), bytes.size())) continue;
      for (std::size_t at = 0; at + kHeadBytes <= bytes.size(); at += 8) {
        if (std::memcmp(bytes.data() + at, wanted.data(), wanted.size()) != 0) continue;
        if (read_at(mapping.start + at, read)) return true;
        if (!error_.empty()) return false;
      }
    }
  }
  error_ =
      "it does not use brimful (no anatomy in its files' data): start it with `brimful run`, or link it with the "
      "library";
  return false;
}

std::uint64_t Anatomy::operator[](const char* name) {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  missing_ = name;
  return 0;
}

}  // namespace brimful::observer::memory
