// SPDX-License-Identifier: MIT
//
// report.h.
#include "report.h"

#include <algorithm>

#include "arch/sequences.h"
#include "slots/context.h"

namespace brimful::topology {
namespace {

double per_thousand(std::uint64_t count, const Result& result) {
  return 1000.0 * static_cast<double>(count) / static_cast<double>(std::max<std::uint64_t>(result.operations, 1));
}

template <class Value>
void print_row(std::FILE* to, const char* name, const std::vector<Result>& results, const char* format, Value value) {
  std::fprintf(to, "  %-24s", name);
  for (const Result& result : results) std::fprintf(to, format, value(result));
  std::fputc('\n', to);
}

template <class Count>
void print_rate(std::FILE* to, const char* name, const std::vector<Result>& results, Count count) {
  print_row(to, name, results, " %12.3f", [&count](const Result& r) { return per_thousand(count(r), r); });
}

void print_field(std::FILE* to, const char* name, std::uint64_t value, bool* first) {
  std::fprintf(to, "%s\"%s\": %llu", *first ? "" : ", ", name, static_cast<unsigned long long>(value));
  *first = false;
}

// {"name": count, …}
template <class Names, class Values>
void print_object(std::FILE* to, const char* key, const Names& names, const Values& values) {
  std::fprintf(to, "\"%s\": {", key);
  bool first = true;
  for (std::size_t i = 0; i < names.size(); ++i) print_field(to, names[i], values[i], &first);
  std::fputs("}", to);
}

void print_census(std::FILE* to, const char* key, const Census& census) {
  constexpr std::array kNames = {"live_bytes",     "pending_objects", "pending_bytes",  "slab_bytes",
                                 "resident_bytes", "free_bytes",      "slabs",          "owned_slabs",
                                 "most_owned",     "detached_slabs",  "central_slabs",  "contexts",
                                 "context_bytes",  "header_bytes",    "metadata_bytes", "table_bytes"};
  const std::array values = {census.live_bytes,     census.pending_objects, census.pending_bytes,  census.slab_bytes,
                             census.resident_bytes, census.free_bytes,      census.slabs,          census.owned_slabs,
                             census.most_owned,     census.detached_slabs,  census.central_slabs,  census.contexts,
                             census.context_bytes,  census.header_bytes,    census.metadata_bytes, census.table_bytes};
  print_object(to, key, kNames, values);
}

void print_traffic_table(std::FILE* to, const std::vector<Result>& results) {
  std::fputs("transfers of cache lines between CPUs, per 1000 operations\n", to);
  const auto sum = [](const auto& counts) {
    std::uint64_t all = 0;
    for (const std::uint64_t one : counts) all += one;
    return all;
  };
  for (std::size_t kind = 0; kind < traffic::kKinds; ++kind) {
    print_rate(to, traffic::kKindNames[kind], results, [kind](const Result& r) { return r.traffic.transfers[kind]; });
  }
  print_rate(to, "all", results, [&sum](const Result& r) { return sum(r.traffic.transfers); });
  print_rate(to, "of these between nodes", results, [&sum](const Result& r) { return sum(r.traffic.crossings); });
  print_rate(to, "under the heap lock", results, [](const Result& r) { return r.traffic.transfers_in_heap_lock; });
  std::fputs("acquisitions of locks, per 1000 operations\n", to);
  for (std::size_t rank = 0; rank < traffic::kRanks; ++rank) {
    print_rate(to, traffic::kRankNames[rank], results, [rank](const Result& r) { return r.traffic.locks[rank]; });
  }
}

double kib(std::uint64_t bytes) { return static_cast<double>(bytes) / 1024; }

}  // namespace

void print_table(std::FILE* to, const Setting& setting, const std::vector<Result>& results) {
  std::fprintf(to, "%u CPUs on %u nodes, %s front end, %s sequences, %u rounds, seed %lu\n\n", setting.cpus,
               setting.nodes, setting.front_end, arch::kRestartable ? "assembly" : "portable", setting.rounds,
               setting.seed);
  print_row(to, "", results, " %12s", [](const Result& r) { return r.workload; });
  print_row(to, "operations", results, " %12llu",
            [](const Result& r) { return static_cast<unsigned long long>(r.operations); });
  std::fputs("events, per 1000 operations\n", to);
  for (std::size_t event = 0; event < slots::kEventCount; ++event) {
    print_rate(to, slots::kEventNames[event], results, [event](const Result& r) { return r.events[event]; });
  }
  if (traffic::is_counted()) print_traffic_table(to, results);
  std::fputs("memory when the work is done, KiB\n", to);
  const auto size = [to, &results](const char* name, std::uint64_t Census::*field) {
    print_row(to, name, results, " %12.1f", [field](const Result& r) { return kib(r.loaded.*field); });
  };
  size("live objects", &Census::live_bytes);
  size("resident in slabs", &Census::resident_bytes);
  size("pending frees", &Census::pending_bytes);
  size("contexts", &Census::context_bytes);
  size("headers of slabs", &Census::header_bytes);
  size("granule table", &Census::table_bytes);
  std::fputs("slabs when the work is done\n", to);
  const auto number = [to, &results](const char* name, std::uint64_t Census::*field) {
    print_row(to, name, results, " %12llu",
              [field](const Result& r) { return static_cast<unsigned long long>(r.loaded.*field); });
  };
  number("all", &Census::slabs);
  number("owned by contexts", &Census::owned_slabs);
  number("most by one", &Census::most_owned);
  number("detached", &Census::detached_slabs);
  number("in the central index", &Census::central_slabs);
  std::fputs("slabs when all is freed, and when the CPUs are idle\n", to);
  print_row(to, "freed", results, " %12llu",
            [](const Result& r) { return static_cast<unsigned long long>(r.freed.slabs); });
  print_row(to, "idle", results, " %12llu",
            [](const Result& r) { return static_cast<unsigned long long>(r.idle.slabs); });
}

void print_json(std::FILE* to, const Setting& setting, const std::vector<Result>& results) {
  std::fprintf(to,
               "{\"cpus\": %u, \"nodes\": %u, \"rounds\": %u, \"seed\": %lu, \"front_end\": \"%s\", "
               "\"sequences\": \"%s\", \"context_bytes\": %zu, \"workloads\": {",
               setting.cpus, setting.nodes, setting.rounds, setting.seed, setting.front_end,
               arch::kRestartable ? "assembly" : "portable", sizeof(Context));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& r = results[i];
    std::fprintf(to, "%s\"%s\": {\"operations\": %llu, ", i == 0 ? "" : ", ", r.workload,
                 static_cast<unsigned long long>(r.operations));
    print_object(to, "events", slots::kEventNames, r.events);
    if (traffic::is_counted()) {
      std::fputs(", ", to);
      print_object(to, "transfers", traffic::kKindNames, r.traffic.transfers);
      std::fputs(", ", to);
      print_object(to, "crossings", traffic::kKindNames, r.traffic.crossings);
      std::fputs(", ", to);
      print_object(to, "locks", traffic::kRankNames, r.traffic.locks);
      std::fprintf(to, ", \"transfers_in_heap_lock\": %llu",
                   static_cast<unsigned long long>(r.traffic.transfers_in_heap_lock));
    }
    std::fputs(", ", to);
    print_census(to, "loaded", r.loaded);
    std::fputs(", ", to);
    print_census(to, "freed", r.freed);
    std::fputs(", ", to);
    print_census(to, "idle", r.idle);
    std::fputs("}", to);
  }
  std::fputs("}}\n", to);
}

}  // namespace brimful::topology
