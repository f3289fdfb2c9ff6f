// SPDX-License-Identifier: MIT
//
// stats/counters.h.
#include "stats/counters.h"

#include <algorithm>

#include "meta/sample_record.h"

namespace brimful::observer::stats {
namespace {

using nlohmann::json;

constexpr int kLooks = 5;
constexpr std::size_t kMostContexts = 1 << 16;
constexpr std::uint64_t kMostClasses = 255;

constexpr const char* kLockFields[] = {"acquisitions", "contended", "sleeps", "wait_ns", "busy"};
constexpr const char* kPageFields[] = {"reserved",
                                       "committed",
                                       "used",
                                       "dirty",
                                       "muzzy",
                                       "purged",
                                       "purges",
                                       "refaulted",
                                       "hugetlb",
                                       "hugepages_in_use",
                                       "hugepages_partly_used",
                                       "hugepages_free"};

json no_lock_use() {
  json use;
  for (const char* field : kLockFields) use[field] = std::uint64_t{0};
  return use;
}

void add_lock(const Reader& reader, const Copy& copy, std::uint64_t lock, json& sum) {
  for (const char* field : kLockFields) {
    const std::string name = std::string("lock.") + field;
    sum[field] = sum[field].get<std::uint64_t>() + copy.at(lock + reader[name.c_str()]);
  }
}

// The structure, read until two looks agree; false: they never did.
bool copy_twice(const Reader& reader, std::uint64_t address, std::uint64_t bytes, Copy& copy) {
  copy = reader.copy(address, bytes);
  for (int look = 0; look < kLooks; ++look) {
    Copy again = reader.copy(address, bytes);
    if (again == copy) return true;
    copy = std::move(again);
  }
  return false;
}

}  // namespace

struct Counters::Sums {
  std::uint64_t contexts = 0;
  std::vector<std::uint64_t> events;
  std::vector<std::uint64_t> seen;  // requests that slow paths saw, by class; the last: larger blocks
  std::vector<std::uint64_t> requested;
  std::vector<std::uint64_t> granted;
  std::uint64_t objects = 0;      // that malloc was given
  std::uint64_t stack_bytes = 0;  // of large blocks that malloc took from stacks
  bool is_moving = false;
  json locks = no_lock_use();
};

void Counters::read_names(const Reader& reader) {
  events_.clear();
  const std::uint64_t count = std::min<std::uint64_t>(reader["events.count"], 256);
  const Copy names = reader.copy(reader["events.names"], count * 8);
  for (std::uint64_t n = 0; n < count && !reader.has_failed(); ++n) events_.push_back(reader.text(names.at(n * 8)));
}

void Counters::add_pages(const Reader& reader, json& into) {
  Copy copy;
  if (!copy_twice(reader, reader["pages.stats"], reader["pages.size"], copy)) into["moving"].push_back("pages");
  json& pages = into["pages"];
  for (const char* field : kPageFields) pages[field] = copy.at(reader[(std::string("pages.") + field).c_str()]);
  pages["metadata"] = reader.variable("arena.mapped");
  pages["huge_blocks"] = reader.variable("huge.count");
  pages["huge"] = reader.variable("huge.used");
  pages["huge_kept"] = reader.variable("huge.kept_bytes");
}

void Counters::add_limits(const Reader& reader, json& into) {
  const std::uint64_t at = reader["limits"];
  const auto number = [&](const char* name) { return reader.copy(at + reader[name], 8).at(0); };
  into["limits"] = {{"hard", number("limits.hard")},
                    {"soft", number("limits.soft")},
                    {"refusals", number("limits.refusals")},
                    {"memory_is_short", reader.variable<std::uint8_t>("limits.memory_is_short") != 0}};
}

void Counters::add_misuse(const Reader& reader, json& into) {
  const std::uint64_t kinds = std::min<std::uint64_t>(reader["misuse.kinds"], 256);
  const Copy counts = reader.copy(reader["misuse.counts"], kinds * 8);
  std::uint64_t reports = 0;
  for (std::uint64_t n = 0; n < kinds; ++n) reports += counts.at(n * 8);
  into["misuse"] = {{"reports", reports}};
}

void Counters::add_backing(const Reader& reader, json& into) {
  const std::uint64_t size = reader["extent.size"];
  const std::uint64_t count = std::min<std::uint64_t>(reader["extents"], 256);
  const Copy extents = reader.copy(reader["backing.extents"], count * size);
  std::uint64_t advised = 0;
  for (std::uint64_t n = 0; n < count; ++n) {
    const std::uint64_t start = extents.at(n * size + reader["extent.start"]);
    advised += std::max(extents.at(n * size + reader["extent.end"]), start) - start;
  }
  into["backing"] = {{"advised", advised},
                     {"populated", reader.variable("backing.populated")},
                     {"refused", reader.variable<std::uint8_t>("backing.refused") != 0}};
}

void Counters::add_counts(const Reader& reader, const Copy& context, Sums& sums) {
  for (std::uint64_t n = 0; n < sums.events.size(); ++n) sums.events[n] += context.at(reader["context.events"] + n * 8);
  for (std::uint64_t n = 0; n < sums.seen.size(); ++n) {
    const std::uint64_t at = reader["context.requests"] + n * reader["requests.size"];
    sums.seen[n] += context.at(at + reader["requests.seen"]);
    sums.requested[n] += context.at(at + reader["requests.requested"]);
    sums.granted[n] += context.at(at + reader["requests.granted"]);
  }
}

void Counters::add_context(const Reader& reader, Copy& context, std::uint64_t address, Sums& sums) {
  ++sums.contexts;
  add_lock(reader, context, reader["context.lock"], sums.locks);
  add_counts(reader, context, sums);
  // Two halves of a difference: what is raised between them would be wrong by up to two thousand millions.
  const std::uint64_t runs = reader["context.runs"];
  const std::uint64_t sampling = reader["context.sampling"];
  const auto raised = [&](const Copy& copy) {
    return std::pair(copy.at(sampling + reader["sampling.raised"]), copy.at(runs + reader["runs.raised"]));
  };
  bool is_same = false;
  for (int look = 0; look < kLooks && !is_same; ++look) {
    Copy again = reader.copy(address, context.bytes().size());
    is_same = raised(again) == raised(context);
    context = std::move(again);
  }
  sums.is_moving |= !is_same;
  const std::uint64_t classes = std::min(reader["classes"], kMostClasses);
  sums.objects += context.at(sampling + reader["sampling.raised"]);
  for (std::uint64_t n = 0; n < classes; ++n) {
    const std::uint64_t point = sampling + n * reader["sampling.point"];
    sums.objects -= static_cast<std::uint64_t>(context.at<std::int32_t>(point + reader["sampling.until"]));
  }
  sums.stack_bytes += context.at(runs + reader["runs.raised"]) - context.at(runs + reader["runs.until"]);
}

void Counters::add_central(const Reader& reader, json& locks) {
  const std::uint64_t size = reader["central.size"];
  const std::uint64_t classes = std::min(reader["classes"], kMostClasses);
  const Copy central = reader.copy(reader["central"], classes * size);
  const Copy table = reader.copy(reader["class.table"], classes * reader["class.size"]);
  json sum = no_lock_use();
  json by_class = json::object();
  for (std::uint64_t n = 0; n < classes; ++n) {
    json use = no_lock_use();
    add_lock(reader, central, n * size + reader["central.lock"], use);
    add_lock(reader, central, n * size + reader["central.lock"], sum);
    const auto bytes = table.at<std::uint32_t>(n * reader["class.size"] + reader["class.bytes"]);
    if (use["acquisitions"] != 0 || use["busy"] != 0) by_class[std::to_string(bytes)] = std::move(use);
  }
  locks["central"] = std::move(sum);
  locks["central"]["classes"] = std::move(by_class);
}

void Counters::add_calls(const Reader& reader, const Sums& sums, json& into) {
  meta::SampleControl control = {};
  Copy copy = reader.copy(reader["samples.control"], sizeof control);
  const auto number = [&](std::size_t offset) { return copy.at(offset); };
  const std::uint64_t sampled = number(offsetof(meta::SampleControl, taken));
  const std::uint64_t interval = number(offsetof(meta::SampleControl, interval_bytes));
  into["sampling"] = {{"interval", interval == meta::kIntervalUnread ? 0 : interval},
                      {"taken", sampled},
                      {"freed", number(offsetof(meta::SampleControl, freed))},
                      {"lost", number(offsetof(meta::SampleControl, lost))}};
  const std::uint64_t seen = sums.seen.empty() ? 0 : sums.seen.back();
  const std::uint64_t mean = seen == 0 ? 0 : sums.granted.back() / seen;
  const std::uint64_t from_stacks = mean == 0 ? 0 : sums.stack_bytes / mean;
  into["calls"] = {{"objects", sums.objects},
                   {"large_seen", seen},
                   {"large_from_stacks", from_stacks},
                   {"sampled", sampled},
                   {"mallocs", sums.objects + into["events"].value("shared_object", std::uint64_t{0}) + sampled + seen +
                                   from_stacks}};
}

void Counters::look(const Reader& reader, json& into) {
  into["moving"] = json::array();
  add_pages(reader, into);
  add_limits(reader, into);
  add_misuse(reader, into);
  add_backing(reader, into);
  Sums sums;
  sums.events.resize(events_.size());
  const std::uint64_t kinds = std::min<std::uint64_t>(reader["requests.kinds"], kMostClasses + 1);
  for (auto* list : {&sums.seen, &sums.requested, &sums.granted}) list->resize(kinds);
  // The empty context counts for threads that have none; it ends where sampling begins.
  add_counts(reader, reader.copy(reader.variable("contexts"), reader["context.sampling"]), sums);
  const std::uint64_t bytes = reader["context.sampling"] + reader["sampling.size"];
  std::uint64_t at = reader.variable("contexts.all");
  for (std::size_t n = 0; at != 0 && n < kMostContexts && !reader.has_failed(); ++n) {
    Copy context = reader.copy(at, bytes);
    add_context(reader, context, at, sums);
    at = context.at(reader["context.next"]);
  }
  if (sums.is_moving) into["moving"].push_back("calls");
  into["events"] = json::object();
  for (std::size_t n = 0; n < events_.size(); ++n) into["events"][events_[n]] = sums.events[n];
  into["contexts"] = sums.contexts;
  const bool is_per_cpu = reader.variable<std::uint8_t>("contexts.per_cpu") != 0;
  into["front_end"] = sums.contexts == 0 ? "none"
                      : is_per_cpu       ? "percpu"
                                         : "thread";  // none: nothing was allocated yet
  json& locks = into["locks"];
  locks["heap"] = no_lock_use();
  constexpr std::uint64_t kLockBytes = 64;
  add_lock(reader, reader.copy(reader["heap.lock"], kLockBytes), 0, locks["heap"]);
  add_central(reader, locks);
  locks["context"] = std::move(sums.locks);
  add_calls(reader, sums, into);
  const Copy table = reader.copy(reader["class.table"], (kinds - 1) * reader["class.size"]);
  json& requests = into["requests"];
  requests = json::object();
  for (std::size_t n = 0; n < kinds; ++n) {
    if (sums.seen[n] == 0) continue;
    const bool is_class = n + 1 < kinds;
    const auto size = table.at<std::uint32_t>(n * reader["class.size"] + reader["class.bytes"]);
    requests[is_class ? std::to_string(size) : "large"] = {
        {"seen", sums.seen[n]}, {"requested", sums.requested[n]}, {"granted", sums.granted[n]}};
  }
}

}  // namespace brimful::observer::stats
