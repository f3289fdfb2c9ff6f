// SPDX-License-Identifier: MIT
//
// slots/slab_guard.h.
#include "slots/slab_guard.h"

#include "base/exponential.h"
#include "meta/request_class.h"
#include "os/calls.h"
#include "os/clock.h"

namespace brimful::slots {
namespace {

constinit std::uint64_t draw_state = 0;  // guarded by the heap lock

bool draws_guard() {
  if (draw_state == 0) draw_state = static_cast<std::uint64_t>(os::monotonic_ns());
  draw_state += kRandomStep;
  return random_of(draw_state) % static_cast<std::uint64_t>(std::int64_t{config::options.guard}) == 0;
}

std::uint64_t end_of_slab(const Slab* slab) { return slab->start + GranuleCount(slab->shape().granules).bytes(); }

// What is, or is to be, without access: from here to the slab's end.
std::uint64_t seal_start(const Slab* slab) {
  return meta::is_sealed_class(slab->size_class) ? slab->start : end_of_slab(slab) - os::page_bytes();
}

}  // namespace

Plan plan_slab(ClassId size_class) {
  const SizeClass& shape = kSizeClasses[size_class];
  if (BRIMFUL_LIKELY(config::options.guard == 0)) return {shape.groups, false};
  if (meta::is_sealed_class(size_class)) return {shape.groups, true};
  const std::size_t group_bytes = std::size_t{shape.bytes} * kGroupObjects;
  const std::size_t groups = (GranuleCount(shape.granules).bytes() - os::page_bytes()) / group_bytes;
  if (groups == 0 || !draws_guard()) return {shape.groups, false};
  return {static_cast<unsigned>(groups < shape.groups ? groups : shape.groups), true};
}

void seal_slab(Slab* slab) {
  const std::uint64_t start = seal_start(slab);
  slab->book().is_sealed = os::calls.seal(start, end_of_slab(slab) - start);
}

bool unseal_slab(Slab* slab) {
  if (config::options.guard == 0 || !slab->book().is_sealed) return true;
  const std::uint64_t start = seal_start(slab);
  return os::calls.commit(start, end_of_slab(slab) - start);
}

}  // namespace brimful::slots
