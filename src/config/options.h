// SPDX-License-Identifier: MIT
//
// The options: one table of name, type, range, unit, default and meaning; the parser, the warnings and the
// documentation all come from it. Read once at start-up: first BRIMFUL_CONF="key:value,…", then BRIMFUL_<OPTION>, which
// wins. Ignored in secure mode (AT_SECURE). A key or value that means nothing costs one warning, never the process.
// Some can be changed while the program runs (control/).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace brimful::config {

enum class FrontEnd : std::int64_t { kAuto, kPerCpu, kThread };
enum class Tier : std::int64_t { kDefault, kHardened };
enum class Exhaustion : std::int64_t { kGrow, kNull, kHook, kAbort };
enum class Thp : std::int64_t { kAuto, kAlways, kNever };
enum class Populate : std::int64_t { kOff, kPartial, kAll, kAuto };
enum class Purge : std::int64_t { kDontNeed, kFree };
enum class Hugetlb : std::int64_t { kOff, k2M, k1G };
enum class PrintStats : std::int64_t { kOff, kExit, kJson };
enum class BackgroundThread : std::int64_t { kOff, kOn, kAuto };
enum class Cache : std::int64_t { kUnlimited, kAdaptive, kNone };
enum class Leaks : std::int64_t { kOff, kExit };
enum class Report : std::int64_t { kLine, kStack };
enum class OnMisuse : std::int64_t { kAbort, kWarn, kHook };

// A number that one thread may change while others read it. Whoever reads the old one goes by it for a moment longer.
class Setting {
 public:
  constexpr Setting() = default;
  constexpr Setting& operator=(std::int64_t value) {
    if (std::is_constant_evaluated()) {
      value_ = value;
    } else {
      std::atomic_ref(value_).store(value, std::memory_order_relaxed);  // relaxed: a number by itself
    }
    return *this;
  }
  constexpr operator std::int64_t() const {  // NOLINT(google-explicit-constructor): it stands for the number
    if (std::is_constant_evaluated()) return value_;
    // relaxed: as above
    return std::atomic_ref(const_cast<std::int64_t&>(value_)).load(std::memory_order_relaxed);
  }
  // Of a choice, by its enumeration.
  template <class Choice>
  [[nodiscard]] constexpr Choice as() const {
    return static_cast<Choice>(std::int64_t{*this});
  }

 private:
  std::int64_t value_ = 0;
};

struct Options {
  Setting front_end;          // FrontEnd
  Setting verbose;            // 0 or 1
  Setting purge_delay_ms;     // -1: never
  Setting tier;               // Tier
  Setting reserve;            // bytes of the first window; 0: chosen from the limits
  Setting on_exhaustion;      // Exhaustion
  Setting print_stats;        // PrintStats
  Setting limit;              // bytes the heap may hold; 0: no limit, kAutoBytes: from the control group
  Setting hugetlb;            // Hugetlb
  Setting soft_limit;         // as limit: above it, free memory goes back at once
  Setting purge;              // Purge
  Setting muzzy_delay_ms;     // -1: never
  Setting release_rate;       // bytes per second; 0: any
  Setting background_thread;  // BackgroundThread
  Setting cache;              // Cache
  Setting thp;                // Thp
  Setting populate;           // Populate
  Setting leaks;              // Leaks
  Setting guards;             // one in so many small objects is guarded; 0: none
  Setting report;             // Report
  Setting misuse;             // OnMisuse
  Setting canary;             // 0 or 1
  Setting zero;               // 0 or 1
  Setting quarantine;         // offers of its slab that a freed object waits for at least
  Setting random;             // 0 or 1
  Setting guard;              // one in so many slabs ends in a page without access; 0: none
  Setting prof;               // average bytes from one sample to the next; 0: none are taken
};

// The value of a number of bytes that the user leaves to the library by the word `auto`, where `least` allows it.
inline constexpr std::int64_t kAutoBytes = -1;

