// SPDX-License-Identifier: MIT
//
// The table of debug/anatomy.h.
#include "debug/anatomy.h"

#include <cstddef>

#include "arch/layout.h"
#include "arch/sequences.h"
#include "config/options.h"
#include "meta/block.h"
#include "meta/guard_record.h"
#include "meta/live_map.h"
#include "meta/misuse.h"
#include "meta/sample_record.h"
#include "pages/heap.h"
#include "pages/limit.h"
#include "pages/pressure.h"
#include "slots/central.h"
#include "slots/context.h"
#include "slots/sampling.h"
#include "slots/thread.h"

namespace brimful {
namespace {

template <std::size_t kRoom>
constexpr void copy(const char* text, char (&into)[kRoom]) {
  for (std::size_t i = 0; i + 1 < kRoom && text[i] != '\0'; ++i) into[i] = text[i];
}

constexpr AnatomyEntry number(const char* name, std::uint64_t value) {
  AnatomyEntry entry = {{}, {value}};
  copy(name, entry.name);
  return entry;
}

constexpr AnatomyEntry variable(const char* name, const volatile void* address) {
  AnatomyEntry entry = {{}, {.address = address}};
  copy(name, entry.name);
  return entry;
}

}  // namespace

#pragma GCC diagnostic push
// Base classes make it "conditionally supported": gcc and clang do.
#pragma GCC diagnostic ignored "-Winvalid-offsetof"

// A friend of those whose members it names.
struct Anatomy {
  // Every rank's lock is built alike.
  static constexpr std::size_t kCounters = offsetof(sync::HeapMutex, counters_);

