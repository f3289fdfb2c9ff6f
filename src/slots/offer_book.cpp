// SPDX-License-Identifier: MIT
//
// slots/offer_book.h.
#include "slots/offer_book.h"

#include <bit>

#include "base/bits.h"
#include "base/exponential.h"
#include "os/clock.h"
#include "os/environment.h"
#include "slots/slab.h"

namespace brimful::slots {
namespace {

// Of a slab's objects, the share that may wait before they are used all the same.
constexpr std::uint64_t kWaitingShare = 4;

std::uint64_t next_random(OfferBook& book) {
  book.random += kRandomStep;
  return random_of(book.random);
}

bool waits() { return config::options.quarantine != 0; }

unsigned count_ripe(Slab* slab) {
  unsigned count = 0;
  for (unsigned g = 0; g < slab->groups; ++g) count += count_ones(owner_bits(slab, g) & slab->book(g).ripe);
  return count;
}

// Who waited at the last turn is ripe; who was freed since waits.
void turn(Slab* slab) {
  slab->book().offers = 0;
  for (unsigned g = 0; g < slab->groups; ++g) {
    GroupBook& book = slab->book(g);
    const std::uint64_t free = owner_bits(slab, g);
    book.ripe |= book.waiting & free;
    book.waiting = free & ~book.ripe;
  }
}

}  // namespace

void begin_book(Slab* slab) {
  slab->book() = {os::process_random() ^ os::monotonic_ns() ^ reinterpret_cast<std::uintptr_t>(slab), 0, false};
  for (unsigned g = 0; g < slab->groups; ++g) slab->book(g) = {.used = 0, .ripe = kAllFree, .waiting = 0};
}

unsigned first_group(Slab* slab, unsigned next, unsigned count) {
  return config::draws_offers() ? static_cast<unsigned>(next_random(slab->book()) % count) : next;
}

std::uint64_t ripe_objects(Slab* slab, unsigned group, std::uint64_t free) {
  return waits() ? free & slab->book(group).ripe : free;
}

std::uint64_t draw_objects(Slab* slab, std::uint64_t objects, unsigned most, unsigned least) {
  const std::uint64_t random = next_random(slab->book());
  const std::uint64_t half = objects & random;
  if (half != 0 && count_ones(objects & ~half) >= least) objects = half;
  if (count_ones(objects) <= most) return objects;
  const int turned = static_cast<int>(random >> 58);
  return std::rotl(lowest_ones(std::rotr(objects, turned), most), turned);
}

void note_objects_offered(Slab* slab, unsigned group, std::uint64_t objects) {
  if (!waits()) return;
  GroupBook& book = slab->book(group);
  book.ripe &= ~objects;
  book.waiting &= ~objects;
  if (++slab->book().offers >= static_cast<std::uint64_t>(std::int64_t{config::options.quarantine})) turn(slab);
}

bool has_ripe(Slab* slab, unsigned least) {
  return !waits() || free_objects(slab) * kWaitingShare >= slab->count() || count_ripe(slab) >= least;
}

void ripen(Slab* slab) {
  if (!waits() || free_objects(slab) * kWaitingShare < slab->count()) return;
  for (unsigned g = 0; g < slab->groups; ++g) slab->book(g).ripe |= free_bits(slab, g);
}

}  // namespace brimful::slots