// What the word `on` stands for, of an option that takes a number of bytes.
inline constexpr std::int64_t kOnBytes = std::int64_t{512} << 10;

struct OptionInfo {
  const char* name;
  Setting Options::*field;
  // "auto|percpu|thread": a choice, numbered from 0; nullptr: a number. "off|on" with is_bytes: a number, 0, or kOnBytes.
  const char* words;
  bool is_bytes;  // takes the suffixes K, M, G, T
  std::int64_t least;
  std::int64_t most;
  std::int64_t initial;
  const char* meaning;
};

inline constexpr OptionInfo kOptions[] = {
    {"front_end", &Options::front_end, "auto|percpu|thread", false, 0, 2, 0,
     "where free objects are kept: per running CPU (restartable sequences) or per thread"},
    {"verbose", &Options::verbose, nullptr, false, 0, 1, 0, "1: one line at start says which mode runs and why"},
    {"purge_delay_ms", &Options::purge_delay_ms, nullptr, false, -1, 3600000, 1000,
     "ms until free memory goes back to the system; 0 at once, -1 never"},
    {"tier", &Options::tier, "default|hardened", false, 0, 1, 0,
     "hardened: every double free is found before it returns, also of threads that race"},
    {"reserve", &Options::reserve, nullptr, true, 0, std::int64_t{1} << 40, 0,
     "bytes of address space taken beforehand; 0: 32G, less under a limit"},
    {"on_exhaustion", &Options::on_exhaustion, "grow|null|hook|abort", false, 0, 3, 0,
     "when the reserve is used up: take more, return NULL, call the hook, or abort"},
    {"print_stats", &Options::print_stats, "off|exit|json", false, 0, 2, 0,
     "exit: statistics as tables on stderr when the program exits; json: as one line"},
    {"limit", &Options::limit, nullptr, true, kAutoBytes, std::int64_t{1} << 50, 0,
     "bytes the heap may hold, above which requests fail; 0: no limit, auto: from the control group"},
    {"soft_limit", &Options::soft_limit, nullptr, true, kAutoBytes, std::int64_t{1} << 50, 0,
     "bytes above which free memory goes back at once; 0: none, auto: from the control group"},
    {"hugetlb", &Options::hugetlb, "off|2M|1G", false, 0, 2, 0,
     "take hugepages of this size from the system's pool as long as it has some"},
    {"purge", &Options::purge, "dontneed|free", false, 0, 1, 0,
     "how free memory goes back: at once (MADV_DONTNEED), or when the system wants it (MADV_FREE), later at once"},
    {"muzzy_delay_ms", &Options::muzzy_delay_ms, nullptr, false, -1, 3600000, 10000,
     "with purge:free, ms from MADV_FREE to MADV_DONTNEED; -1 never"},
    {"release_rate", &Options::release_rate, nullptr, true, 0, std::int64_t{1} << 40, 0,
     "bytes that go back per second at most; 0: any number"},
    {"background_thread", &Options::background_thread, "0|1|auto", false, 0, 2, 0,
     "1: a thread gives memory back while the program rests; auto: if the program has threads of its own"},
    {"cache", &Options::cache, "unlimited|adaptive|none", false, 0, 2, 1,
     "what is freed waits for its own kind of request: until somebody asks for it, for a while, or not at all"},
    {"thp", &Options::thp, "auto|always|never", false, 0, 2, 0,
     "transparent hugepages: where demand fills them, everywhere, or nowhere"},
    {"populate", &Options::populate, "off|partial|all|auto", false, 0, 3, 0,
     "memory backed by one call instead of a fault a page: none, slabs, everything, or what is filled anyway"},
    {"leaks", &Options::leaks, "off|exit", false, 0, 1, 0,
     "exit: what nothing leads to any more when the program exits, on stderr"},
    {"guards", &Options::guards, nullptr, false, 0, 1000000000, 65536,
     "one in so many small objects is guarded, so that an overflow or a use after free is found; 0 none, 1 all"},
    {"report", &Options::report, "line|stack", false, 0, 1, 0,
     "stack: a report of misuse says also where it was called from; of guarded and sampled objects it always does"},
    {"misuse", &Options::misuse, "abort|warn|hook", false, 0, 2, 0,
     "what follows a report of misuse: abort(); warn: the call does nothing and the program goes on; hook: it decides"},
    {"canary", &Options::canary, nullptr, false, 0, 1, 0,
     "1: a secret word behind each small object, looked at when it is freed"},
    {"zero", &Options::zero, nullptr, false, 0, 1, 0,
     "1: freed memory is cleared, and looked at before it is handed out again"},
    {"quarantine", &Options::quarantine, nullptr, false, 0, 1000, 0,
     "a freed object waits until its slab has offered so often since; 0 not at all"},
    {"random", &Options::random, nullptr, false, 0, 1, 0, "1: which free objects malloc hands out is drawn at random"},
    {"guard", &Options::guard, nullptr, false, 0, 1000000, 0,
     "one in so many slabs ends in a page without access; 0 none, and malloc(0) is like any"},
    {"prof", &Options::prof, "off|on", true, 0, std::int64_t{1} << 50, 0,
     "bytes between two blocks whose stacks are written down, on average; on: 512K"},
};