  static constexpr AnatomyEntry kEntries[] = {
      variable("heap", &pages::heap),
      number("heap.bytes", sizeof pages::heap),
      variable("table.entries", &pages::heap.table.entries_),
      variable("table.span", &pages::heap.table.span_),
      variable("table.covered", &pages::heap.table.covered_),
      variable("table.none", &meta::none),
      variable("table.hugepages", &pages::heap.table.hugepages_),
      variable("table.entry_bytes", &pages::heap.table.committed_entry_bytes_),
      variable("table.record_bytes", &pages::heap.table.committed_record_bytes_),
      number("hugepage.size", sizeof(meta::Hugepage)),
      number("hugepage.free", offsetof(meta::Hugepage, free)),
      number("hugepage.dirty", offsetof(meta::Hugepage, dirty_bits)),
      number("hugepage.committed", offsetof(meta::Hugepage, committed)),
      number("hugepage.used_once", offsetof(meta::Hugepage, used_once)),
      number("hugepage.state", offsetof(meta::Hugepage, state)),
      number("hugepage.flags", offsetof(meta::Hugepage, flags)),
      number("hugepage.used", static_cast<std::uint64_t>(meta::Hugepage::State::kUsed)),
      variable("arena.chunks", &pages::heap.arena.chunks_),
      number("chunk.next", offsetof(meta::Arena::Chunk, next)),
      number("chunk.bytes", offsetof(meta::Arena::Chunk, bytes)),
      number("chunk.in_window", offsetof(meta::Arena::Chunk, in_window)),
      variable("live_map.regions", &meta::live_map.regions_),
      variable("live_map.count", &meta::live_map.count_),
      number("region.size", sizeof(meta::LiveMap::Region)),
      number("region.covered", offsetof(meta::LiveMap::Region, covered)),
      number("region.words", offsetof(meta::LiveMap::Region, words)),
      variable("windows", &pages::heap.pages.windows_),
      variable("windows.count", &pages::heap.pages.window_count_),
      number("window.size", sizeof(pages::PageHeap::Window)),
      number("window.start", offsetof(pages::PageHeap::Window, start)),
      number("window.bytes", offsetof(pages::PageHeap::Window, bytes)),
      variable("huge.root", &pages::heap.huge.blocks_.root_),
      variable("huge.kept", &pages::heap.huge.kept_),
      number("header.start", offsetof(Header, start)),
      number("header.bytes", offsetof(Header, bytes)),
      number("header.owner", offsetof(Header, owner)),
      number("header.last_owner", offsetof(Header, last_owner)),
      number("header.kind", offsetof(Header, kind)),
      number("header.size_class", offsetof(Header, size_class)),
      number("header.groups", offsetof(Header, groups)),
      number("slab.words", BRIMFUL_HEADER_WORDS),
      number("slab.offered", BRIMFUL_HEADER_OFFERED),
      number("slab.remote_align", 64),
      number("run.left", offsetof(Run, left)),
      number("run.right", offsetof(Run, right)),
      number("run.next", offsetof(Run, next)),
      number("run.granules", offsetof(Run, granules)),
      number("run.size", sizeof(Run)),
      number("kind.slab", static_cast<std::uint64_t>(Kind::kSlab)),
      number("kind.large", static_cast<std::uint64_t>(Kind::kLarge)),
      number("owner.live", kOwnerLive),
      number("owner.cached", kOwnerCached),
      number("owner.detached", kOwnerDetached),
      number("owner.central", kOwnerCentral),
      number("owner.shared", kOwnerShared),
      number("owner.moving", kOwnerMoving),
      number("owner.heap", kOwnerHeap),
      number("owner.sampled", kOwnerSampled),
      number("owner.has_remote", kOwnerHasRemote),
      number("owner.first_special", kFirstSpecialOwner),
      number("owner.released", kOwnerReleased),
      number("owner.destroyed", kOwnerDestroyed),
      variable("contexts", &arch::brimful_block.contexts),
      number("contexts.most", 1 + kMaxContexts),
      variable("contexts.first_stand_in", &slots::first_stand_in),
      number("context.size", sizeof(Context)),
      number("context.id", offsetof(Context, id)),
      number("context.counts", offsetof(Context, counts)),
      number("context.magazines", offsetof(Context, magazines)),
      number("magazine.objects", kMagazineObjects),
      number("classes", kClassCount),
      variable("class.table", kSizeClasses.data()),
      number("class.size", sizeof(SizeClass)),
      number("class.bytes", offsetof(SizeClass, bytes)),
      number("class.groups", offsetof(SizeClass, groups)),
      number("class.granules", offsetof(SizeClass, granules)),
      number("context.events", offsetof(Context, events)),
      number("context.requests", offsetof(Context, requests)),
      number("context.next", offsetof(Context, next_all)),
      number("context.lock", offsetof(Context, lock)),
      number("context.sampling", offsetof(Context, sampling)),
      number("context.runs", offsetof(Context, run_stacks.clock)),
      variable("contexts.all", &slots::every_context),
      variable("contexts.per_cpu", &slots::per_cpu),
      number("sampling.size", sizeof(slots::Sampling)),
      number("sampling.point", sizeof(slots::SamplePoint)),
      number("sampling.until", offsetof(slots::SamplePoint, until)),
      number("sampling.raised", offsetof(slots::Sampling, raised)),
      number("runs.until", offsetof(pages::RunStacks::Clock, until_sample)),
      number("runs.raised", offsetof(pages::RunStacks::Clock, raised)),
      number("events.count", slots::kEventCount),
      variable("events.names", slots::kEventNames.data()),
      number("requests.kinds", slots::kRequestKinds),
      number("requests.size", sizeof(slots::RequestSums)),
      number("requests.seen", offsetof(slots::RequestSums, count)),
      number("requests.requested", offsetof(slots::RequestSums, requested_bytes)),
      number("requests.granted", offsetof(slots::RequestSums, granted_bytes)),
      variable("pages.stats", &pages::heap.pages.stats_),
      number("pages.size", sizeof(pages::PageStats)),
      number("pages.reserved", offsetof(pages::PageStats, reserved_bytes)),
      number("pages.committed", offsetof(pages::PageStats, committed_bytes)),
      number("pages.used", offsetof(pages::PageStats, used_bytes)),
      number("pages.dirty", offsetof(pages::PageStats, dirty_bytes)),
      number("pages.muzzy", offsetof(pages::PageStats, muzzy_bytes)),
      number("pages.purged", offsetof(pages::PageStats, purged_bytes)),
      number("pages.purges", offsetof(pages::PageStats, purges)),
      number("pages.refaulted", offsetof(pages::PageStats, refaulted_bytes)),
      number("pages.hugetlb", offsetof(pages::PageStats, hugetlb_bytes)),
      number("pages.hugepages_in_use", offsetof(pages::PageStats, hugepages_in_use)),
      number("pages.hugepages_partly_used", offsetof(pages::PageStats, hugepages_partly_used)),
      number("pages.hugepages_free", offsetof(pages::PageStats, hugepages_free)),
      variable("huge.used", &pages::heap.huge.used_bytes_),
      variable("huge.count", &pages::heap.huge.count_),
      variable("huge.kept_bytes", &pages::heap.huge.kept_bytes_),
      variable("arena.mapped", &pages::heap.arena.mapped_bytes_),
      variable("limits", &pages::limits),
      number("limits.soft", offsetof(pages::Limits, soft)),
      number("limits.hard", offsetof(pages::Limits, hard)),
      number("limits.refusals", offsetof(pages::Limits, refusals)),
      variable("limits.memory_is_short", &pages::is_short),
      variable("backing.populated", &pages::heap.pages.backing_.populated_bytes_),
      variable("backing.refused", &pages::heap.pages.backing_.is_refused_),
      variable("backing.extents", &pages::heap.pages.backing_.extents_),
      number("extents", pages::Backing::kExtents),
      number("extent.size", sizeof(pages::Backing::Extent)),
      number("extent.start", offsetof(pages::Backing::Extent, start)),
      number("extent.end", offsetof(pages::Backing::Extent, end)),
      variable("heap.lock", &pages::heap.lock),
      variable("central", &slots::central),
      number("central.size", sizeof(slots::Central)),
      number("central.lock", offsetof(slots::Central, lock)),
      number("lock.acquisitions", kCounters + offsetof(sync::LockCounters, acquisitions_)),
      number("lock.contended", kCounters + offsetof(sync::LockCounters, contended_)),
      number("lock.sleeps", kCounters + offsetof(sync::LockCounters, sleeps_)),
      number("lock.wait_ns", kCounters + offsetof(sync::LockCounters, wait_ns_)),
      number("lock.busy", kCounters + offsetof(sync::LockCounters, busy_)),
      variable("options", &config::options),
      variable("options.table", config::kOptions),
      number("options.count", sizeof config::kOptions / sizeof config::kOptions[0]),
      number("option.size", sizeof(config::OptionInfo)),
      number("option.name", offsetof(config::OptionInfo, name)),
      number("option.field", offsetof(config::OptionInfo, field)),
      number("option.words", offsetof(config::OptionInfo, words)),
      number("option.is_bytes", offsetof(config::OptionInfo, is_bytes)),
      number("option.initial", offsetof(config::OptionInfo, initial)),
      variable("samples.control", &meta::sample_control),
      variable("guards.pool", &meta::guard_pool),
      variable("misuse.counts", &meta::misuse_counts),
      number("misuse.kinds", meta::kMisuseKinds),
  };
  static constexpr std::uint32_t kCount = sizeof kEntries / sizeof kEntries[0];

  AnatomyHead head;
  AnatomyEntry entries[kCount];

  constexpr Anatomy() : head{{}, kAnatomySchema, kCount, {}}, entries{} {
    copy("brimful:anatomy", head.magic);
    copy(BRIMFUL_VERSION, head.version);
    for (std::uint32_t n = 0; n < kCount; ++n) entries[n] = kEntries[n];
  }
};

#pragma GCC diagnostic pop

extern "C" {
extern __attribute__((visibility("default"))) const Anatomy brimful_anatomy;
__attribute__((used)) constinit const Anatomy brimful_anatomy;
}

}  // namespace brimful
