// SPDX-License-Identifier: MIT
//
// Refill: what malloc does when the current group has no free object, once in about 64 calls.
//
// In order: the next group with free objects of the current slab, searched in a circle from where the last search ended
// (frees land anywhere, and a circle gives them time to gather); then the oldest partial slab of this context that is at
// least 1/8 free (fuller ones would come back here after a few objects, and taking the most recently freed slab first
// is 1.6–2.4 times slower under steady random traffic; of objects above 2 KiB, 16 KiB are enough); then the central index;
// then new memory. A fresh slab is opened a page at a time: only when the opened groups have nothing left does
// malloc go on to memory that nobody has touched, so a small heap stays small.
//
// A current slab without a free object is detached: no owner, in no list, no cost. Its next free finds it again.
//
// Where a context's lock is busy, its holder most likely waits for the CPU that we have: it was preempted. With many
// threads all others come by here before it runs again. So each lets them go first, once a call, and only then takes an
// object of the shared slab. Rejected: sleeping until the lock is free (docs/design/0028).
#include <bit>

#include "config/options.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "pages/limit.h"
#include "pages/purger.h"
#include "slots/background.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/lives.h"
#include "slots/magazine.h"
#include "slots/object_checks.h"
#include "slots/offer_book.h"
#include "slots/offers.h"
#include "slots/run_stacks.h"
#include "slots/sampling.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

enum class Refill { kDone, kMoved, kNoMemory, kSample };

constexpr int kAttempts = 8;
constexpr int kSlabsToTry = 6;

bool empty_slot(Context* context, ClassId size_class) {
  drop_offer(context, size_class);
  return arch::brimful_seq_empty(context, &context->slots[size_class]) == arch::Outcome::kDone;
}

// Where to offer objects of a group from: the chunk of places where the lowest free one lies (SizeClass::batch), and the
// chunks behind it until there are `least` objects. As malloc's own advance does it (arch/).
std::uint64_t places_to_offer(Slab* slab, std::uint64_t free, int least) {
  const unsigned chunk = kGroupObjects - slab->batch;
  if (chunk == kGroupObjects || free == 0) return kAllFree;
  const unsigned lowest = static_cast<unsigned>(std::countr_zero(free)) & -chunk;
  std::uint64_t places = (kAllFree >> slab->batch) << lowest;
  while (static_cast<int>(count_ones(free & places)) < least && (places >> (kGroupObjects - 1)) == 0) {
    places |= places << chunk;
  }
  return places;
}

// Those of the free objects of a group that malloc gets next.
std::uint64_t choose_offer(Slab* slab, std::uint64_t free, int least) {
  if (config::draws_offers()) return draw_objects(slab, free, kGroupObjects - slab->batch, slab->least);
  return free & places_to_offer(slab, free, least);
}

// What is written down of an offer, and looked at. The slot is going to lead to all that is offered of the group: also to what
// was left of an offer that was taken back, since when its page may have been given to the system. If it leads there now,
// that may be taken at any moment, and its page was not.
BRIMFUL_COLD void prepare_offer(Context* context, Slab* slab, unsigned group, std::uint64_t places) {
  note_objects_offered(slab, group, places);
  // relaxed: ours
  const std::uint64_t offered = slab->offered(group).load(std::memory_order_relaxed);
  const bool is_in_slot = context->slots[slab->size_class].word == &slab->offered_words()[group];
  before_offer(slab, group, is_in_slot ? places & ~offered : places | offered);
}

// Lets malloc go to a page more of a slab whose memory nobody has touched yet. false: it goes everywhere already.
bool open_more(Slab* slab) {
  if (slab->opened >= slab->groups) return false;
  const unsigned more = slab->opened + groups_of_a_page(slab->shape().bytes);
  slab->opened = static_cast<std::uint8_t>(more < slab->groups ? more : slab->groups);
  return true;
}

