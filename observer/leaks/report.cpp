// SPDX-License-Identifier: MIT
//
// Text and JSON of report.h.
#include "leaks/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace brimful::observer::leaks {
namespace {

// 1234567 → "1,234,567".
std::string grouped(std::uint64_t value) {
  std::string text = std::to_string(value);
  for (std::size_t at = text.size(); at > 3;) text.insert(at -= 3, ",");
  return text;
}

std::string address(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(value));
  return text.data();
}

std::string padded(const std::string& text, std::size_t width) {
  return text.size() >= width ? text : std::string(width - text.size(), ' ') + text;
}

std::string plural(std::uint64_t count, const std::string& what) {
  return grouped(count) + " " + what + (count == 1 ? "" : "s");
}

std::string milliseconds(double seconds) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), seconds < 0.0995 ? "%.1f ms" : "%.0f ms", seconds * 1000);
  return text.data();
}

// As hexdump -C, 16 bytes to a line.
std::string dump(const std::string& bytes) {
  std::string text;
  for (std::size_t line = 0; line < bytes.size(); line += 16) {
    std::string letters;
    text += "      ";
    for (std::size_t n = line; n < line + 16; ++n) {
      if (n >= bytes.size()) {
        text += "   ";
        continue;
      }
      const auto byte = static_cast<unsigned char>(bytes[n]);
      std::array<char, 8> hex;
      std::snprintf(hex.data(), hex.size(), "%02x ", byte);
      text += hex.data();
      letters += byte >= 0x20 && byte < 0x7F ? static_cast<char>(byte) : '.';
    }
    text += " " + letters + "\n";
  }
  return text;
}

std::string hexadecimal(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    std::array<char, 4> hex;
    std::snprintf(hex.data(), hex.size(), "%02x", static_cast<unsigned char>(c));
    text += hex.data();
  }
  return text;
}

// The type, or where it was allocated, as far as there is room; the address if there is room for it, too.
std::string what_of(const Group& group, std::size_t width) {
  constexpr std::size_t kLeast = 24;
  width = std::max(width, kLeast);
  std::string text = group.type.name;
  if (text.empty() && !group.stack.empty()) text = group.stack.front();
  std::string first = group.addresses.empty() ? "" : address(group.addresses.front());
  if (group.direct.count > 1 && !first.empty()) first += " +";
  if (text.empty()) return first;
  if (text.size() > width) return text.substr(0, width - 1) + "…";
  return text.size() + 2 + first.size() <= width ? text + "  " + first : text;
}

void add_groups(const Report& report, bool is_possible, const TextOptions& options, std::string& text) {
  constexpr std::size_t kColumns = 8 + 14 + 8 + 14 + 12 + 2;
  text += padded("objects", 8) + padded("bytes", 14) + padded("behind", 8) + padded("bytes", 14) + padded("size", 12) +
          "  what\n";
  std::size_t shown = 0;
  std::size_t left_out = 0;
  for (const Group& group : report.groups) {
    if (group.is_possible != is_possible) continue;
    if (shown == options.most_groups) {
      ++left_out;
      continue;
    }
    ++shown;
    text += padded(grouped(group.direct.count), 8) + padded(grouped(group.direct.bytes), 14) +
            padded(grouped(group.indirect.count), 8) + padded(grouped(group.indirect.bytes), 14) +
            padded(grouped(group.size), 12) + "  " +
            what_of(group, options.width > kColumns ? options.width - kColumns : 0) + "\n";
    for (const std::string& line : group.stack) text += "      " + line + "\n";
    if (options.with_contents) text += dump(group.first_bytes);
  }
  if (left_out > 0) text += "      … and " + plural(left_out, "group") + " more (--groups)\n";
}

nlohmann::json json_of_sum(const Sum& sum) { return {{"count", sum.count}, {"bytes", sum.bytes}}; }

}  // namespace

Sum Report::direct() const {
  Sum sum;
  for (const Group& group : groups) {
    if (!group.is_possible) sum.add(group.direct.count, group.direct.bytes);
  }
  return sum;
}

Sum Report::indirect() const {
  Sum sum;
  for (const Group& group : groups) {
    if (!group.is_possible) sum.add(group.indirect.count, group.indirect.bytes);
  }
  return sum;
}

std::string text_of(const Report& report, const TextOptions& options) {
  const Sum lost = report.direct();
  const Sum behind = report.indirect();
  std::string text = "brimful: leaks of ";
  text += report.pid != 0 ? "process " + std::to_string(report.pid) + " (" + report.program + ")" : report.program;
  text += ": ";
  if (lost.count == 0) {
    text += "none";
  } else {
    text += plural(lost.count, "object") + " lost, " + plural(lost.bytes, "byte");
    if (behind.count > 0) text += "; behind them " + grouped(behind.count) + ", " + plural(behind.bytes, "byte");
  }
  text += "\n";
  if (lost.count > 0) add_groups(report, false, options, text);
  if (report.possible.count > 0) {
    text += "possibly lost (only pointers to their inside are left): " + plural(report.possible.count, "object") +
            ", " + plural(report.possible.bytes, "byte") + (options.with_possible ? "\n" : "; --possibly lists them\n");
    if (options.with_possible) add_groups(report, true, options, text);
  }
  if (report.suppressed.count > 0) {
    text += "suppressed: " + plural(report.suppressed.count, "object") + ", " +
            plural(report.suppressed.bytes, "byte") + "\n";
  }
  if (report.without_second_look > 0) {
    text += "moving: " + plural(report.without_second_look, "object") +
            " seemed lost at the first look and not at the second; not counted\n";
  }
  text += "of " + plural(report.live.count, "live object") + ", " + plural(report.live.bytes, "byte");
  for (std::size_t n = 0; n < report.held_seconds.size(); ++n) {
    text += (n == 0 ? "; the process was held for " : " and ") + milliseconds(report.held_seconds[n]);
  }
  return text + "\n";
}

nlohmann::json json_of(const Report& report) {
  nlohmann::json groups = nlohmann::json::array();
  for (const Group& group : report.groups) {
    nlohmann::json addresses = nlohmann::json::array();
    for (const std::uint64_t one : group.addresses) addresses.push_back(address(one));
    groups.push_back({{"kind", group.is_possible ? "possibly" : "lost"},
                      {"size", group.size},
                      {"type", group.type.name},
                      {"module", group.type.module},
                      {"stack", group.stack},
                      {"count", group.direct.count},
                      {"bytes", group.direct.bytes},
                      {"behind", json_of_sum(group.indirect)},
                      {"addresses", addresses},
                      {"first_bytes", hexadecimal(group.first_bytes)}});
  }
  return {{"schema", "brimful-leaks-1"},
          {"pid", report.pid},
          {"program", report.program},
          {"library", report.library},
          {"live", json_of_sum(report.live)},
          {"lost", json_of_sum(report.direct())},
          {"behind", json_of_sum(report.indirect())},
          {"possibly", json_of_sum(report.possible)},
          {"suppressed", json_of_sum(report.suppressed)},
          {"moving", report.without_second_look},
          {"held_seconds", report.held_seconds},
          {"copied_bytes", report.copied_bytes},
          {"groups", groups}};
}

}  // namespace brimful::observer::leaks
