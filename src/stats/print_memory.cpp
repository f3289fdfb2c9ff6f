// SPDX-License-Identifier: MIT
//
// stats/print_memory.h.
#include "stats/print_memory.h"

#include "base/line.h"

namespace brimful::stats {
namespace {

// Thousandths as a percentage: 1234 is 123.4 %.
Output& percent(Output& out, std::uint64_t thousandths, std::size_t width) {
  return out.right((Line() << thousandths / 10 << "." << thousandths % 10 << " %").data(), width);
}

std::uint64_t ullage(std::uint64_t live, std::uint64_t resident) { return share(resident - live, resident); }

std::uint64_t mean_request(const slots::RequestSums& sums) {
  return sums.count == 0 ? 0 : sums.requested_bytes / sums.count;
}

void columns(Output& out, const MemoryUse& use) {
  out.right(use.resident_bytes, 14).right(use.live_bytes, 14);
  percent(out, ullage(use.live_bytes, use.resident_bytes), 14);
  out.right(use.requests.count, 14).right(mean_request(use.requests), 14) << "\n";
}

void use_json(Json& json, const MemoryUse& use) {
  json.number("resident", use.resident_bytes);
  json.number("live", use.live_bytes);
  json.thousandths("ullage", ullage(use.live_bytes, use.resident_bytes));
  json.number("requests", use.requests.count);
  json.number("requested", use.requests.requested_bytes);
  json.number("granted", use.requests.granted_bytes);
}

}  // namespace

void memory_text(Output& out, const MemoryReport& report) {
  const std::uint64_t resident = report.resident_bytes;
  const auto line = [&](const char* name, std::uint64_t bytes) {
    out.left(name, 24).right(bytes, 16) << " bytes";
    percent(out, share(bytes, resident), 10) << "\n";
  };
  line("  resident", resident);
  line("    live objects", report.live_bytes);
  line("      not asked for", report.internal_bytes);
  if (report.sampled.samples != 0) {
    line("      by live samples", report.sampled.usable_bytes);
    line("        not asked for", report.sampled.usable_bytes - report.sampled.requested_bytes);
  }
  line("    free in slabs", report.slab_free_bytes);
  line("    free runs", report.run_free_bytes);
  line("    metadata", report.metadata_bytes);
  percent(out.left("  ullage", 46), ullage(report.live_bytes, resident), 10) << "\n";
  out.left("  internal / external fragmentation", 46);
  (out.right("", 3)).thousandths(share(report.internal_bytes, report.external_bytes())) << "\n";
  out << "  resident of      resident          live        ullage      requests  mean request\n";
  for (std::size_t c = 0; c < kClassCount; ++c) {
    if (report.classes[c].resident_bytes != 0) columns(out.right(kSizeClasses[c].bytes, 13), report.classes[c]);
  }
  if (report.blocks.resident_bytes != 0) columns(out.right("large, huge", 13), report.blocks);
}

void memory_json(Json& json, const MemoryReport& report) {
  const std::uint64_t resident = report.resident_bytes;
  json.begin("resident");
  json.number("bytes", resident);
  json.number("live", report.live_bytes);
  json.number("not_requested", report.internal_bytes);
  json.number("slab_free", report.slab_free_bytes);
  json.number("run_free", report.run_free_bytes);
  json.number("metadata", report.metadata_bytes);
  json.thousandths("ullage", ullage(report.live_bytes, resident));
  json.thousandths("internal", share(report.internal_bytes, resident));
  json.thousandths("external", share(report.external_bytes(), resident));
  json.thousandths("internal_by_external", share(report.internal_bytes, report.external_bytes()));
  if (report.sampled.samples != 0) {
    json.begin("sampled");
    json.number("samples", report.sampled.samples);
    json.number("usable", report.sampled.usable_bytes);
    json.number("requested", report.sampled.requested_bytes);
    json.end();
  }
  json.begin("classes");
  for (std::size_t c = 0; c < kClassCount; ++c) {
    if (report.classes[c].slabs == 0) continue;
    json.begin(kSizeClasses[c].bytes);
    use_json(json, report.classes[c]);
    json.end();
  }
  json.end();
  json.begin("blocks");
  use_json(json, report.blocks);
  json.end();
  json.end();
}

}  // namespace brimful::stats
