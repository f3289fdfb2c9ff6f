// SPDX-License-Identifier: MIT
//
// config/options.h: what a user can write, and what he is told when it means nothing.
#include "config/options.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "base/line.h"

namespace brimful::config {
namespace {

std::vector<std::string> warnings;
void remember(const char* line) { warnings.emplace_back(line); }

// The options after `text`, and its warnings in `warnings`.
Options after(const std::string& text) {
  warnings.clear();
  Options result = initial_options();
  apply(text.c_str(), result, remember);
  return result;
}

bool same(const Options& a, const Options& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

void expect_ignored(const std::string& text, const std::string& warning) {
  EXPECT_TRUE(same(after(text), initial_options())) << text;
  EXPECT_EQ(warnings, std::vector<std::string>{warning}) << text;
}

TEST(Options, StartAtTheirInitialValues) {
  const Options initial = initial_options();
  for (const OptionInfo& option : kOptions) EXPECT_EQ(initial.*option.field, option.initial) << option.name;
  EXPECT_EQ(initial.purge_delay_ms, 1000);
  EXPECT_TRUE(same(initial, options)) << "the values before load() are the same";
}

TEST(Options, TakeEveryWordOfAChoice) {
  for (const OptionInfo& option : kOptions) {
    if (option.words == nullptr) continue;
    std::istringstream words(option.words);
    const std::int64_t step = option.is_bytes ? kOnBytes : 1;
    std::int64_t number = 0;
    for (std::string word; std::getline(words, word, '|'); number += step) {
      EXPECT_EQ(after(std::string(option.name) + ":" + word).*option.field, number) << option.name << " " << word;
      EXPECT_TRUE(warnings.empty());
    }
    if (!option.is_bytes) EXPECT_EQ(number, option.most + 1) << option.name;
  }
}

TEST(Options, TakeNumbersFromTheLeastToTheMostAndNoOthers) {
  for (const OptionInfo& option : kOptions) {
    if (option.words != nullptr && !option.is_bytes) continue;
    const auto text = [&](std::int64_t value) { return std::string(option.name) + ":" + std::to_string(value); };
    for (const std::int64_t value : {option.least, option.least + 1, option.most}) {
      EXPECT_EQ(after(text(value)).*option.field, value);
      EXPECT_TRUE(warnings.empty()) << text(value);
    }
    for (const std::int64_t value : {option.least - 1, option.most + 1, INT64_MAX}) {
      EXPECT_TRUE(same(after(text(value)), initial_options())) << text(value);
      EXPECT_EQ(warnings.size(), 1U) << text(value);
    }
  }
}

TEST(Options, TakeByteSuffixesInEitherCase) {
  EXPECT_EQ(after("reserve:4096").reserve, 4096);
  EXPECT_EQ(after("reserve:64K").reserve, 64 << 10);
  EXPECT_EQ(after("reserve:3m").reserve, 3 << 20);
  EXPECT_EQ(after("reserve:7G").reserve, std::int64_t{7} << 30);
  EXPECT_EQ(after("reserve:1T").reserve, std::int64_t{1} << 40);
  EXPECT_TRUE(warnings.empty());
  for (const char* bad :
       {"reserve:2T", "reserve:1X", "reserve:K", "reserve:1KB", "reserve:1 K", "reserve:0x10",
        "reserve:9999999999999999999", "reserve:99999999999999999999", "reserve:9999999999T", "reserve:-1K",
        "purge_delay_ms:1K", "verbose:1K", "reserve:1.5G", "reserve:+1", "reserve:-"}) {
    EXPECT_TRUE(same(after(bad), initial_options())) << bad;
    EXPECT_EQ(warnings.size(), 1U) << bad;
  }
}

TEST(Options, LeaveSomeNumbersOfBytesToTheLibrary) {
  EXPECT_EQ(after("limit:auto").limit, kAutoBytes);
  EXPECT_EQ(after("soft_limit:auto,limit:3G").soft_limit, kAutoBytes);
  EXPECT_TRUE(warnings.empty());
  expect_ignored("limit:automatic",
                 "option \"limit\" can't be \"automatic\": it takes auto or 0 to 1125899906842624; ignored");
  expect_ignored("reserve:auto", "option \"reserve\" can't be \"auto\": it takes 0 to 1099511627776; ignored");
}

TEST(Options, NameTheNearestOptionForAnUnknownOne) {
  expect_ignored("purge_delay:5", "unknown option \"purge_delay\": did you mean \"purge_delay_ms\"?");
  expect_ignored("verbos:1", "unknown option \"verbos\": did you mean \"verbose\"?");
  expect_ignored("teir:hardened", "unknown option \"teir\": did you mean \"tier\"?");
  expect_ignored("front-end:thread", "unknown option \"front-end\": did you mean \"front_end\"?");
  expect_ignored("Verbose:1", "unknown option \"Verbose\": did you mean \"verbose\"?");
  expect_ignored("nonsense:1", "unknown option \"nonsense\": ignored; `man brimful` lists the options");
  expect_ignored("x", "unknown option \"x\": ignored; `man brimful` lists the options");
  expect_ignored("on_exhausted:null", "unknown option \"on_exhausted\": did you mean \"on_exhaustion\"?");
}

TEST(Options, SayWhatABadValueShouldHaveBeen) {
  expect_ignored("front_end:cpu", "option \"front_end\" can't be \"cpu\": it takes auto|percpu|thread; ignored");
  expect_ignored("tier:", "option \"tier\" can't be \"\": it takes default|hardened; ignored");
  expect_ignored("tier", "option \"tier\" can't be \"\": it takes default|hardened; ignored");
  expect_ignored("tier:default|hardened",
                 "option \"tier\" can't be \"default|hardened\": it takes default|hardened; ignored");
  expect_ignored("verbose:2", "option \"verbose\" can't be \"2\": it takes 0 to 1; ignored");
  expect_ignored("verbose:1:1", "option \"verbose\" can't be \"1:1\": it takes 0 to 1; ignored");
  expect_ignored("purge_delay_ms:-2", "option \"purge_delay_ms\" can't be \"-2\": it takes -1 to 3600000; ignored");
}

TEST(Options, SkipEmptyEntriesInSilence) {
  EXPECT_EQ(after(",,verbose:1,,tier:hardened,").verbose, 1);
  EXPECT_TRUE(warnings.empty());
  EXPECT_TRUE(same(after(""), initial_options()));
  EXPECT_TRUE(same(after(",,,"), initial_options()));
  EXPECT_TRUE(warnings.empty());
  after(":1");
  EXPECT_EQ(warnings.size(), 1U) << "an entry without a name is not empty";
}

TEST(Options, LetTheLastGoodMentionWin) {
  EXPECT_EQ(after("verbose:1,verbose:0").verbose, 0);
  EXPECT_EQ(after("purge_delay_ms:5,tier:hardened,purge_delay_ms:7").purge_delay_ms, 7);
  EXPECT_EQ(after("verbose:1,verbose:yes").verbose, 1);
  EXPECT_EQ(warnings.size(), 1U);
}

TEST(Options, GoOnAfterWhatMeansNothing) {
  const Options result = after("bogus:1,verbose:1,tier:soft,front_end:thread");
  EXPECT_EQ(result.verbose, 1);
  EXPECT_EQ(result.front_end, static_cast<std::int64_t>(FrontEnd::kThread));
  EXPECT_EQ(warnings.size(), 2U);
}

TEST(Options, SurviveKeysAndValuesOfAnyLength) {
  for (const std::size_t length : {30U, 31U, 32U, 33U, 479U, 480U, 481U, 100000U}) {
    const std::string word(length, 'x');
    after(word + ":1");
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_LE(warnings[0].size(), Line::kCapacity);
    EXPECT_EQ(warnings[0].substr(0, 17), "unknown option \"x");
    after("tier:" + word);
    ASSERT_EQ(warnings.size(), 1U);
    EXPECT_LE(warnings[0].size(), Line::kCapacity);
    EXPECT_TRUE(same(after("verbose:" + std::string(length, '9')), initial_options()));
  }
  EXPECT_EQ(after("verbose:" + std::string(1000, '0') + "1").verbose, 1);
}

TEST(Options, WarnOnOneLineWhateverTheTextHolds) {
  after("tier:a\nb\tc\x1b[31m");
  ASSERT_EQ(warnings.size(), 1U);
  for (const char c : warnings[0]) EXPECT_GE(c, ' ');
  Options result = initial_options();
  apply("bogus:1", result, nullptr);  // silently
}

TEST(Options, LoadFromTheEnvironmentWithSingleVariablesOverTheCombinedOne) {
  setenv("BRIMFUL_CONF", "verbose:0,tier:hardened,purge_delay_ms:12", 1);
  setenv("BRIMFUL_PURGE_DELAY_MS", "-1", 1);
  setenv("BRIMFUL_ON_EXHAUSTION", "null", 1);
  load();
  EXPECT_TRUE(is_hardened());
  EXPECT_EQ(options.purge_delay_ms, -1);
  EXPECT_EQ(on_exhaustion(), Exhaustion::kNull);
  EXPECT_EQ(front_end(), FrontEnd::kAuto);
  unsetenv("BRIMFUL_CONF");
  unsetenv("BRIMFUL_PURGE_DELAY_MS");
  unsetenv("BRIMFUL_ON_EXHAUSTION");
  load();
  EXPECT_TRUE(same(options, initial_options()));
}

}  // namespace
}  // namespace brimful::config
