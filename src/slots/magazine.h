// SPDX-License-Identifier: MIT
//
// Magazines: what a context does with freed objects of slabs that it does not own (Bonwick & Adams 2001 give the name).
//
// Each class has one per context, for up to 32 addresses. A free puts its object there: a few stores on lines that this
// CPU owns. They go to the owners when the magazine is full, when time has passed, when its thread exits, and before the
// context takes over a slab of the class; then objects of one group share one atomic OR.
//
// Rejected: malloc taking objects out of a magazine again. Foreign objects then stay foreign, each of their frees goes this
// long way, and larson took 2.3 times as long.
//
// An object here is free, and still counts as live in its slab. So the slab stays, and a second free of it has to be found
// here: by the comparison with all objects of the magazine if this context frees it, and by whoever is told later if
// another does.
#pragma once

#include <cstdint>

#include "meta/header.h"
#include "slots/context.h"

namespace brimful::slots {

// How many objects a magazine may hold while so many threads have contexts of their own. CPUs' contexts don't count: there
// are no more of them than CPUs, and telling fewer objects at a time would cost most where CPUs are many. Caller holds
// the heap lock.
void set_magazine_limits(std::uint32_t threads);

// Frees object `index` of a slab that is somebody else's into the magazine of `context`, the running one. Reports a
// double free. false: nothing was done; the slab is not somebody else's, there is no room, or the tier keeps nothing.
// Takes no lock, so it is for anybody, a signal handler that interrupted a slow path too.
bool keep(Context* context, Slab* slab, std::uint64_t index);

// As keep(), but makes room. Called in a slow path.
bool keep_with_room(Slab* slab, std::uint64_t index);

// Tells the owners of all objects in the magazine. `context` is the running one.
void flush_magazine(Context* context, ClassId size_class);
void flush_magazines(Context* context);

// The same for a context in which no sequence can run. Caller holds context->lock.
void empty_magazines(Context* context);

}  // namespace brimful::slots