// The values in force. Written by load(), mallopt() and control/.
extern Options options;

// Where samples go at exit (BRIMFUL_CONF=prof_file:PATH, or BRIMFUL_PROF_FILE): a text, so it is in no table. "": nowhere.
inline constexpr const char* kPathOption = "prof_file";
inline constexpr std::size_t kPathBytes = 1024;
extern char prof_file[kPathBytes];

// Reads the environment into `options`, and keeps the way to stderr when something is to be printed at exit. No
// allocation; at most one warning line per wrong entry.
void load();

// What slow paths ask at each call, put together by load() from the options above.
struct Checks {
  bool objects = false;  // they are looked at when they are freed and before they are offered: canary or zero
  bool offers = false;   // what is offered is chosen in C++, so malloc goes on to no group by itself
  bool books = false;    // slabs have a book (meta/header.h)
  bool canary = false;
  bool zero = false;
};
extern Checks checks;

// For tests: applies one "key:value,key:value" text to `into`, warning through `warn` (nullptr: silently).
void apply(const char* text, Options& into, void (*warn)(const char* line));

// Every option at its initial value.
constexpr Options initial_options() {
  Options result = {};
  for (const OptionInfo& option : kOptions) result.*option.field = option.initial;
  return result;
}

inline FrontEnd front_end() { return options.front_end.as<FrontEnd>(); }
inline bool is_hardened() { return options.tier.as<Tier>() == Tier::kHardened; }
// free() takes the slow path each time.
inline bool sees_each_free() { return is_hardened() || checks.objects; }
// malloc goes on to no group by itself: live bits are set, and objects chosen and looked at, when they are offered.
inline bool offers_by_hand() { return is_hardened() || checks.offers; }
inline bool draws_offers() { return options.random != 0; }
inline Exhaustion on_exhaustion() { return options.on_exhaustion.as<Exhaustion>(); }
inline Hugetlb hugetlb() { return options.hugetlb.as<Hugetlb>(); }
inline Purge purge_kind() { return options.purge.as<Purge>(); }
inline Thp thp() { return options.thp.as<Thp>(); }
inline Populate populate() { return options.populate.as<Populate>(); }
inline BackgroundThread background_thread() { return options.background_thread.as<BackgroundThread>(); }
inline Cache cache() { return options.cache.as<Cache>(); }
inline Leaks leaks() { return options.leaks.as<Leaks>(); }
inline Report report_kind() { return options.report.as<Report>(); }
inline OnMisuse on_misuse() { return options.misuse.as<OnMisuse>(); }
inline PrintStats print_stats() { return options.print_stats.as<PrintStats>(); }

}  // namespace brimful::config
