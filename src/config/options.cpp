// SPDX-License-Identifier: MIT
//
// The parser of config/options.h. It works on the environment's own bytes and the stack: it runs inside the first
// malloc of the process.
#include "config/options.h"

#include <string.h>

#include "base/compiler.h"
#include "base/line.h"
#include "config/build.h"
#include "os/environment.h"
#include "os/kept_stderr.h"
#include "os/report.h"

namespace brimful::config {
namespace {

struct Text {
  const char* data;
  std::size_t size;

  [[nodiscard]] bool equals(const char* other) const { return strlen(other) == size && memcmp(data, other, size) == 0; }
};

// The part of `text` before the first `mark` (all of it without one); *rest gets what follows the mark.
Text cut(Text text, char mark, Text* rest) {
  const auto* found = static_cast<const char*>(text.size == 0 ? nullptr : memchr(text.data, mark, text.size));
  const std::size_t before = found == nullptr ? text.size : static_cast<std::size_t>(found - text.data);
  const std::size_t behind = found == nullptr ? text.size : before + 1;
  *rest = {text.data + behind, text.size - behind};
  return {text.data, before};
}

// Edits (insert, delete, replace) between two words of fewer than 32 letters: Levenshtein 1966, one row.
std::size_t edit_distance(Text a, const char* b) {
  constexpr std::size_t kMost = 32;
  const std::size_t length = strlen(b);
  if (a.size >= kMost || length >= kMost) return kMost;
  std::size_t row[kMost + 1];
  for (std::size_t j = 0; j <= length; ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size; ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= length; ++j) {
      const std::size_t replaced = diagonal + (a.data[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      const std::size_t shorter = (row[j - 1] < row[j] ? row[j - 1] : row[j]) + 1;
      row[j] = replaced < shorter ? replaced : shorter;
    }
  }
  return row[length];
}

// The name that was probably meant: at most half of the letters are other ones. nullptr: none comes near.
const char* nearest_name(Text key) {
  const OptionInfo* best = kOptions;
  for (const OptionInfo& option : kOptions) {
    if (edit_distance(key, option.name) < edit_distance(key, best->name)) best = &option;
  }
  return edit_distance(key, best->name) <= key.size / 2 ? best->name : nullptr;
}

// The number a choice's word stands for, or -1.
std::int64_t choice(const char* words, Text value) {
  Text rest = {words, strlen(words)};
  for (std::int64_t number = 0; rest.size > 0; ++number) {
    const Text word = cut(rest, '|', &rest);
    if (word.size == value.size && memcmp(word.data, value.data, word.size) == 0) return number;
  }
  return -1;
}

bool parse_number(Text text, bool is_bytes, std::int64_t* result) {
  const bool negative = text.size > 0 && text.data[0] == '-';
  std::size_t i = negative ? 1 : 0;
  const std::size_t first_digit = i;
  std::int64_t value = 0;
  for (; i < text.size && text.data[i] >= '0' && text.data[i] <= '9'; ++i) {
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, text.data[i] - '0', &value)) {
      return false;
    }
  }
  if (i == first_digit) return false;
  if (is_bytes && i + 1 == text.size) {
    const char letter = static_cast<char>(text.data[i] & ~0x20);  // upper case
    int kilos = 0;
    constexpr char kUnits[] = {'K', 'M', 'G', 'T'};
    for (int n = 0; n < 4; ++n) {
      if (kUnits[n] == letter) kilos = n + 1;
    }
    if (kilos == 0) return false;
    for (; kilos > 0; --kilos) {
      if (__builtin_mul_overflow(value, 1024, &value)) return false;
    }
    ++i;
  }
  *result = negative ? -value : value;
  return i == text.size;
}

// `number` starts as what the word means.
bool takes_auto(const OptionInfo& option) { return option.is_bytes && option.least == kAutoBytes; }

void apply_path(Text value, void (*warn)(const char*)) {
  if (value.size >= kPathBytes) {
    if (warn != nullptr) warn("option \"prof_file\": the path is longer than 1023 letters; ignored");
    return;
  }
  memcpy(prof_file, value.data, value.size);
  prof_file[value.size] = '\0';
}

// The number that the value stands for. false: none.
bool parse_value(const OptionInfo& option, Text value, std::int64_t* number) {
  if (option.words != nullptr) {
    *number = choice(option.words, value);
    if (*number >= 0) {
      if (option.is_bytes) *number *= kOnBytes;
      return true;
    }
    if (!option.is_bytes) return false;
  }
  *number = kAutoBytes;
  if (takes_auto(option) && value.equals("auto")) return true;
  return parse_number(value, option.is_bytes, number) && *number >= option.least && *number <= option.most;
}

void apply_one(Text key, Text value, Options& into, void (*warn)(const char*)) {
  if (key.equals(kPathOption)) return apply_path(value, warn);
  for (const OptionInfo& option : kOptions) {
    if (!key.equals(option.name)) continue;
    std::int64_t number = 0;
    if (parse_value(option, value, &number)) {
      into.*option.field = number;
      return;
    }
    Line line;
    line << "option \"" << option.name << "\" can't be \"";
    line.append(value.data, value.size) << "\": it takes ";
    if (option.words != nullptr) line << option.words;
    if (option.words != nullptr && option.is_bytes) line << " or ";
    if (option.words == nullptr || option.is_bytes) {
      if (takes_auto(option)) line << "auto or ";
      line << (takes_auto(option) ? 0 : option.least) << " to " << option.most;
    }
    line << "; ignored";
    if (warn != nullptr) warn(line.data());
    return;
  }
  Line line;
  line << "unknown option \"";
  line.append(key.data, key.size);
  if (const char* name = nearest_name(key)) {
    line << "\": did you mean \"" << name << "\"?";
  } else {
    line << "\": ignored; `man brimful` lists the options";
  }
  if (warn != nullptr) warn(line.data());
}

// What slow paths ask, from the options. No tier has one of them on by itself: docs/design/0043 has what each costs.
void choose_checks() {
  const bool is_shipped = kMiddle == Middle::kContexts;  // the middle layers for study hand out objects by themselves
  checks.canary = is_shipped && options.canary != 0;
  checks.zero = is_shipped && options.zero != 0;
  checks.objects = checks.canary || checks.zero;
  if (!is_shipped) options.guard = 0;
  checks.offers = is_shipped && (checks.objects || draws_offers() || options.quarantine != 0);
  checks.books = checks.offers || options.guard != 0;
}

void report_warning(const char* text) { os::report(Line() << text); }

}  // namespace