// Puts the next opened group of the current slab that has `least` free objects into the slot, as far as the next sample.
// kNoMemory: there is none; kSample: the next object is one.
Refill install_next_group(Context* context, ClassId size_class, int least) {
  ClassQueue& queue = context->queues[size_class];
  Slab* slab = queue.current;
  if (!collect_all(slab, context)) return Refill::kMoved;
  const bool chooses = BRIMFUL_UNLIKELY(config::checks.offers);
  const unsigned first = chooses ? first_group(slab, queue.scan, slab->opened) : queue.scan;
  for (unsigned i = 0; i < slab->opened; ++i) {
    const unsigned group = (first + i) % slab->opened;
    // A bit freed meanwhile is found next time.
    std::uint64_t free = owner_bits(slab, group);
    if (chooses) free = ripe_objects(slab, group, free);
    if (static_cast<int>(count_ones(free)) < least) continue;
    const std::uint64_t base = slab->object(std::uint64_t{group} * kGroupObjects);
    const std::uint64_t wanted = limit_offer(context, choose_offer(slab, free, least));
    const unsigned count = count_ones(wanted);
    const unsigned room = room_before_sample(context, size_class, count);
    if (BRIMFUL_UNLIKELY(room == 0)) return Refill::kSample;
    const std::uint64_t places = BRIMFUL_LIKELY(room == count) ? wanted : lowest_ones(wanted, room);
    if (chooses) prepare_offer(context, slab, group, places);
    const std::uint64_t again = places & slab->offered(group).load(std::memory_order_relaxed);  // relaxed: ours
    const std::uint64_t fresh = begin_offer(slab, group, places);
    if (arch::brimful_seq_install(context, &context->slots[size_class], &slab->words()[group], base, places) !=
        arch::Outcome::kDone) {
      abandon_offer(slab, group, fresh);
      return Refill::kMoved;
    }
    note_offer(context, size_class, &slab->offered_words()[group], room, room != count);
    if (BRIMFUL_UNLIKELY(again != 0)) context->sampling.raise(-std::int64_t{count_ones(again)});
    queue.scan = group + 1;
    context->events.count(Event::kRefillGroup);
    return Refill::kDone;
  }
  return Refill::kNoMemory;
}

