// SPDX-License-Identifier: MIT
//
// Pages without access in slabs: the option `guard`, a number N.
//
//   one slab in N   │ groups of objects │ unused │ no access │ next slab      a run over the end of a slab stops there
//   class 0         │ no access …                            │               malloc(0): distinct, and not to be touched
//
// The page is the slab's own last one, in the tail that no object covers; where that is shorter than a page, the slab has a few
// groups less. So the page heap knows nothing of it, no address space is lost to it, and what it costs is known: two mappings
// more, a page of memory, and that its hugepage stays in small pages, so one slab in N and not each. Which, is drawn.
//
// With N other than 0, objects of the smallest class are those of malloc(0) alone, and requests of 1 to 16 bytes have 32.
//
// Where the system refuses (the number of mappings, pages of the HugeTLB pool) a slab is as any.
#pragma once

#include "meta/header.h"

namespace brimful::slots {

// How a slab is made: with all groups of its shape, or, if it is to be sealed, as many as leave room for a page.
struct Plan {
  unsigned groups;
  bool is_sealed;
};

// Of the next slab of the class. Caller holds the heap lock.
Plan plan_slab(ClassId size_class);

// Takes the access away, of a new slab that was planned so and that nobody else has seen. A system call.
void seal_slab(Slab* slab);

// Gives it back, before the slab's memory is. false: the system refuses, and the memory can't be used again.
bool unseal_slab(Slab* slab);

}  // namespace brimful::slots
