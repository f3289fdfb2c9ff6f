// SPDX-License-Identifier: MIT
//
// The model's frees that leave the fast path and its closing of contexts: magazine.cpp, free.cpp and reclaim.cpp of
// src/slots, function by function; see slots_model.h.
#include <bit>

#include "slots_model.h"

namespace brimful::model {
namespace {

constexpr int kAttempts = 2;  // 8 in the source: once to go wrong, once to go right

bool is_context(uint64_t owner) { return owner < kContexts; }

}  // namespace

// --- magazine.cpp

Task<bool> SlotsWorld::is_foreign(Thread& t, uint64_t slab, uint64_t id) {
  const uint64_t found = co_await t.load(owner(slab));
  if (found == kDetached) {
    const uint64_t last = co_await t.load(last_owner(slab));
    co_return last != id;
  }
  co_return owner_id(found) != id&& found != kShared&& found != kReleased;
}

Task<Outcome> SlotsWorld::push(Thread& t, uint64_t context, uint64_t slab, uint64_t bit) {
  const uint64_t seen = co_await free_bits(t, slab);
  if ((seen & bit) != 0) report(slab, "before it goes into a magazine");
  const Outcome pushed = co_await seq_magazine_push(t, context, slab, bit);
  if (pushed == Outcome::kAlreadySet) report(slab, "in a magazine");
  co_return pushed;
}

Task<bool> SlotsWorld::keep(Thread& t, uint64_t context, uint64_t slab, uint64_t bit) {
  const bool foreign = co_await is_foreign(t, slab, context);
  if (!foreign) co_return false;
  const Outcome pushed = co_await push(t, context, slab, bit);
  co_return pushed == Outcome::kDone;
}

Task<bool> SlotsWorld::keep_with_room(Thread& t, uint64_t slab, uint64_t bit) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t context = t.context;
    const Outcome pushed = co_await push(t, context, slab, bit);
    if (pushed == Outcome::kDone) co_return true;
    if (pushed == Outcome::kRefused) co_await flush_magazine(t, context);
  }
  co_return false;
}

Task<void> SlotsWorld::tell_all(Thread& t, uint64_t taken) {
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    const uint64_t bits = taken >> slab * kObjects & kAll;
    if (bits != 0) co_await tell_owner(t, slab, bits);
  }
}

Task<void> SlotsWorld::flush_magazine(Thread& t, uint64_t context) {
  const uint64_t any = co_await t.load(magazine(context));
  if (any == 0) co_return;
  uint64_t taken = 0;
  const Outcome outcome = co_await seq_magazine_take(t, context, &taken);
  if (outcome == Outcome::kDone) co_await tell_all(t, taken);
}

Task<void> SlotsWorld::empty_magazine(Thread& t, uint64_t context) {
  const uint64_t taken = co_await t.load(magazine(context));
  co_await t.store(magazine(context), 0);
  held(t.index) |= taken;
  co_await tell_all(t, taken);
}

// --- free.cpp

// A double free is reported and ends the process. Only a program that frees twice may get here.
void SlotsWorld::report(uint64_t slab, const char* where) {
  const bool is_right =
      scenario_.hardened ? is_misused() != 0 : second_free() != 0 && (second_free() - 1) / kObjects == slab;
  if (is_right) {
    stopped = true;
  } else {
    fail(std::string("a double free is reported where there is none (") + where + ")");
  }
}

Task<void> SlotsWorld::adopt(Thread& t, uint64_t slab, uint64_t context) {
  uint64_t found = 0;
  if (is(Mutation::kAdoptByStore)) {
    found = co_await t.load(owner(slab));
    if (found == kDetached) co_await t.store(owner(slab), context | kHasRemote);
  } else {
    found = co_await t.compare_exchange(owner(slab), kDetached, context | kHasRemote);
  }
  if (found != kDetached) co_return;
  const bool locked = co_await try_lock(t, context_lock(context));
  if (locked) {
    put(slab, Listed::kQueue, context);
    co_await t.exchange(context_lock(context), 0);
    co_return;
  }
  put(slab, Listed::kInbox, context);
  co_await t.fetch_or(inbox(context), uint64_t{1} << slab);
}

Task<bool> SlotsWorld::tell_under_lock(Thread& t, uint64_t slab, uint64_t id, uint64_t bits, uint64_t* before) {
  bool told = false;
  if (id == kCentral) {
    told = co_await central_tell(t, slab, bits, before);
    co_return told;
  }
  if (!is_context(id)) co_return false;
  const bool locked = co_await try_lock(t, context_lock(id));
  if (!locked) co_return false;
  bool release = false;
  const uint64_t found = co_await t.load(owner(slab));
  if (owner_id(found) == id && listed_now(t, slab) == Listed::kQueue) {
    *before = co_await t.fetch_or(remote(slab), bits);
    held(t.index) &= ~objects(slab, bits);
    told = true;
    const uint64_t all = co_await free_bits(t, slab);
    release = (*before & bits) == 0 && all == kAll;
    if (release) put(slab, Listed::kNowhere);
  }
  co_await t.exchange(context_lock(id), 0);
  if (release) co_await release_slab(t, slab);
  co_return told;
}

