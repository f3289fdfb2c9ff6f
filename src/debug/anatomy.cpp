// SPDX-License-Identifier: MIT
//
// The table of debug/anatomy.h.
#include "debug/anatomy.h"

#include <cstddef>

#include "arch/layout.h"
#include "arch/sequences.h"
#include "meta/block.h"
#include "pages/heap.h"
#include "slots/context.h"
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
  static constexpr AnatomyEntry kEntries[] = {
      variable("table.entries", &pages::heap.table.entries_),
      variable("table.span", &pages::heap.table.span_),
      variable("table.covered", &pages::heap.table.covered_),
      variable("table.none", &meta::none),
      variable("arena.chunks", &pages::heap.arena.chunks_),
      number("chunk.next", offsetof(meta::Arena::Chunk, next)),
      number("chunk.bytes", offsetof(meta::Arena::Chunk, bytes)),
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
      number("run.size", sizeof(Run)),
      number("kind.slab", static_cast<std::uint64_t>(Kind::kSlab)),
      number("kind.large", static_cast<std::uint64_t>(Kind::kLarge)),
      number("owner.live", kOwnerLive),
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