// Lets go of the current slab, which looked full. kMoved: this thread left the context; kNoMemory: done, or the slab
// turned out to have free objects and waits in the queue.
Refill detach_full(Context* context, ClassId size_class) {
  ClassQueue& queue = context->queues[size_class];
  Slab* slab = queue.current;
  // No malloc of this context may still take from the slab when it has lost its owner.
  if (!empty_slot(context, size_class)) return Refill::kMoved;
  slab->last_owner.store(context->id, std::memory_order_relaxed);  // relaxed: the store of the owner publishes it
  set_listed(slab, Listed::kNowhere);
  if (arch::brimful_seq_store32(context, reinterpret_cast<std::uint32_t*>(&slab->owner), kOwnerDetached) !=
      arch::Outcome::kDone) {
    set_listed(slab, Listed::kCurrent);
    return Refill::kMoved;
  }
  queue.current = nullptr;
  context->events.count(Event::kDetach);
  // pairs with: tell_owner() (either it sees the slab detached, or we see its bits)
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (has_free(slab)) {
    std::uint32_t expected = kOwnerDetached;
    // pairs with: the store above and publish() (who wins lists the slab)
    if (slab->owner.compare_exchange_strong(expected, context->id | kOwnerHasRemote, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {  // relaxed: another has it
      enqueue(context, slab);
    }
  }
  return Refill::kNoMemory;
}

// An eighth of its objects, or of large ones as many as are offered at a time.
unsigned least_to_use(const Slab* slab) {
  const auto share = static_cast<unsigned>(slab->count() / 8);
  const unsigned offered = kOfferedBytes / slab->shape().bytes;
  return offered < 1 ? 1 : offered < share ? offered : share;
}
bool can_be_used(Slab* slab) {
  const unsigned least = least_to_use(slab);
  return free_objects(slab) >= least && (BRIMFUL_LIKELY(!config::checks.offers) || has_ripe(slab, least));
}

// From how many free objects on malloc goes to a group of this slab by itself: a little below the average, so that there
// is always such a group, and it never takes the crumbs.
void set_least(Slab* slab) {
  const unsigned average = (free_objects(slab) - (slab->groups - slab->opened) * kGroupObjects) / slab->opened;
  const unsigned wanted = average * 3 / 4;
  const unsigned most = most_wanted(slab);
  slab->least = static_cast<std::uint8_t>(wanted < 1 ? 1 : wanted < most ? wanted : most);
}

// Goes on with the current slab, or lets go of it (kNoMemory).
Refill use_current(Context* context, ClassId size_class) {
  ClassQueue& queue = context->queues[size_class];
  Slab* slab = queue.current;
  Refill good = install_next_group(context, size_class, slab->least);
  while (good == Refill::kNoMemory && open_more(slab)) good = install_next_group(context, size_class, slab->least);
  if (good != Refill::kNoMemory) return good;
  if (!has_free(slab)) return detach_full(context, size_class);
  if (can_be_used(slab)) {
    if (BRIMFUL_UNLIKELY(config::checks.offers)) ripen(slab);
    set_least(slab);
    return install_next_group(context, size_class, 1);
  }
  if (!empty_slot(context, size_class)) return Refill::kMoved;
  queue.current = nullptr;
  enqueue(context, slab);
  return Refill::kNoMemory;
}

Slab* next_partial(ClassQueue& queue) {
  for (int i = 0; i < kSlabsToTry; ++i) {
    Slab* slab = queue.partial.pop_front();
    if (slab == nullptr) return nullptr;
    if (can_be_used(slab)) return slab;
    queue.partial.push_back(slab);
  }
  return nullptr;
}

// From now on this context's frees go to the slab's own words, which don't know what lies in the magazine.
Slab* take_central(Context* context, ClassId size_class) {
  Slab* slab = central[size_class].take(context->id);
  if (slab != nullptr) flush_magazine(context, size_class);
  return slab;
}

Refill refill(Context* context, ClassId size_class) {
  ClassQueue& queue = context->queues[size_class];
  drain_inbox(context);
  for (;;) {
    if (queue.current != nullptr) {
      const Refill used = use_current(context, size_class);
      if (BRIMFUL_UNLIKELY(used == Refill::kSample)) draw_next_sample(context, size_class);
      if (used != Refill::kNoMemory) return used;
    }
    Event source = Event::kRefillPartial;
    Slab* slab = next_partial(queue);
    if (slab == nullptr) {
      source = Event::kRefillCentral;
      slab = take_central(context, size_class);
    }
    if (slab == nullptr) {
      source = Event::kRefillNew;
      slab = make_slab(size_class, context->id, queue.needs_many ? Expected::kMany : Expected::kFew);
      queue.needs_many = true;
    }
    if (slab == nullptr) return Refill::kNoMemory;
    context->events.count(source);
    set_listed(slab, Listed::kCurrent);
    slab->idle_ticks = 0;
    slab->purged_at = 0;
    slab->rest = 0;
    set_least(slab);
    slab->countdown.store(kHeartbeat, std::memory_order_relaxed);  // relaxed: times a later look, no more
    queue.current = slab;
    queue.scan = slab->opened;  // as if its last group had just been used up: malloc looks at the group before `scan`
  }
}

// The mask and the word have bits in common: objects that another thread of the context freed since they were looked at. Which
// these are only the sequence can say, because malloc may have handed them out again by the time we look. `mask` is left
// with what found no place.
arch::Outcome place_one_by_one(Slab* slab, unsigned group, Context* context, std::uint64_t& mask) {
  while (mask != 0) {
    const std::uint64_t bit = mask & -mask;
    const arch::Outcome placed = arch::brimful_seq_or(context, &slab->words()[group], bit);
    if (placed == arch::Outcome::kAlreadySet) {
      report_twice(slab, group, bit);
    } else if (placed != arch::Outcome::kDone) {
      return placed;
    }
    mask &= ~bit;
  }
  return arch::Outcome::kDone;
}

// Moves what others freed to the slab's words. false: this thread left the context; what found no place is back.
bool collect_masks(Slab* slab, Context* context, bool& found) {
  for (unsigned g = 0; g < slab->groups; ++g) {
    std::uint64_t mask = collect_remote(slab, g);
    if (mask == 0) continue;
    found = true;
    context->events.count(Event::kCollect);
    mask = without_twice(slab, g, mask);
    arch::Outcome placed = arch::brimful_seq_or(context, &slab->words()[g], mask);
    if (BRIMFUL_UNLIKELY(placed == arch::Outcome::kAlreadySet)) placed = place_one_by_one(slab, g, context, mask);
    if (placed != arch::Outcome::kDone) {
      return_remote(slab, g, mask);
      mark_remote(slab);
      return false;
    }
  }
  return true;
}

// A slow path by the heartbeat: most likely of the class that malloc is asked for most. If that was so several times in a
// row, saving pages on this class costs more time than they are worth.
void note_heat(Context* context, ClassId size_class) {
  constexpr std::uint8_t kVisits = 4;
  if (context->hot_class != size_class) context->hot_visits = 0;
  context->hot_class = size_class;
  if (++context->hot_visits < kVisits) return;
  context->hot_visits = 0;
  ClassQueue& queue = context->queues[size_class];
  queue.needs_many = true;
  if (queue.current != nullptr) queue.current->batch = queue.current->shape().batch;
}

// In tier:hardened, of a coarse class: what malloc does by itself elsewhere, and then the object's live bit, which it need
// not share a word of the live map for. So nobody who sets bits of the group at the same moment is in the way (set_group()).
void* take_freed(Context* context, ClassId size_class) {
  static_assert(BRIMFUL_COARSE_ABOVE >= meta::LiveMap::kWindowPerWord);
  if (kSizeClasses[size_class].bytes <= BRIMFUL_COARSE_ABOVE || --context->slow_heartbeat <= 0) return nullptr;
  return begin_life(arch::brimful_seq_take_freed(context, std::uint64_t{2} * size_class));
}

}  // namespace

void* take(ClassId size_class) {
  Context* context = context_of(current_id());
  if (context == nullptr) return nullptr;
  if (config::offers_by_hand()) {
    context->heartbeat = 0;  // malloc has counted it down, on its way here
    if (!config::checks.offers) {
      if (void* object = take_freed(context, size_class)) return object;
    }
  }
  return arch::brimful_seq_take(context, std::uint64_t{2} * size_class);
}

Allocation allocate(ClassId size_class) {
  bool reclaimed = false;
  bool yielded = false;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    Context* context = current_context();
    if (context == nullptr) break;
    const bool is_heartbeat = beats_of(context) <= 0;
    if (is_heartbeat) tick();
    if (!context->lock.try_lock()) {
      if (yielded) break;
      os::calls.yield();
      yielded = true;
      continue;
    }
    if (is_heartbeat) note_heat(context, size_class);
    const Refill result = takes_sample(context, size_class) ? Refill::kSample : refill(context, size_class);
    beats_of(context) -= BRIMFUL_BEATS_OF_A_GROUP;
    if (is_heartbeat) raise_offers(context);
    context->lock.unlock();
    if (BRIMFUL_UNLIKELY(result == Refill::kSample)) {
      const std::uint64_t interval = choose(context, size_class);
      return {nullptr, interval, interval == 0};
    }
    if (result == Refill::kNoMemory) {
      if (reclaimed) return {nullptr, 0, false};
      reclaim_all();
      reclaimed = true;
      continue;
    }
    void* object = take(size_class);
    if (object != nullptr) return {object, 0, false};
  }
  const std::uint64_t interval = draws_sample(kSizeClasses[size_class].bytes);
  if (BRIMFUL_UNLIKELY(interval != 0)) return {nullptr, interval, false};
  return {allocate_unsampled(size_class), 0, false};
}

