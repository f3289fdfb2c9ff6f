// SPDX-License-Identifier: MIT
//
// slots/object_checks.h.
#include "slots/object_checks.h"

#include <string.h>

#include <atomic>
#include <bit>

#include "base/exponential.h"
#include "meta/misuse.h"
#include "meta/request_class.h"
#include "os/clock.h"
#include "os/environment.h"
#include "pages/heap.h"
#include "slots/slab.h"

namespace brimful::slots {
namespace {

// Two, because random_of() can be turned back: who reads one canary does not know the others.
constinit std::uint64_t secrets[2] = {};

std::uint64_t canary_of(std::uint64_t address) { return (random_of(address ^ secrets[0]) + secrets[1]) | 1; }

std::uint64_t* words_at(std::uint64_t address) { return reinterpret_cast<std::uint64_t*>(address); }

// The offset of the first byte in [0, bytes), a multiple of 8, that is not 0; `bytes`: all are.
std::size_t first_change(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t* words = words_at(address);
  const std::size_t count = bytes / sizeof(std::uint64_t);
  // Eight at a time, without a branch between them: three times as fast.
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    std::uint64_t all = 0;
    for (std::size_t k = 0; k < 8; ++k) all |= words[i + k];
    if (BRIMFUL_UNLIKELY(all != 0)) break;
  }
  for (; i < count; ++i) {
    if (BRIMFUL_UNLIKELY(words[i] != 0)) {
      return i * sizeof(std::uint64_t) + static_cast<unsigned>(std::countr_zero(words[i])) / 8;
    }
  }
  return bytes;
}

void check_zeros(std::uint64_t address, std::size_t bytes) {
  const std::size_t offset = first_change(address, bytes);
  if (BRIMFUL_LIKELY(offset == bytes)) return;
  meta::report_written_when_free(address, bytes, offset);
  memset(words_at(address), 0, bytes);  // as whoever gets it next may rely on
}

}  // namespace

void begin_object_checks() {
  meta::choose_class_tables();
  if (!config::checks.canary) return;
  secrets[0] = random_of(os::process_random() + os::monotonic_ns());
  secrets[1] = random_of(secrets[0] ^ reinterpret_cast<std::uintptr_t>(&secrets[1]));
}

void clear_slab(const Slab* slab) {
  pages::heap.pages.clear(slab->start, GranuleCount(slab->shape().granules).bytes());
}

namespace checks_detail {

void look_before_offer(Slab* slab, unsigned group, std::uint64_t objects) {
  if (meta::is_sealed_class(slab->size_class)) return;
  const std::size_t usable = meta::usable_bytes(slab->size_class);
  const bool has_canary = meta::has_canary(slab->size_class);
  // Atomic because handlers of several threads take from one slab of theirs: one may lose what another wrote, and then an
  // object is not looked at.
  const std::atomic_ref used_word(slab->book(group).used);
  const std::uint64_t used = used_word.load(std::memory_order_relaxed);  // relaxed: as above
  used_word.store(used | objects, std::memory_order_relaxed);            // relaxed: as above
  for (; objects != 0; objects &= objects - 1) {
    const auto bit = static_cast<unsigned>(std::countr_zero(objects));
    const std::uint64_t address = slab->object(std::uint64_t{group} * kGroupObjects + bit);
    if (config::checks.zero && (used >> bit & 1) != 0) check_zeros(address, usable);
    if (has_canary) *words_at(address + usable) = canary_of(address);
  }
}

bool look_before_free(Slab* slab, std::uint64_t index) {
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  // A second free must not clear what is another's by now, or stands in an offer.
  if (BRIMFUL_UNLIKELY((free_bits(slab, group) & bit) != 0)) {
    report_twice(slab, group, bit);
    return false;
  }
  if (meta::is_sealed_class(slab->size_class)) return true;
  const std::uint64_t address = slab->object(index);
  const std::size_t usable = meta::usable_bytes(slab->size_class);
  if (meta::has_canary(slab->size_class)) {
    const std::uint64_t changed = *words_at(address + usable) ^ canary_of(address);
    if (BRIMFUL_UNLIKELY(changed != 0)) {
      meta::report_overflow(address, usable, static_cast<unsigned>(std::countr_zero(changed)) / 8);
    }
  }
  if (config::checks.zero) memset(words_at(address), 0, usable);
  return true;
}

}  // namespace checks_detail
}  // namespace brimful::slots
