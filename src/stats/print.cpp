// SPDX-License-Identifier: MIT
//
// The sections of stats/print.h. Tables leave out what was never used, and the locks of classes that nobody waited for;
// JSON leaves out unused classes only: who reads it by program shall find every other key.
#include "stats/print.h"

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "config/build.h"
#include "config/options.h"
#include "meta/misuse.h"
#include "os/clock.h"
#include "pages/heap.h"
#include "pages/pressure.h"
#include "slots/thread.h"
#include "stats/print_memory.h"

namespace brimful::stats {
namespace {

// Address space and usable bytes, blocks with a mapping of their own included.
std::uint64_t reserved_bytes(const Snapshot& heap) { return heap.reserved_bytes + heap.huge_bytes; }
std::uint64_t committed_bytes(const Snapshot& heap) { return heap.committed_bytes + heap.huge_bytes; }

// The builds for study have no contexts, and so no front end.
const char* front_end(const Report& report) {
  if (config::kMiddle != config::Middle::kContexts) return "none";
  return report.is_per_cpu ? "percpu" : "thread";
}
const char* tier() { return config::is_hardened() ? "hardened" : "default"; }

void process_text(Output& out, const Report& report) {
  out << "brimful: statistics of process " << report.process << ", ";
  out.thousandths(report.run_ms) << " s after its start: version " << config::kVersion << ", front end "
                                 << front_end(report) << ", " << report.locks.contexts
                                 << (report.locks.contexts == 1 ? " context" : " contexts") << ", tier " << tier()
                                 << "\n";
}

void process_json(Json& json, const Report& report) {
  json.string("schema", "brimful-statistics-1");
  json.string("version", config::kVersion);
  json.number("pid", report.process);
  json.thousandths("seconds", report.run_ms);
  json.string("front_end", front_end(report));
  json.string("tier", tier());
  json.number("contexts", report.locks.contexts);
}

void bytes_text(Output& out, const Report& report) {
  const auto line = [&](const char* name, std::uint64_t bytes) { out.left(name, 24).right(bytes, 16) << " bytes\n"; };
  line("  live", report.heap.live_bytes);
  line("  free inside slabs", report.heap.slab_free_bytes);
  line("  free, not given back", report.heap.dirty_bytes);
  line("  metadata", report.heap.metadata_bytes);
  line("  committed", committed_bytes(report.heap));
  if (report.heap.hugetlb_bytes != 0) line("  of the HugeTLB pool", report.heap.hugetlb_bytes);
  line("  address space", reserved_bytes(report.heap));
}

void bytes_json(Json& json, const Report& report) {
  json.begin("bytes");
  json.number("live", report.heap.live_bytes);
  json.number("slab_free", report.heap.slab_free_bytes);
  json.number("dirty", report.heap.dirty_bytes);
  json.number("metadata", report.heap.metadata_bytes);
  json.number("committed", committed_bytes(report.heap));
  json.number("hugetlb", report.heap.hugetlb_bytes);
  json.number("reserved", reserved_bytes(report.heap));
  json.end();
}

void limits_text(Output& out, const Report& report) {
  const auto line = [&](const char* name, std::uint64_t number, const char* unit) {
    if (number != 0) out.left(name, 24).right(number, 16) << unit;
  };
  line("  limit", report.limits.hard, " bytes\n");
  line("  soft limit", report.limits.soft, " bytes\n");
  line("  refused for the limit", report.limits.refusals, " requests\n");
  if (report.is_memory_short) out << "  memory is short: free memory goes back at once\n";
}

void limits_json(Json& json, const Report& report) {
  json.begin("limits");
  json.number("hard", report.limits.hard);
  json.number("soft", report.limits.soft);
  json.number("refusals", report.limits.refusals);
  json.number("memory_is_short", report.is_memory_short ? 1 : 0);
  json.end();
}

void misuse_text(Output& out, const Report& report) {
  if (report.misuse_reports == 0) return;
  out.left("  reports of misuse", 24).right(report.misuse_reports, 16) << "\n";
}

void misuse_json(Json& json, const Report& report) {
  json.begin("misuse");
  json.number("reports", report.misuse_reports);
  json.end();
}

void coverage_text(Output& out, const Report& report) {
  const auto line = [&](const char* name, std::uint64_t bytes) {
    if (bytes != 0) out.left(name, 24).right(bytes, 16) << " bytes\n";
  };
  line("  in hugepages", report.coverage.huge_bytes);
  line("  hugepages advised", report.coverage.advised_bytes);
  line("  populated in total", report.coverage.populated_bytes);
  const auto cost = [&](const char* name, std::uint64_t ns) {
    if (ns != 0) out.left(name, 24).right(ns, 16) << " ns a page\n";
  };
  cost("  touched memory costs", report.coverage.touched_ns);
  cost("  populated memory costs", report.coverage.populated_ns);
  cost("  hugepages cost", report.coverage.huge_ns);
  if (report.coverage.is_refused) out << "  hugepages cost more than they save: none is asked for\n";
}

void coverage_json(Json& json, const Report& report) {
  json.begin("backing");
  json.number("huge", report.coverage.huge_bytes);
  json.number("advised", report.coverage.advised_bytes);
  json.number("populated", report.coverage.populated_bytes);
  json.number("touched_ns", report.coverage.touched_ns);
  json.number("populated_ns", report.coverage.populated_ns);
  json.number("huge_ns", report.coverage.huge_ns);
  json.number("refused", report.coverage.is_refused ? 1 : 0);
  json.end();
}

void blocks_text(Output& out, const Report& report) {
  out << "  blocks of          live          free         slabs    live bytes\n";
  for (std::size_t c = 0; c < kClassCount; ++c) {
    const ClassUse& use = report.heap.classes[c];
    if (use.slabs == 0) continue;
    out.right(kSizeClasses[c].bytes, 11);
    out.right(use.live, 14).right(use.free, 14).right(use.slabs, 14).right(use.live * kSizeClasses[c].bytes, 14)
        << "\n";
  }
  const auto line = [&](const char* name, std::uint64_t blocks, std::uint64_t bytes) {
    if (blocks != 0) out.right(name, 11).right(blocks, 14).right("", 28).right(bytes, 14) << "\n";
  };
  line("large", report.heap.large_blocks, report.heap.large_bytes);
  line("huge", report.heap.huge_blocks, report.heap.huge_bytes);
  line("guarded", report.heap.guarded_objects, report.heap.guarded_bytes);
}

void blocks_json(Json& json, const Report& report) {
  json.begin("classes");
  for (std::size_t c = 0; c < kClassCount; ++c) {
    const ClassUse& use = report.heap.classes[c];
    if (use.slabs == 0) continue;
    json.begin(kSizeClasses[c].bytes);
    json.number("live", use.live);
    json.number("free", use.free);
    json.number("slabs", use.slabs);
    json.end();
  }
  json.end();
  const auto blocks = [&](const char* name, std::uint64_t count, std::uint64_t bytes) {
    json.begin(name);
    json.number("blocks", count);
    json.number("bytes", bytes);
    json.end();
  };
  blocks("large", report.heap.large_blocks, report.heap.large_bytes);
  blocks("huge", report.heap.huge_blocks, report.heap.huge_bytes);
  blocks("guarded", report.heap.guarded_objects, report.heap.guarded_bytes);
}

bool was_used(const sync::LockUse& use) { return use.acquisitions != 0 || use.busy != 0; }

void lock_columns(Output& out, const sync::LockUse& use) {
  out.right(use.acquisitions, 14).right(use.contended, 14).right(use.sleeps, 14).right(use.wait_ns, 14);
  out.right(use.busy, 14) << "\n";
}

void locks_text(Output& out, const Report& report) {
  out << "  lock       acquisitions     contended        sleeps       wait ns          busy\n";
  lock_columns(out.left("  heap", 11), report.locks.heap);
  lock_columns(out.left("  central", 11), report.locks.central);
  for (std::size_t c = 0; c < kClassCount; ++c) {
    const sync::LockUse& use = report.locks.classes[c];
    if (use.contended != 0 || use.busy != 0) lock_columns(out.right(kSizeClasses[c].bytes, 11), use);
  }
  lock_columns(out.left("  context", 11), report.locks.context);
  if (report.locks.user_heaps != 0) lock_columns(out.left("  heaps", 11), report.locks.user_heap);
}

void lock_json(Json& json, const sync::LockUse& use) {
  json.number("acquisitions", use.acquisitions);
  json.number("contended", use.contended);
  json.number("sleeps", use.sleeps);
  json.number("wait_ns", use.wait_ns);
  json.number("busy", use.busy);
}

void locks_json(Json& json, const Report& report) {
  json.begin("locks");
  json.begin("heap");
  lock_json(json, report.locks.heap);
  json.end();
  json.begin("central");
  lock_json(json, report.locks.central);
  json.begin("classes");
  for (std::size_t c = 0; c < kClassCount; ++c) {
    if (!was_used(report.locks.classes[c])) continue;
    json.begin(kSizeClasses[c].bytes);
    lock_json(json, report.locks.classes[c]);
    json.end();
  }
  json.end();
  json.end();
  json.begin("context");
  lock_json(json, report.locks.context);
  json.end();
  json.begin("user_heap");
  lock_json(json, report.locks.user_heap);
  json.end();
  json.end();
}

void events_text(Output& out, const Report& report) {
  out << "  events of slow paths\n";
  for (std::size_t i = 0; i < slots::kEventCount; ++i) {
    if (report.heap.events[i] == 0) continue;
    (out << "    ").left(slots::kEventNames[i], 20).right(report.heap.events[i], 16) << "\n";
  }
}

void events_json(Json& json, const Report& report) {
  json.begin("events");
  for (std::size_t i = 0; i < slots::kEventCount; ++i) json.number(slots::kEventNames[i], report.heap.events[i]);
  json.end();
}

void resident_text(Output& out, const Report& report) { memory_text(out, report.memory); }
void resident_json(Json& json, const Report& report) { memory_json(json, report.memory); }

struct Section {
  void (*text)(Output& out, const Report& report);
  void (*json)(Json& json, const Report& report);
};

// In the order in which they are printed.
constexpr Section kSections[] = {
    {process_text, process_json},   {bytes_text, bytes_json},   {coverage_text, coverage_json},
    {limits_text, limits_json},     {misuse_text, misuse_json}, {blocks_text, blocks_json},
    {resident_text, resident_json}, {locks_text, locks_json},   {events_text, events_json},
};

void take_report(Report& into) {
  read_locks(into.locks);  // first: the snapshot takes the heap lock
  take_snapshot(into.heap);
  {
    const slots::SlowScope scope;
    const sync::MutexLock guard(pages::heap.lock);
    into.limits = pages::limits;
  }
  into.misuse_reports = meta::misuse_count();
  into.is_memory_short = pages::under_pressure();
  read_coverage(into.coverage);
  take_memory_report(into.memory);
  into.process = static_cast<std::uint64_t>(syscall(SYS_getpid));
  into.run_ms = os::process_age_ms();
  into.is_per_cpu = slots::is_per_cpu();
}

}  // namespace

int print(Output& output, Format format) {
  if (!output.is_usable()) return ENOMEM;
  if (slots::thread_state.depth != 0) return EDEADLK;
  {
    const slots::SlowScope scope;
    slots::prepare();
  }
  Report report = {};
  take_report(report);
  if (format == Format::kText) {
    for (const Section& section : kSections) section.text(output, report);
    return 0;
  }
  Json json(output);
  json.begin();
  for (const Section& section : kSections) section.json(json, report);
  json.end();
  output << "\n";
  return 0;
}

}  // namespace brimful::stats