void* allocate_unsampled(ClassId size_class) {
  void* object = central[size_class].allocate_shared(size_class);
  if (object == nullptr) {
    reclaim_all();
    object = central[size_class].allocate_shared(size_class);
  }
  return object;
}

bool collect_all(Slab* slab, Context* context) {
  // relaxed: the mark goes up again for whatever comes later
  if ((slab->owner.load(std::memory_order_relaxed) & kOwnerHasRemote) == 0) return true;
  bool found = false;
  if (!collect_masks(slab, context, found)) return false;
  if (found) return true;
  if (arch::brimful_seq_store32(context, reinterpret_cast<std::uint32_t*>(&slab->owner), context->id) !=
      arch::Outcome::kDone) {
    return false;
  }
  // pairs with: mark_remote() (who sees the mark down puts it up again; whose mark we took down, those bits we see)
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return collect_masks(slab, context, found);
}

void enqueue(Context* context, Slab* slab) {
  slab->idle_ticks = 0;
  slab->purged_at = 0;
  slab->countdown.store(busy_groups(slab), std::memory_order_relaxed);  // relaxed: times a later look
  set_listed(slab, Listed::kQueue);
  context->queues[slab->size_class].partial.push_back(slab);
}

void drain_inbox(Context* context) {
  // relaxed: an empty inbox needs no order; a full one is taken by the exchange below
  if (context->inbox.load(std::memory_order_relaxed) == nullptr) return;
  Slab* slab = context->inbox.exchange(nullptr, std::memory_order_acquire);  // pairs with: adopt() (the links)
  while (slab != nullptr) {
    Slab* next = slab->next;
    enqueue(context, slab);
    slab = next;
  }
}

