// SPDX-License-Identifier: MIT
//
// control/names.h: the table, and how a name is looked up in it.
//
// In a pattern, # stands for an arena, @ for a size class, % for an option, ! for a kind of
// misuse. Rejected: a tree of names, as jemalloc has it
// (a table for each inner node, where one of 90 lines shows everything there is); a binary search (patterns don't sort).
#include "control/names.h"

#include <errno.h>
#include <string.h>

#include <bit>

#include "alloc/allocate.h"
#include "classes/size_classes.h"
#include "config/build.h"
#include "config/options.h"
#include "control/numbers.h"
#include "meta/misuse.h"
#include "os/calls.h"
#include "pages/limit.h"
#include "pages/purger.h"
#include "slots/background.h"
#include "slots/sampling.h"
#include "slots/thread.h"
#include "stats/sample_file.h"

namespace brimful::control {

// What a value is in C. A text is a pointer to one that stays.
enum class Type : std::uint8_t { kAction, kBool, kUnsigned, kSize, kSigned, kU64, kText };

struct Entry {
  const char* pattern;
  Type type;
  int (*get)(std::uint32_t which, std::uint64_t& value);  // nullptr: can't be read
  int (*set)(std::uint32_t which, std::uint64_t value);   // nullptr: can't be written
};

namespace {

using config::kOptions;
using config::options;
using Get = int(std::uint32_t which, std::uint64_t& value);

std::size_t size_of(Type type) {
  switch (type) {
    case Type::kAction:
      return 0;
    case Type::kBool:
      return sizeof(bool);
    case Type::kUnsigned:
      return sizeof(unsigned);
    default:
      return sizeof(std::uint64_t);
  }
}

std::uint64_t bits(const char* text) { return reinterpret_cast<std::uintptr_t>(text); }
std::uint64_t bits(std::int64_t number) { return static_cast<std::uint64_t>(number); }

// --- what can be read ----------------------------------------------------------------------------------------------------

template <std::uint64_t kValue>
int constant(std::uint32_t /*which*/, std::uint64_t& value) {
  value = kValue;
  return 0;
}

// One function for all of them: each instance below is a jump to it.
[[gnu::noinline]] int read_number(std::uint64_t Numbers::*number, std::uint64_t unit, std::uint64_t& value) {
  Numbers now;
  if (const int fault = read(now)) return fault;
  value = now.*number / unit;
  return 0;
}

[[gnu::noinline]] int read_class(std::uint64_t stats::ClassUse::*number, std::uint32_t which, std::uint64_t& value) {
  Numbers now;
  if (const int fault = read(now)) return fault;
  value = now.classes[which].*number;
  return 0;
}

template <std::uint64_t Numbers::*kNumber>
int number(std::uint32_t /*which*/, std::uint64_t& value) {
  return read_number(kNumber, 1, value);
}

template <std::uint64_t Numbers::*kNumber>
int number_of_pages(std::uint32_t /*which*/, std::uint64_t& value) {
  return read_number(kNumber, os::page_bytes(), value);
}

template <std::uint64_t stats::ClassUse::*kNumber>
int class_number(std::uint32_t which, std::uint64_t& value) {
  return read_class(kNumber, which, value);
}

template <config::Setting config::Options::*kOption>
int option(std::uint32_t /*which*/, std::uint64_t& value) {
  value = bits(std::int64_t{options.*kOption});
  return 0;
}

template <config::Setting config::Options::*kOption>
int is_option_set(std::uint32_t /*which*/, std::uint64_t& value) {
  value = options.*kOption != 0 ? 1 : 0;
  return 0;
}

int version(std::uint32_t /*which*/, std::uint64_t& value) {
  value = bits(config::kVersion);
  return 0;
}

int no_text(std::uint32_t /*which*/, std::uint64_t& value) {
  value = bits("");
  return 0;
}

int thp_word(std::uint32_t /*which*/, std::uint64_t& value) {
  // jemalloc's words: the heap leaves hugepages to the system, or decides.
  value = bits(config::thp() == config::Thp::kAlways  ? "always"
               : config::thp() == config::Thp::kNever ? "never"
                                                      : "default");
  return 0;
}

int page(std::uint32_t /*which*/, std::uint64_t& value) {
  value = os::page_bytes();
  return 0;
}

int class_bytes(std::uint32_t which, std::uint64_t& value) {
  value = kSizeClasses[which].bytes;
  return 0;
}

int slab_bytes(std::uint32_t which, std::uint64_t& value) {
  value = GranuleCount(kSizeClasses[which].granules).bytes();
  return 0;
}

int slab_objects(std::uint32_t which, std::uint64_t& value) {
  value = std::uint64_t{kSizeClasses[which].groups} * 64;
  return 0;
}

int background_threads(std::uint32_t /*which*/, std::uint64_t& value) {
  value = slots::has_background_thread() ? 1 : 0;
  return 0;
}

int misuse_reports(std::uint32_t which, std::uint64_t& value) {
  value = meta::misuse_count(static_cast<meta::Misuse>(which));
  return 0;
}

int all_misuse_reports(std::uint32_t /*which*/, std::uint64_t& value) {
  value = meta::misuse_count();
  return 0;
}

int is_sampling(std::uint32_t /*which*/, std::uint64_t& value) {
  value = slots::sample_interval() != 0 ? 1 : 0;
  return 0;
}

// The power of two that is nearest below, of the interval that is or would be.
int log_sample_interval(std::uint32_t /*which*/, std::uint64_t& value) {
  const std::uint64_t interval = slots::sample_interval();
  value = std::bit_width(interval != 0 ? interval : slots::kDefaultSampleInterval) - 1U;
  return 0;
}

int any_option(std::uint32_t which, std::uint64_t& value) {
  const config::OptionInfo& info = kOptions[which];
  // Tools change the interval from outside.
  value = info.field == &config::Options::prof ? slots::sample_interval() : bits(std::int64_t{options.*info.field});
  return 0;
}

// --- what can be written -------------------------------------------------------------------------------------------------

int renew_numbers(std::uint32_t /*which*/, std::uint64_t /*value*/) { return renew(); }

int purge(std::uint32_t /*which*/, std::uint64_t /*value*/) {
  alloc::trim();
  return 0;
}

int decay(std::uint32_t /*which*/, std::uint64_t /*value*/) {
  const slots::SlowScope scope;
  pages::purge_due(os::calls.now_ms());
  return 0;
}

int set_sampling(std::uint32_t /*which*/, std::uint64_t value) {
  const std::int64_t chosen = options.prof;
  const std::uint64_t interval = chosen != 0 ? static_cast<std::uint64_t>(chosen) : slots::kDefaultSampleInterval;
  slots::set_sample_interval(value != 0 ? interval : 0);
  return 0;
}

// nullptr: where prof_file says.
int dump_samples(std::uint32_t /*which*/, std::uint64_t value) {
  const char* path = value != 0 ? reinterpret_cast<const char*>(value) : config::prof_file;
  if (path[0] == '\0') return EINVAL;
  const int fault = stats::write_samples(path);
  if (fault == 0) return 0;
  errno = fault;
  return EFAULT;
}

// Options whose every reader looks at them each time it acts.
int set_any_option(std::uint32_t which, std::uint64_t value) {
  const config::OptionInfo& info = kOptions[which];
  const auto chosen = static_cast<std::int64_t>(value);
  using config::Options;
  const bool is_limit = info.field == &Options::limit || info.field == &Options::soft_limit;
  const bool is_interval = info.field == &Options::prof;
  const bool is_number = info.field == &Options::purge_delay_ms || info.field == &Options::muzzy_delay_ms ||
                         info.field == &Options::release_rate || info.field == &Options::background_thread ||
                         info.field == &Options::misuse;
  if (!is_limit && !is_interval && !is_number) return EPERM;
  if (chosen < info.least || chosen > info.most) return EINVAL;
  options.*info.field = chosen;
  if (is_interval) slots::set_sample_interval(value);
  if (is_limit) {
    const slots::SlowScope scope;
    pages::change_limits();
  }
  return 0;
}

template <config::Setting config::Options::*kOption>
int set_option(std::uint32_t /*which*/, std::uint64_t value) {
  for (std::uint32_t n = 0; n < sizeof kOptions / sizeof kOptions[0]; ++n) {
    if (kOptions[n].field == kOption) return set_any_option(n, value);
  }
  return ENOENT;
}

// --- the table -----------------------------------------------------------------------------------------------------------

using N = Numbers;
using O = config::Options;

constexpr Entry kEntries[] = {
    {"version", Type::kText, version, nullptr},
    {"epoch", Type::kU64, number<&N::epoch>, renew_numbers},
    {"background_thread", Type::kBool, is_option_set<&O::background_thread>, set_option<&O::background_thread>},
    {"max_background_threads", Type::kSize, constant<1>, nullptr},
    {"thread.arena", Type::kUnsigned, constant<0>, nullptr},

    {"config.cache_oblivious", Type::kBool, constant<0>, nullptr},
    {"config.debug", Type::kBool, constant<BRIMFUL_DEBUG_CHECKS>, nullptr},
    {"config.fill", Type::kBool, constant<0>, nullptr},
    {"config.malloc_conf", Type::kText, no_text, nullptr},
    {"config.prof", Type::kBool, constant<1>, nullptr},
    {"config.stats", Type::kBool, constant<1>, nullptr},
    {"config.utrace", Type::kBool, constant<0>, nullptr},
    {"config.xmalloc", Type::kBool, constant<0>, nullptr},

    {"opt.abort", Type::kBool, constant<0>, nullptr},
    {"opt.background_thread", Type::kBool, is_option_set<&O::background_thread>, nullptr},
    {"opt.dirty_decay_ms", Type::kSigned, option<&O::purge_delay_ms>, nullptr},
    {"opt.lg_prof_sample", Type::kSize, log_sample_interval, nullptr},
    {"opt.muzzy_decay_ms", Type::kSigned, option<&O::muzzy_delay_ms>, nullptr},
    {"opt.narenas", Type::kUnsigned, constant<1>, nullptr},
    {"opt.prof", Type::kBool, constant<1>, nullptr},
    {"opt.prof_active", Type::kBool, is_option_set<&O::prof>, nullptr},
    {"opt.retain", Type::kBool, constant<1>, nullptr},
    {"opt.stats_print", Type::kBool, is_option_set<&O::print_stats>, nullptr},
    {"opt.tcache", Type::kBool, constant<0>, nullptr},
    {"opt.thp", Type::kText, thp_word, nullptr},
    {"opt.xmalloc", Type::kBool, constant<0>, nullptr},
    {"opt.zero", Type::kBool, constant<0>, nullptr},

    {"arena.#.decay", Type::kAction, nullptr, decay},
    {"arena.#.purge", Type::kAction, nullptr, purge},
    {"arena.#.initialized", Type::kBool, constant<1>, nullptr},
    {"arena.#.dirty_decay_ms", Type::kSigned, option<&O::purge_delay_ms>, set_option<&O::purge_delay_ms>},
    {"arena.#.muzzy_decay_ms", Type::kSigned, option<&O::muzzy_delay_ms>, set_option<&O::muzzy_delay_ms>},

    {"arenas.narenas", Type::kUnsigned, constant<1>, nullptr},
    {"arenas.dirty_decay_ms", Type::kSigned, option<&O::purge_delay_ms>, set_option<&O::purge_delay_ms>},
    {"arenas.muzzy_decay_ms", Type::kSigned, option<&O::muzzy_delay_ms>, set_option<&O::muzzy_delay_ms>},
    {"arenas.quantum", Type::kSize, constant<kObjectAlignment>, nullptr},
    {"arenas.page", Type::kSize, page, nullptr},
    {"arenas.nbins", Type::kUnsigned, constant<kClassCount>, nullptr},
    {"arenas.nhbins", Type::kUnsigned, constant<0>, nullptr},
    {"arenas.nlextents", Type::kUnsigned, constant<0>, nullptr},
    {"arenas.bin.@.size", Type::kSize, class_bytes, nullptr},
    {"arenas.bin.@.nregs", Type::kUnsigned, slab_objects, nullptr},
    {"arenas.bin.@.slab_size", Type::kSize, slab_bytes, nullptr},

    {"prof.active", Type::kBool, is_sampling, set_sampling},
    {"prof.dump", Type::kText, nullptr, dump_samples},
    {"prof.lg_sample", Type::kSize, log_sample_interval, nullptr},

    {"stats.allocated", Type::kSize, number<&N::allocated>, nullptr},
    {"stats.active", Type::kSize, number<&N::active>, nullptr},
    {"stats.metadata", Type::kSize, number<&N::metadata>, nullptr},
    {"stats.metadata_thp", Type::kSize, constant<0>, nullptr},
    {"stats.resident", Type::kSize, number<&N::resident>, nullptr},
    {"stats.mapped", Type::kSize, number<&N::mapped>, nullptr},
    {"stats.retained", Type::kSize, number<&N::retained>, nullptr},
    {"stats.background_thread.num_threads", Type::kSize, background_threads, nullptr},
    {"stats.arenas.#.dirty_decay_ms", Type::kSigned, option<&O::purge_delay_ms>, nullptr},
    {"stats.arenas.#.muzzy_decay_ms", Type::kSigned, option<&O::muzzy_delay_ms>, nullptr},
    {"stats.arenas.#.pactive", Type::kSize, number_of_pages<&N::active>, nullptr},
    {"stats.arenas.#.pdirty", Type::kSize, number_of_pages<&N::dirty>, nullptr},
    {"stats.arenas.#.pmuzzy", Type::kSize, number_of_pages<&N::muzzy>, nullptr},
    {"stats.arenas.#.dirty_purged", Type::kU64, number_of_pages<&N::purged>, nullptr},
    {"stats.arenas.#.mapped", Type::kSize, number<&N::mapped>, nullptr},
    {"stats.arenas.#.resident", Type::kSize, number<&N::resident>, nullptr},
    {"stats.arenas.#.retained", Type::kSize, number<&N::retained>, nullptr},
    {"stats.arenas.#.base", Type::kSize, number<&N::metadata>, nullptr},
    {"stats.arenas.#.internal", Type::kSize, constant<0>, nullptr},
    {"stats.arenas.#.small.allocated", Type::kSize, number<&N::small>, nullptr},
    {"stats.arenas.#.large.allocated", Type::kSize, number<&N::large>, nullptr},
    {"stats.arenas.#.bins.@.curregs", Type::kSize, class_number<&stats::ClassUse::live>, nullptr},
    {"stats.arenas.#.bins.@.curslabs", Type::kSize, class_number<&stats::ClassUse::slabs>, nullptr},

    {"stats.misuse.reports", Type::kU64, all_misuse_reports, nullptr},
    {"stats.misuse.!", Type::kU64, misuse_reports, nullptr},

    {"brimful.%", Type::kSigned, any_option, set_any_option},
};
constexpr std::size_t kEntryCount = sizeof kEntries / sizeof kEntries[0];

// --- looking up ----------------------------------------------------------------------------------------------------------

constexpr std::size_t kOptionCount = sizeof kOptions / sizeof kOptions[0];

// Also "all arenas", as it is written now and as it was before jemalloc 5: by the number behind the last.
bool is_arena(std::size_t number) {
  constexpr std::size_t kAllArenas = 4096;
  return number <= 1 || number == kAllArenas;
}

// What stands in place of a mark. false: there is no such thing.
bool is_part(char mark, std::size_t number) {
  if (mark == '#') return is_arena(number);
  return number < (mark == '@' ? kClassCount : mark == '%' ? kOptionCount : meta::kMisuseKinds);
}

bool is_mark(char letter) { return letter == '#' || letter == '@' || letter == '%' || letter == '!'; }

// The number at the start of `text`, which goes on behind it. false: there is none.
bool take_number(const char*& text, std::size_t& number) {
  constexpr std::size_t kMost = 1'000'000;
  const char* first = text;
  for (number = 0; *text >= '0' && *text <= '9' && number < kMost; ++text) {
    number = number * 10 + static_cast<std::size_t>(*text - '0');
  }
  return text != first;
}

// A space of the name is a low line in the text.
bool is_named(const char* text, const char* name) {
  while (*name != '\0' && *text == (*name == ' ' ? '_' : *name)) ++text, ++name;
  return *text == *name;
}

// The option or kind of misuse that the rest of `text` names. false: there is none.
bool take_name(char mark, const char*& text, std::size_t& number) {
  const std::size_t count = mark == '%' ? kOptionCount : meta::kMisuseKinds;
  for (number = 0; number < count; ++number) {
    if (!is_named(text, mark == '%' ? kOptions[number].name : meta::kMisuseNames[number])) continue;
    text += strlen(text);
    return true;
  }
  return false;
}

// Whether the name is of the pattern; `parts` gets the number in place of each mark.
template <class Parts>
bool matches(const char* pattern, const char* name, const Parts& parts) {
  for (; *pattern != '\0'; ++pattern) {
    if (!is_mark(*pattern)) {
      if (*name++ != *pattern) return false;
      continue;
    }
    std::size_t number = 0;
    const bool is_word = *pattern == '%' || *pattern == '!';
    if (is_word ? !take_name(*pattern, name, number) : !take_number(name, number)) return false;
    if (!is_part(*pattern, number)) return false;
    parts(*pattern, number);
  }
  return *name == '\0';
}

// Options are read by the program's first request, which would undo what was written before it. EDEADLK in a signal
// handler that interrupted the allocator.
int begin() {
  if (slots::thread_state.depth != 0) return EDEADLK;
  const slots::SlowScope scope;
  slots::prepare();
  return 0;
}

// Calls visit(part) with the first letter of each part of the pattern.
template <class Visit>
void for_each_part(const char* pattern, const Visit& visit) {
  visit(*pattern);
  for (; *pattern != '\0'; ++pattern) {
    if (*pattern == '.') visit(pattern[1]);
  }
}

}  // namespace

bool find(const char* name, Name& found) {
  for (const Entry& entry : kEntries) {
    found = {&entry, 0};
    const auto keep = [&found](char mark, std::size_t number) {
      if (mark != '#') found.which = static_cast<std::uint32_t>(number);
    };
    if (matches(entry.pattern, name, keep)) return true;
  }
  return false;
}

int get(const Name& name, void* value, std::size_t* size) {
  if (name.entry->get == nullptr) return EPERM;
  const std::size_t needed = size_of(name.entry->type);
  const std::size_t room = *size;
  if (value == nullptr) {
    *size = needed;
    return 0;
  }
  if (const int fault = begin()) return fault;
  std::uint64_t found = 0;
  if (const int fault = name.entry->get(name.which, found)) return fault;
  memcpy(value, &found, room < needed ? room : needed);
  *size = needed;
  return room == needed ? 0 : EINVAL;
}

int set(const Name& name, const void* value, std::size_t size) {
  if (name.entry->set == nullptr) return EPERM;
  const std::size_t needed = size_of(name.entry->type);
  const bool has_value = value != nullptr || size != 0;
  if (needed == 0 && has_value) return EPERM;
  if ((has_value || !is_action(name)) && (value == nullptr || size != needed)) return EINVAL;
  if (const int fault = begin()) return fault;
  std::uint64_t wanted = 0;
  if (has_value) memcpy(&wanted, value, needed);
  return name.entry->set(name.which, wanted);
}

bool is_written_first(const Name& name) { return name.entry->set == renew_numbers; }
bool is_action(const Name& name) { return name.entry->get == nullptr; }

int to_mib(const char* name, std::size_t* mib, std::size_t* length) {
  Name found;
  if (!find(name, found)) return ENOENT;
  std::size_t numbers[2] = {};
  std::size_t count = 0;
  matches(found.entry->pattern, name, [&](char /*mark*/, std::size_t number) { numbers[count++] = number; });
  std::size_t parts = 0;
  count = 0;
  const std::size_t room = *length;
  for_each_part(found.entry->pattern, [&](char first) {
    const std::size_t number = is_mark(first) ? numbers[count++] : 0;
    if (parts < room) mib[parts] = parts == 0 ? static_cast<std::size_t>(found.entry - kEntries) : number;
    ++parts;
  });
  *length = parts < room ? parts : room;
  return parts <= room ? 0 : EINVAL;
}

bool from_mib(const std::size_t* mib, std::size_t length, Name& found) {
  if (length == 0 || mib[0] >= kEntryCount) return false;
  found = {&kEntries[mib[0]], 0};
  std::size_t parts = 0;
  bool is_right = true;
  for_each_part(found.entry->pattern, [&](char first) {
    if (is_mark(first) && parts < length) {
      is_right = is_right && is_part(first, mib[parts]);
      if (first != '#') found.which = static_cast<std::uint32_t>(mib[parts]);
    }
    ++parts;
  });
  return is_right && parts == length;
}

}  // namespace brimful::control
