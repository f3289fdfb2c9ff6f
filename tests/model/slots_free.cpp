// SPDX-License-Identifier: MIT
//
// The model's frees that leave the fast path and its closing of contexts: free.cpp and reclaim.cpp of src/slots, function by
// function; see slots_model.h.
#include <bit>

#include "slots_model.h"

namespace brimful::model {
namespace {

constexpr int kAttempts = 2;  // 8 in the source: once to go wrong, once to go right

uint64_t owner_id(uint64_t owner) { return owner < kDetached ? owner & ~kHasRemote : owner; }
bool is_context(uint64_t owner) { return owner < kContexts; }
int64_t count_of(uint64_t bits) { return std::popcount(bits); }

}  // namespace

// --- free.cpp

// A double free is reported and ends the process. Only a program that frees twice may get here.
void SlotsWorld::report(uint64_t slab, const char* where) {
  if (second_free() != 0 && (second_free() - 1) / kObjects == slab) {
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

Task<void> SlotsWorld::tell_owner(Thread& t, uint64_t slab, uint64_t bits) {
  const uint64_t told = co_await t.fetch_add(remote_count(slab), static_cast<uint64_t>(count_of(bits)));
  const bool worth_publishing = (told + static_cast<uint64_t>(count_of(bits))) * 4 >= kObjects;
  uint64_t found = co_await t.load(owner(slab));
  if (found == kDetached && worth_publishing) {
    co_await publish(t, slab);
    found = co_await t.load(owner(slab));
  }
  const uint64_t id = owner_id(found);
  uint64_t before = 0;
  if (id == kReleased) report(slab, "given back while pending");
  co_await check_collected(t, slab, bits, "told");
  const uint64_t free_before = co_await free_bits(t, slab);
  bool done = false;
  if ((free_before | bits) == kAll && !is(Mutation::kReleaseWithoutLock)) {
    done = co_await tell_under_lock(t, slab, id, bits, &before);
  }
  if (done) {
    co_await mark_remote(t, slab);
    if ((before & bits) != 0) report(slab, "told under the lock");
    co_return;
  }
  before = co_await t.fetch_or(remote(slab), bits);
  held(t.index) &= ~objects(slab, bits);
  if ((before & bits) != 0) report(slab, "told");
  if (is(Mutation::kReleaseWithoutLock) && id == kCentral) {
    const uint64_t all = co_await free_bits(t, slab);
    if (all == kAll) {
      put(slab, Listed::kNowhere);
      co_await release_slab(t, slab);
      co_return;
    }
  }
  co_await mark_remote(t, slab);
  if (is(Mutation::kNoRecheckAfterTelling) || !worth_publishing) co_return;
  if (is(Mutation::kTrustOldOwner) && id == kDetached) co_return;
  found = co_await t.load(owner(slab));
  if (found == kDetached) co_await publish(t, slab);
}

Task<void> SlotsWorld::take_and_tell(Thread& t, uint64_t context, uint64_t wanted) {
  uint64_t taken = 0;
  const Outcome outcome = co_await seq_pending_take(t, context, wanted, &taken);
  if (outcome == Outcome::kDone && taken != 0) co_await tell_owner(t, wanted - 1, taken);
}

Task<void> SlotsWorld::flush_pending(Thread& t, uint64_t context) {
  const uint64_t found = co_await t.load(key(context));
  const uint64_t any = co_await t.load(mask(context));
  if (any != 0) co_await take_and_tell(t, context, found);
}

Task<void> SlotsWorld::free_remote(Thread& t, uint64_t slab, uint64_t bit) {
  const uint64_t seen = co_await free_bits(t, slab);
  if ((seen & bit) != 0) report(slab, "before telling");
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const uint64_t context = t.context;
    uint64_t now = 0;
    const Outcome added = co_await seq_pending_add(t, context, slab, bit, &now);
    if (added == Outcome::kDone) {
      if (now == kAll) co_await take_and_tell(t, context, slab + 1);
      co_return;
    }
    if (added == Outcome::kAlreadySet) report(slab, "pending");
    if (added != Outcome::kRefused) continue;
    const uint64_t other = co_await t.load(key(context));
    co_await take_and_tell(t, context, other);
    co_await seq_pending_claim(t, context, slab);
  }
  co_await tell_owner(t, slab, bit);
}

Task<void> SlotsWorld::free(Thread& t, uint64_t slab, uint64_t bit) {
  for (int attempt = 0; attempt <= kAttempts; ++attempt) {  // the first is the fast path's
    const uint64_t id = t.context;
    const uint64_t found = co_await t.load(owner(slab));
    if (found == id) {
      const Outcome outcome = co_await seq_free(t, slab, bit);
      if (outcome == Outcome::kAlreadySet) report(slab, "own");
      if (outcome == Outcome::kGroupFree) co_await on_countdown(t, slab);
      if (outcome == Outcome::kDone || outcome == Outcome::kGroupFree) co_return;
      continue;
    }
    if (found == (id | kHasRemote)) {
      const uint64_t context = t.context;
      const bool locked = co_await try_lock(t, context_lock(context));
      if (!locked) break;
      const uint64_t again = co_await t.load(owner(slab));
      if (owner_id(again) == context) co_await collect_all(t, slab, context);
      co_await t.exchange(context_lock(context), 0);
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
  const uint64_t bits = co_await t.load(mask(context));
  const uint64_t found = co_await t.load(key(context));
  if (bits != 0) {
    co_await t.store(mask(context), 0);
    held(t.index) |= objects(found - 1, bits);
    co_await tell_owner(t, found - 1, bits);
  }
  co_await t.store(current(context), 0);
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if ((mine >> slab & 1) != 0) co_await rehome(t, slab);
  }
  co_await t.store(active(context), context);
  co_await t.exchange(context_lock(context), 0);
}

}  // namespace brimful::model