void release_empty_currents(Context* context, unsigned ticks) {
  for (std::size_t c = 0; c < kClassCount; ++c) {
    ClassQueue& queue = context->queues[c];
    Slab* slab = queue.current;
    if (slab == nullptr || !is_all_free(slab)) continue;
    if (slab->idle_ticks++ < ticks) continue;
    if (!empty_slot(context, static_cast<ClassId>(c))) return;
    if (!is_all_free(slab)) continue;  // an object was taken before the slot was emptied: the slot refills
    queue.current = nullptr;
    set_listed(slab, Listed::kNowhere);
    release_slab(slab);
  }
}

namespace {

// What the running context keeps without need. Where a look finds more than it has time for, further ones follow soon. Each
// takes 256 slabs, about 2 ms; one that comes late, because the program hardly asks for anything, about a tenth of the
// time gone by.
void sweep(Context* context, std::uint64_t now_ms) {
  constexpr std::uint64_t kSweepMs = 250;
  constexpr std::uint64_t kGoOnMs = 10;
  constexpr std::uint64_t kSlabs = 256;
  constexpr std::uint64_t kLateMs = 20;
  const std::uint64_t passed_ms = now_ms - context->swept_ms;
  if (passed_ms < (context->has_slabs_left_over() ? kGoOnMs : kSweepMs) || !context->lock.try_lock()) return;
  context->swept_ms = now_ms;
  std::uint64_t slabs = kSlabs;
  if (context->has_slabs_left_over()) {
    slabs += kSlabs * ((passed_ms < kSweepMs ? passed_ms : kSweepMs) / kLateMs);
  } else if (config::cache() != config::Cache::kUnlimited) {
    flush_magazines(context);
    release_empty_currents(context, config::cache() == config::Cache::kNone ? 0 : 1);
  }
  if (config::options.purge_delay_ms >= 0) purge_free_pages(context, static_cast<int>(slabs));
  context->lock.unlock();
}

}  // namespace

void tick(std::uint64_t now_ms) {
  if (BRIMFUL_LIKELY(!pages::tick(now_ms, !has_background_thread()))) return;
  if (pages::takes_reclaim_order(now_ms)) {
    reclaim_all();
    pages::trim();
  }
  keep_background_thread(now_ms);
  reclaim_orphans();
  reclaim_idle(now_ms);
  purge_idle_pages(now_ms, 0);
  flush_old_runs(now_ms);
  Context* context = current_context();
  if (context == nullptr) return;
  sweep(context, now_ms);
  if (pages::is_waiting()) empty_slots(context);
}

// Who looks at the clock again so soon may count on for longer until the next look.
constexpr std::uint64_t kSoonMs = 10;

void tick() {
  const std::uint64_t now_ms = os::calls.now_ms();
  reclaim_orphans();
  tick(now_ms);
  Context* context = current_context();
  if (context == nullptr) return;
  // relaxed: read by reclaim_idle() as a rough age
  const std::uint64_t looked_ms = context->active_ms.load(std::memory_order_relaxed);
  context->active_ms.store(now_ms, std::memory_order_relaxed);  // relaxed: as above
  const std::uint64_t passed_ms = now_ms - looked_ms;
  const std::int32_t usual = passed_ms < kSoonMs ? 4 * kHeartbeat : kHeartbeat / 2;
  const std::int32_t groups = wants_all(context) ? usual : groups_to_offer(context, passed_ms, usual);
  set_groups_until_look(context, groups);
}

}  // namespace brimful::slots