constinit Options options = initial_options();
constinit Checks checks = {};
BRIMFUL_ZEROS_COLD constinit char prof_file[kPathBytes] = {};

void apply(const char* text, Options& into, void (*warn)(const char* line)) {
  Text rest = {text, strlen(text)};
  while (rest.size > 0) {
    const Text entry = cut(rest, ',', &rest);
    if (entry.size == 0) continue;
    Text value = {};
    const Text key = cut(entry, ':', &value);
    apply_one(key, value, into, warn);
  }
}

void load() {
  options = initial_options();
  checks = {};
  // One look at the environment for the programs, nearly all, that say nothing: seventeen looks took as long as a system call.
  if (!os::environment_has_prefix("BRIMFUL_") || os::is_secure_mode()) return;
  if (const char* text = os::environment("BRIMFUL_CONF")) apply(text, options, report_warning);
  for (const OptionInfo& option : kOptions) {
    char name[48] = "BRIMFUL_";
    std::size_t length = strlen(name);
    for (const char* c = option.name; *c != '\0'; ++c) {
      name[length++] = static_cast<char>(*c >= 'a' && *c <= 'z' ? *c - 0x20 : *c);
    }
    if (const char* value = os::environment(name)) {
      apply_one({option.name, strlen(option.name)}, {value, strlen(value)}, options, report_warning);
    }
  }
  if (const char* value = os::environment("BRIMFUL_PROF_FILE")) apply_path({value, strlen(value)}, report_warning);
  if (prof_file[0] != '\0' && options.prof == 0) options.prof = kOnBytes;
  choose_checks();
  if (print_stats() != PrintStats::kOff || leaks() != Leaks::kOff) os::keep_stderr();
}

}  // namespace brimful::config
