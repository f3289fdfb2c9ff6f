// SPDX-License-Identifier: MIT
//
// {"schema": "brimful-samples", "version": 1, …}: tables that refer to each other by index, because thousands of samples
// share a few stacks, and these a few places.
//
//   samples ──▶ stacks ──▶ locations ──▶ modules
#include <nlohmann/json.hpp>

#include <iostream>

#include "stacks/names.h"
#include "stacks/session.h"

namespace brimful::observer::stacks {

namespace {

using nlohmann::json;

constexpr int kVersion = 1;

const char* name_of(End end) {
  switch (end) {
    case End::kComplete:
      return "complete";
    case End::kTruncated:
      return "truncated";
    case End::kUnknown:
      break;
  }
  return "unknown";
}

json location_json(const Location& location, const Session& session, const PerfMap& jit) {
  json lines = json::array();
  if (location.function >= 0) {
    const PythonFunction& function = session.samples().functions()[static_cast<std::size_t>(location.function)];
    lines.push_back({function.name, function.file, function.line});
    return {{"module", kNoFile}, {"address", 0}, {"lines", std::move(lines)}};
  }
  for (const Line& line : names_of(session.modules(), jit, location.place)) {
    lines.push_back({line.function, line.file, line.line});
  }
  return {{"module", location.place.module}, {"address", location.place.address}, {"lines", std::move(lines)}};
}

}  // namespace

void print(const Session& session, const Report& report) {
  const Samples& found = session.samples();
  const PerfMap jit = session.perf_map();
  json modules = json::array();
  for (int i = 0; i < session.modules().count(); i++) {
    const Module* module = session.modules().module(i);
    modules.push_back({{"path", session.modules().path(i)}, {"build_id", module == nullptr ? "" : module->build_id()}});
  }
  json locations = json::array();
  for (const Location& location : found.locations()) locations.push_back(location_json(location, session, jit));
  json stacks = json::array();
  for (const Stack& stack : found.stacks()) {
    stacks.push_back({{"end", name_of(stack.end)}, {"locations", stack.locations}});
  }
  json samples = json::array();
  for (const Sample& s : found.samples()) {
    samples.push_back({s.number, s.address, s.requested, s.usable, s.interval, s.allocated_ns, s.freed_ns, s.thread,
                       s.freed_by, s.flags, s.allocation, s.release});
  }
  const json answer = {
      {"schema", "brimful-samples"},   {"version", kVersion},
      {"pid", report.process},         {"program", report.program},
      {"name", report.name},           {"began_ns", report.began_ns},
      {"ended_ns", report.ended_ns},   {"began_unix", report.began_unix},
      {"interval", report.interval},   {"complete", report.complete},
      {"ended", report.ended},         {"missed", report.missed},
      {"lost", report.lost},           {"allocated_bytes", report.allocated_bytes},
      {"modules", std::move(modules)}, {"locations", std::move(locations)},
      {"stacks", std::move(stacks)},   {"samples", std::move(samples)},
  };
  // A name of a foreign encoding must not make the whole answer unreadable.
  std::cout << answer.dump(-1, ' ', false, json::error_handler_t::replace) << '\n';
}

}  // namespace brimful::observer::stacks
