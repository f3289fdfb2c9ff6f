// SPDX-License-Identifier: MIT
//
// Which of the free objects of a group may be offered to malloc next: the options `quarantine` and `random`.
//
// free() sets a bit and knows nothing of it: what was freed is looked at when a group is to be offered, and only then. A
// group has three words more, its book (meta/header.h):
//
//   freed ──▶ free, not ripe ──turn──▶ free and waiting ──turn──▶ free and ripe ──▶ may be offered
//             a turn comes with each N-th offer of the slab: so an object waits for N … 2 N offers of it
//
// Memory: what waits is used before other slabs are when it is a quarter of its slab's objects, so a heap of slabs that are in
// use grows by a third at most.
//
// random: of the objects that may be offered, about half are, drawn bit by bit; of a group that is drawn, too. So neither which
// object comes next nor what lies beside it can be said beforehand. Those of an offer still come by rising address.
//
// Rejected: a queue of freed addresses by class (scudo, hardened_malloc): each free would write there, the fast path
// as well, and the queue's objects would keep slabs from becoming empty.
#pragma once

#include <cstdint>

#include "base/compiler.h"
#include "config/options.h"
#include "meta/header.h"

namespace brimful::slots {

// A new slab's book: what was never offered is ripe. Before anybody else sees the slab.
void begin_book(Slab* slab);

// Of the following, the caller is the one who may offer objects of the slab.

// The group of `count` at which the search for free objects begins, where the order does not matter.
unsigned first_group(Slab* slab, unsigned next, unsigned count);

// Those of the free objects of a group (a mask) that may be offered.
std::uint64_t ripe_objects(Slab* slab, unsigned group, std::uint64_t free);

// `most` at most of these objects, at least one, drawn at random: about half. All, if fewer than `least` would be left, which
// malloc would not come back for.
std::uint64_t draw_objects(Slab* slab, std::uint64_t objects, unsigned most, unsigned least);

// These objects of the group are offered.
void note_objects_offered(Slab* slab, unsigned group, std::uint64_t objects);

// Whether the slab has `least` objects that may be offered, or so many that wait that those may be, too.
bool has_ripe(Slab* slab, unsigned least);

// Those that wait may be offered, if has_ripe() said so because of them.
void ripen(Slab* slab);

}  // namespace brimful::slots