Task<bool> SlotsWorld::is_worth_publishing(Thread& t, uint64_t slab) {
  const uint64_t bits = co_await free_bits(t, slab);
  co_return static_cast<unsigned>(std::popcount(bits)) * 4 >= kObjects;
}

Task<bool> SlotsWorld::tell_last_of_group(Thread& t, uint64_t slab, uint64_t bits, uint64_t* before) {
  uint64_t found = co_await t.load(owner(slab));
  bool worth = false;
  if (found == kDetached) worth = co_await is_worth_publishing(t, slab);
  if (worth) {
    co_await publish(t, slab);
    found = co_await t.load(owner(slab));
  }
  const bool told = co_await tell_under_lock(t, slab, owner_id(found), bits, before);
  co_return told;
}

Task<void> SlotsWorld::look_for_remote(Thread& t, uint64_t slab) {
  const uint64_t context = t.context;
  const bool locked = co_await try_lock(t, context_lock(context));
  if (!locked) co_return;
  const uint64_t found = co_await t.load(owner(slab));
  if (owner_id(found) == context) co_await collect_all(t, slab, context);
  co_await t.exchange(context_lock(context), 0);
}

Task<Outcome> SlotsWorld::free_own(Thread& t, uint64_t slab, uint64_t bit) {
  const uint64_t found = co_await t.load(owner(slab));
  const uint64_t mark = found < kDetached ? found & kHasRemote : 0;
  uint64_t told = 0;
  if (mark != 0 && !is(Mutation::kFreeMarkedBlindly)) told = co_await t.load(remote(slab));
  if ((told & bit) != 0) report(slab, "own, but told");
  const Outcome outcome = co_await seq_free(t, slab, bit, mark);
  if (outcome == Outcome::kAlreadySet) report(slab, "own");
  co_return outcome;
}

Task<void> SlotsWorld::tell_owner(Thread& t, uint64_t slab, uint64_t bits) {
  uint64_t found = co_await t.load(owner(slab));
  if (found == kReleased) report(slab, "given back meanwhile");
  if (is(Mutation::kTrustOldOwner) && found == kDetached) co_await publish(t, slab);
  const bool was_detached = found == kDetached;
  const uint64_t own = co_await owner_bits(t, slab);
  if ((own & bits) != 0) report(slab, "told");
  uint64_t before = co_await t.load(remote(slab));
  bool done = false;
  if ((own | before | bits) == kAll && !is(Mutation::kReleaseWithoutLock)) {
    done = co_await tell_last_of_group(t, slab, bits, &before);
  }
  if (done) {
    co_await mark_remote(t, slab);
    if ((before & bits) != 0) report(slab, "told under the lock");
    co_return;
  }
  before = co_await t.fetch_or(remote(slab), bits);
  held(t.index) &= ~objects(slab, bits);
  if ((before & bits) != 0) report(slab, "told before");
  if (is(Mutation::kReleaseWithoutLock) && found == kCentral) {
    const uint64_t all = co_await free_bits(t, slab);
    if (all == kAll) {
      put(slab, Listed::kNowhere);
      co_await release_slab(t, slab);
      co_return;
    }
  }
  co_await mark_remote(t, slab);
  if (is(Mutation::kNoRecheckAfterTelling) || (is(Mutation::kTrustOldOwner) && was_detached)) co_return;
  found = co_await t.load(owner(slab));
  if (found != kDetached) co_return;
  const bool worth = co_await is_worth_publishing(t, slab);
  if (worth) co_await publish(t, slab);
}

Task<void> SlotsWorld::free_remote(Thread& t, uint64_t slab, uint64_t bit) {
  const bool kept = co_await keep_with_room(t, slab, bit);
  if (kept) co_return;
  const uint64_t seen = co_await free_bits(t, slab);
  if ((seen & bit) != 0) report(slab, "before telling");
  co_await tell_owner(t, slab, bit);
}

Task<bool> SlotsWorld::free_lightly(Thread& t, uint64_t slab, uint64_t bit) {
  const uint64_t id = t.context;
  const uint64_t found = co_await t.load(owner(slab));
  if (owner_id(found) != id) {
    const bool kept = co_await keep(t, id, slab, bit);
    co_return kept;
  }
  const Outcome outcome = co_await free_own(t, slab, bit);
  if (outcome == Outcome::kGroupFree) co_await on_countdown(t, slab);
  co_return outcome == Outcome::kDone || outcome == Outcome::kGroupFree;
}

