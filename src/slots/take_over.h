// SPDX-License-Identifier: MIT
//
// Taking over: a context that empties its magazine and finds in it several objects of one detached slab becomes the
// slab's owner, instead of telling the last one.
//
// Objects are handed over or scattered. Who is handed objects frees all of a slab, and its last owner none: then the slab
// should go where the frees are, which are the short ones from then on. Scattered objects are freed by their slab's
// owner as often as by others, and it should stay. What tells them apart is the state "detached" itself: it ends with the
// first free by the last owner, so a slab that is still detached when another context has gathered a magazine full
// of the class is most likely not its last owner's business any more.
//
// Who is handed objects may never allocate. Its queue then fills with slabs that nobody takes from, so it passes the oldest
// of them on to the central index as others come.
#pragma once

#include <cstddef>
#include <cstdint>

#include "slots/context.h"

namespace brimful::slots {

// objects[0] to objects[count - 1], taken from a magazine, are objects of one class or 0; objects[0] is one of `slab`. If the
// slab is detached and enough of them are its objects, `context`, the running one, becomes its owner, all of them are
// put into its words and overwritten by 0. false: nothing was done. Takes context->lock, if that is free.
bool take_over(Context* context, Slab* slab, std::uint64_t* objects, std::size_t count);

}  // namespace brimful::slots
