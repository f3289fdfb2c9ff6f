// SPDX-License-Identifier: MIT
//
// What the library counts by itself: events of slow paths, calls, page statistics, locks, limits. A few reads for each
// context, however large the heap is.
//
// A number that only grows is right whenever it is read. What goes together is read until two looks agree: the page
// statistics, which the heap's lock guards, and a context's sums that say how many objects malloc was given. Where five
// looks don't agree, it is named in `moving`.
//
// How many calls of malloc there were nobody counts, but malloc's slow paths offer it objects a few at a time, and count
// those off for the next sample (src/slots/sampling.h). So the number of objects that were offered is known, and what
// was offered and not taken is at most 64 of each class and context.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "stats/reader.h"

namespace brimful::observer::stats {

class Counters {
 public:
  // Names of events, once.
  void read_names(const Reader& reader);
  // Adds all to `into`.
  void look(const Reader& reader, nlohmann::json& into);

 private:
  struct Sums;

  static void add_pages(const Reader& reader, nlohmann::json& into);
  static void add_limits(const Reader& reader, nlohmann::json& into);
  static void add_misuse(const Reader& reader, nlohmann::json& into);
  static void add_backing(const Reader& reader, nlohmann::json& into);
  static void add_counts(const Reader& reader, const Copy& context, Sums& sums);
  static void add_context(const Reader& reader, Copy& context, std::uint64_t address, Sums& sums);
  static void add_central(const Reader& reader, nlohmann::json& locks);
  static void add_calls(const Reader& reader, const Sums& sums, nlohmann::json& into);

  std::vector<std::string> events_;
};

}  // namespace brimful::observer::stats