// As the program calls it: free's own attempts, then brimful_free_slow(); in the hardened tier that alone.
Task<void> SlotsWorld::free(Thread& t, uint64_t slab, uint64_t bit) {
  Outcome outcome = Outcome::kRefused;
  if (scenario_.hardened) {
    const bool was_live = co_await end_life(t, slab, bit);
    if (!was_live) report(slab, "not live");
    if (!was_live) co_return;
    outcome = co_await seq_free(t, slab, bit, 0);
    if (outcome == Outcome::kAlreadySet) outcome = Outcome::kRefused;  // it will be seen once more
  } else {
    outcome = co_await fast_free(t, slab, bit);
  }
  if (outcome == Outcome::kAlreadySet) report(slab, "in the fast path");
  if (outcome == Outcome::kGroupFree) co_await on_countdown(t, slab);
  if (outcome == Outcome::kDone || outcome == Outcome::kGroupFree) co_return;
  const bool freed = co_await free_lightly(t, slab, bit);
  if (!freed) co_await free_slowly(t, slab, bit);
}

// The program calls free(): counted for the promise of the hardened tier.
Task<void> SlotsWorld::free_counted(Thread& t, uint64_t object) {
  if (static_cast<int64_t>(--lives_not_freed(object)) < 0) is_misused() = 1;
  co_await free(t, object / kObjects, uint64_t{1} << object % kObjects);
  if (stopped || !scenario_.hardened) co_return;
  if (static_cast<int64_t>(--lives_not_ended(object)) < 0) fail("two frees of one life of an object succeed");
}

// slots::free() of the source.
Task<void> SlotsWorld::free_slowly(Thread& t, uint64_t slab, uint64_t bit) {
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t found = co_await t.load(owner(slab));
    const uint64_t id = t.context;
    if (owner_id(found) == id) {
      if ((found & kHasRemote) != 0) co_await look_for_remote(t, slab);
      const Outcome outcome = co_await free_own(t, slab, bit);
      if (outcome == Outcome::kGroupFree) co_await on_countdown(t, slab);
      if (outcome == Outcome::kDone || outcome == Outcome::kGroupFree) co_return;
      continue;
    }
    if (found != kDetached) break;
    const uint64_t last = co_await t.load(last_owner(slab));
    if (last != id) break;
    const uint64_t context = t.context;
    if (context == id) co_await adopt(t, slab, context);
  }
  co_await free_remote(t, slab, bit);
}

Task<void> SlotsWorld::on_countdown(Thread& t, uint64_t slab) {
  const uint64_t context = t.context;
  uint64_t found = co_await t.load(owner(slab));
  if (owner_id(found) != context) co_return;
  const bool locked = co_await try_lock(t, context_lock(context));
  if (!locked) co_return;
  bool release = false;
  found = co_await t.load(owner(slab));
  if (owner_id(found) == context) {
    const Listed where = listed_now(t, slab);
    if (where == Listed::kQueue) {
      const uint64_t all = co_await free_bits(t, slab);
      release = all == kAll;
      if (release) put(slab, Listed::kNowhere);
    } else if (where != Listed::kCurrent) {
      co_await drain_inbox(t, context);
    }
  }
  co_await t.exchange(context_lock(context), 0);
  if (release) co_await release_slab(t, slab);
}

// --- reclaim.cpp

Task<void> SlotsWorld::rehome(Thread& t, uint64_t slab) {
  co_await check_uncollected(t, slab, "taken from its context");
  put(slab, Listed::kNowhere);
  const uint64_t bits = co_await free_bits(t, slab);
  if (bits == kAll) {
    co_await release_slab(t, slab);
  } else if (bits != 0) {
    co_await central_add(t, slab);
  } else {
    co_await t.store(last_owner(slab), kMoving);
    co_await t.exchange(owner(slab), kDetached);
    const uint64_t missed = co_await free_bits(t, slab);
    if (missed != 0) co_await publish(t, slab);
  }
}

Task<void> SlotsWorld::close_context(Thread& t, uint64_t context) {
  const bool locked = co_await try_lock(t, context_lock(context));
  if (!locked) co_return;
  co_await drain_inbox(t, context);
  co_await t.store(active(context), kNobody);
  co_await t.store(slot(context), 0);
  uint64_t mine = co_await t.load(current(context));
  mine = mine == 0 ? 0 : uint64_t{1} << (mine - 1);
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if (listed(slab) == static_cast<uint64_t>(Listed::kQueue) && listed_in(slab) == context)
      mine |= uint64_t{1} << slab;
  }
  t.observe(mine);
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if ((mine >> slab & 1) != 0) co_await t.store(owner(slab), kMoving);
  }
  if (!is(Mutation::kCloseWithoutBarrier)) co_await t.barrier();
  co_await t.store(slot(context), 0);
  if (!is(Mutation::kCloseWithoutBarrier) && !is(Mutation::kCloseWithOneBarrier)) co_await t.barrier();
  co_await empty_magazine(t, context);
  co_await t.store(current(context), 0);
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if ((mine >> slab & 1) != 0) co_await rehome(t, slab);
  }
  co_await t.store(active(context), context);
  co_await t.exchange(context_lock(context), 0);
}

}  // namespace brimful::model
