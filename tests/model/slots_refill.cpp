// SPDX-License-Identifier: MIT
//
// The model's refill and central index: slab.h, refill.cpp and central.cpp of src/slots, function by function;
// see slots_model.h.
#include <bit>

#include "slots_model.h"

namespace brimful::model {
namespace {

constexpr int kAttempts = 2;  // 8 in the source: once to go wrong, once to go right

}  // namespace

Task<bool> SlotsWorld::try_lock(Thread& t, Cell lock) {
  const uint64_t before = co_await t.compare_exchange(lock, 0, 1);
  co_return before == 0;
}

// --- slab.h, slab.cpp

Task<uint64_t> SlotsWorld::owner_bits(Thread& t, uint64_t slab) {
  const uint64_t bits = co_await t.load(word(slab));
  const uint64_t more = co_await t.load(offered(slab));
  co_return bits | more;
}

Task<uint64_t> SlotsWorld::free_bits(Thread& t, uint64_t slab) {
  const uint64_t bits = co_await owner_bits(t, slab);
  const uint64_t told = co_await t.load(remote(slab));
  co_return bits | told;
}

Task<uint64_t> SlotsWorld::make_slab(Thread& t, uint64_t id) {
  const auto make = [this, id]() -> uint64_t {
    for (uint64_t slab = 0; slab < kSlabs; ++slab) {
      if (cells[owner(slab)] != kReleased || settled(owner(slab)) != kReleased) continue;
      cells[owner(slab)] = cells[last_owner(slab)] = id;
      cells[word(slab)] = kAll;
      cells[offered(slab)] = cells[remote(slab)] = 0;
      put(slab, Listed::kNowhere, id);
      return slab + 1;
    }
    return 0;
  };
  const uint64_t made = co_await t.atomically("makes a slab", make);
  co_return made;
}

// --- lives.h

Task<uint64_t> SlotsWorld::begin_offer(Thread& t, uint64_t slab, uint64_t places) {
  if (!scenario_.hardened) co_return 0;
  const uint64_t freed = co_await t.load(word(slab));
  const uint64_t before = co_await t.load(offered(slab));
  uint64_t fresh = places & freed & ~before;
  if (is(Mutation::kBeginOfferedAgain)) fresh = places;
  if (is(Mutation::kBeginTaken)) fresh = places & ~before;
  if (fresh == 0) co_return 0;
  const uint64_t set = co_await t.load(lives(slab));
  if (set == 0 || is(Mutation::kStoreOverLives)) {
    co_await t.store(lives(slab), set | fresh);
  } else {
    co_await t.fetch_or(lives(slab), fresh);
  }
  co_return fresh;
}

Task<void> SlotsWorld::abandon_offer(Thread& t, uint64_t slab, uint64_t fresh) {
  if (fresh == 0) co_return;
  const uint64_t moved = co_await t.load(offered(slab));
  const uint64_t left = is(Mutation::kAbandonOffered) ? fresh : fresh & ~moved;
  if (left != 0) co_await t.fetch_and(lives(slab), ~left);
}

Task<void> SlotsWorld::end_offer(Thread& t, uint64_t slab, const char* where) {
  if (!scenario_.hardened) co_return;
  const uint64_t left = co_await t.load(offered(slab));
  if (left == 0) co_return;
  const uint64_t before = co_await t.fetch_and(lives(slab), ~left);
  if ((left & ~before) != 0) report(slab, where);
}

// LiveMap::clear(), which free() begins with.
Task<bool> SlotsWorld::end_life(Thread& t, uint64_t slab, uint64_t bit) {
  uint64_t before = 0;
  if (is(Mutation::kLoadAndClear)) {
    before = co_await t.load(lives(slab));
    co_await t.fetch_and(lives(slab), ~bit);
  } else {
    before = co_await t.fetch_and(lives(slab), ~bit);
  }
  co_return (before & bit) != 0;
}

Task<void> SlotsWorld::release_slab(Thread& t, uint64_t slab) {
  co_await check_uncollected(t, slab, "given back");
  if (!is(Mutation::kReleaseOffered)) co_await end_offer(t, slab, "given back while it is offered");
  const auto release = [this, slab]() -> uint64_t {
    const std::string name = "slab " + std::to_string(slab);
    if (cells[owner(slab)] == kReleased && listed(slab) == kNobody) fail(name + " is released twice");
    if (free_now(slab) != kAll) fail(name + " is released with an object that is not free");
    for (uint64_t context = 0; context < kContexts; ++context) {
      if (settled(slot(context)) == slab + 1) fail(name + " is released while a slot leads to it");
    }
    if (listed(slab) != static_cast<uint64_t>(Listed::kNowhere)) fail(name + " is released while it is in a list");
    cells[owner(slab)] = kReleased;
    listed(slab) = kNobody;
    return slab;
  };
  co_await t.atomically("releases a slab", release);
}

Task<void> SlotsWorld::mark_remote(Thread& t, uint64_t slab) {
  uint64_t found = co_await t.load(owner(slab));
  while (found < kHasRemote) {
    const uint64_t before = co_await t.compare_exchange(owner(slab), found, found | kHasRemote);
    if (before == found) co_return;
    found = before;
  }
}

Task<void> SlotsWorld::check_collected(Thread& t, uint64_t slab, uint64_t bits, const char* where) {
  const uint64_t freed = co_await owner_bits(t, slab);
  if ((freed & bits) != 0) report(slab, where);
}

Task<void> SlotsWorld::check_uncollected(Thread& t, uint64_t slab, const char* where) {
  const uint64_t bits = co_await t.load(remote(slab));
  co_await check_collected(t, slab, bits, where);
}

Task<uint64_t> SlotsWorld::collect_remote(Thread& t, uint64_t slab) {
  const uint64_t any = co_await t.load(remote(slab));
  if (any == 0) co_return 0;
  const uint64_t bits = co_await t.exchange(remote(slab), 0);
  held(t.index) |= objects(slab, bits);
  co_return bits;
}

Task<void> SlotsWorld::return_remote(Thread& t, uint64_t slab, uint64_t bits) {
  co_await t.fetch_or(remote(slab), bits);
  held(t.index) &= ~objects(slab, bits);
}

// --- refill.cpp

Task<bool> SlotsWorld::collect_masks(Thread& t, uint64_t slab, uint64_t context, bool* found) {
  const uint64_t bits = co_await collect_remote(t, slab);
  if (bits == 0) co_return true;
  *found = true;
  if (!is(Mutation::kCollectBlindly)) co_await check_collected(t, slab, bits, "collected");
  const Outcome placed = co_await seq_or(t, context, slab, bits);
  if (placed == Outcome::kAlreadySet) report(slab, "placed");
  if (is(Mutation::kCheckPlacedBits)) co_await check_collected(t, slab, bits, "placed");
  if (placed == Outcome::kDone) co_return true;
  if (!is(Mutation::kDropCollectedBits)) {
    co_await return_remote(t, slab, bits);
  } else {
    held(t.index) &= ~objects(slab, bits);
  }
  co_await mark_remote(t, slab);
  co_return false;
}

Task<bool> SlotsWorld::collect_all(Thread& t, uint64_t slab, uint64_t context) {
  const uint64_t owned_by = co_await t.load(owner(slab));
  if ((owned_by & kHasRemote) == 0) co_return true;
  bool found = false;
  bool collected = co_await collect_masks(t, slab, context, &found);
  if (!collected) co_return false;
  if (found) co_return true;
  const Outcome unmarked = co_await seq_store_owner(t, context, slab, context);
  if (unmarked != Outcome::kDone) co_return false;
  if (is(Mutation::kUnmarkAfterCollecting)) co_return true;
  if (!is(Mutation::kNoFenceAfterUnmarking)) co_await t.fence();
  collected = co_await collect_masks(t, slab, context, &found);
  co_return collected;
}

Task<Refill> SlotsWorld::install_next_group(Thread& t, uint64_t context) {
  const uint64_t now = co_await t.load(current(context));
  const uint64_t slab = now - 1;
  const bool collected = co_await collect_all(t, slab, context);
  if (!collected) co_return Refill::kMoved;
  const uint64_t bits = co_await owner_bits(t, slab);
  if (bits == 0) co_return Refill::kNoMemory;
  const bool later = is(Mutation::kOfferThenBegin);
  uint64_t fresh = 0;
  if (!later) fresh = co_await begin_offer(t, slab, bits);
  const Outcome installed = co_await seq_install(t, context, slab);
  if (later && scenario_.hardened) co_await t.fetch_or(lives(slab), bits);
  if (installed != Outcome::kDone) co_await abandon_offer(t, slab, fresh);
  co_return installed == Outcome::kDone ? Refill::kDone : Refill::kMoved;
}

Task<Refill> SlotsWorld::detach_full(Thread& t, uint64_t context) {
  const uint64_t now = co_await t.load(current(context));
  const uint64_t slab = now - 1;
  Outcome outcome = Outcome::kDone;
  if (!is(Mutation::kDetachFilledSlot)) outcome = co_await seq_empty(t, context);
  if (outcome != Outcome::kDone) co_return Refill::kMoved;
  co_await t.store(last_owner(slab), context);
  put(slab, Listed::kNowhere);
  outcome = co_await seq_store_owner(t, context, slab, kDetached);
  if (outcome != Outcome::kDone) {
    put(slab, Listed::kCurrent, context);
    co_return Refill::kMoved;
  }
  co_await t.store(current(context), 0);
  if (is(Mutation::kNoRecheckAfterDetach)) co_return Refill::kNoMemory;
  if (!is(Mutation::kNoFenceAfterDetach)) co_await t.fence();
  const uint64_t bits = co_await free_bits(t, slab);
  if (bits == 0) co_return Refill::kNoMemory;
  const uint64_t before = co_await t.compare_exchange(owner(slab), kDetached, context | kHasRemote);
  if (before == kDetached) put(slab, Listed::kQueue, context);
  co_return Refill::kNoMemory;
}

Task<uint64_t> SlotsWorld::take_central(Thread& t, uint64_t context) {
  const uint64_t slab = co_await central_take(t, context);
  if (slab != 0 && !is(Mutation::kTakeCentralUnflushed)) co_await flush_magazine(t, context);
  co_return slab;
}

Task<Refill> SlotsWorld::refill(Thread& t, uint64_t context) {
  co_await drain_inbox(t, context);
  // Three slabs of which any may be current, queued or central: more rounds would only repeat.
  for (unsigned round = 0; round < kSlabs + 1; ++round) {
    const uint64_t now = co_await t.load(current(context));
    if (now != 0) {
      const Refill installed = co_await install_next_group(t, context);
      if (installed != Refill::kNoMemory) co_return installed;
      const Refill let_go = co_await detach_full(t, context);
      if (let_go == Refill::kMoved) co_return Refill::kMoved;
    }
    uint64_t slab = first_of(t, Listed::kQueue, context);
    if (slab != 0) put(slab - 1, Listed::kNowhere, context);
    if (slab == 0) slab = co_await take_central(t, context);
    if (slab == 0) slab = co_await make_slab(t, context);
    if (slab == 0) co_return Refill::kNoMemory;
    put(slab - 1, Listed::kCurrent, context);
    co_await t.store(current(context), slab);
  }
  co_return Refill::kNoMemory;
}

Task<uint64_t> SlotsWorld::allocate(Thread& t) {
  uint64_t object = 0;
  if (scenario_.coarse) object = co_await seq_take_freed(t);
  if (scenario_.hardened && object != 0) {
    co_await t.fetch_or(lives((object - 1) / kObjects), uint64_t{1} << (object - 1) % kObjects);
  }
  if (object == 0) object = co_await seq_take(t);
  bool advanced = false;
  const bool may_advance = !scenario_.hardened || is(Mutation::kAdvanceInHardened);
  if (object == 0 && may_advance) advanced = co_await seq_advance(t);
  if (advanced) object = co_await seq_take(t);
  bool yielded = false;
  for (int attempt = 0; attempt < kAttempts && object == 0; ++attempt) {
    const uint64_t context = t.context;
    const bool locked = co_await try_lock(t, context_lock(context));
    if (!locked && yielded) break;
    if (!locked) {
      yielded = true;
      continue;
    }
    const Refill result = co_await refill(t, context);
    co_await t.exchange(context_lock(context), 0);
    if (result == Refill::kNoMemory) break;
    object = co_await seq_take(t);
  }
  if (object == 0) {
    object = co_await allocate_shared(t);
  }
  co_return object;
}

Task<void> SlotsWorld::drain_inbox(Thread& t, uint64_t context) {
  const uint64_t any = co_await t.load(inbox(context));
  if (any == 0) co_return;
  const uint64_t slabs = co_await t.exchange(inbox(context), 0);
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if ((slabs >> slab & 1) != 0) put(slab, Listed::kQueue, context);
  }
}

Task<void> SlotsWorld::release_empty_current(Thread& t) {
  const uint64_t context = t.context;
  const bool locked = co_await try_lock(t, context_lock(context));
  if (!locked) co_return;
  const uint64_t slab = co_await t.load(current(context));
  uint64_t bits = 0;
  if (slab != 0) bits = co_await free_bits(t, slab - 1);
  Outcome emptied = Outcome::kRefused;
  if (bits == kAll) emptied = co_await seq_empty(t, context);
  if (emptied == Outcome::kDone) bits = co_await free_bits(t, slab - 1);
  if (emptied == Outcome::kDone && bits == kAll) {
    co_await t.store(current(context), 0);
    put(slab - 1, Listed::kNowhere);
    co_await release_slab(t, slab - 1);
  }
  co_await t.exchange(context_lock(context), 0);
}

// --- central.cpp

Task<uint64_t> SlotsWorld::central_take(Thread& t, uint64_t context) {
  co_await t.lock(kCentralLock);
  const uint64_t slab = first_of(t, Listed::kCentral, kNobody);
  if (slab != 0) {
    put(slab - 1, Listed::kNowhere, context);
    co_await t.store(owner(slab - 1), context | kHasRemote);
  }
  co_await t.exchange(kCentralLock, 0);
  co_return slab;
}

Task<void> SlotsWorld::central_add(Thread& t, uint64_t slab) {
  co_await t.lock(kCentralLock);
  co_await t.store(owner(slab), kCentral);
  put(slab, Listed::kCentral);
  co_await t.exchange(kCentralLock, 0);
}

Task<bool> SlotsWorld::central_tell(Thread& t, uint64_t slab, uint64_t bits, uint64_t* before) {
  co_await t.lock(kCentralLock);
  const uint64_t found = co_await t.load(owner(slab));
  if (found != kCentral || listed_now(t, slab) != Listed::kCentral) {
    co_await t.exchange(kCentralLock, 0);
    co_return false;
  }
  *before = co_await t.fetch_or(remote(slab), bits);
  held(t.index) &= ~objects(slab, bits);
  const uint64_t all = co_await free_bits(t, slab);
  const bool release = (*before & bits) == 0 && all == kAll;
  if (release) put(slab, Listed::kNowhere);
  co_await t.exchange(kCentralLock, 0);
  if (release) co_await release_slab(t, slab);
  co_return true;
}

Task<void> SlotsWorld::publish(Thread& t, uint64_t slab) {
  uint64_t found = 0;
  if (is(Mutation::kPublishByStore)) {
    found = co_await t.load(owner(slab));
  } else {
    found = co_await t.compare_exchange(owner(slab), kDetached, kCentral);
  }
  if (found != kDetached) co_return;
  co_await central_add(t, slab);
}

Task<uint64_t> SlotsWorld::allocate_shared(Thread& t) {
  uint64_t object = 0;
  co_await t.lock(kCentralLock);
  for (unsigned round = 0; round < kSlabs + 1 && object == 0; ++round) {
    if (const uint64_t slab = t.observe(shared()); slab != 0) {
      const uint64_t bits = co_await owner_bits(t, slab - 1);
      const uint64_t collected = co_await collect_remote(t, slab - 1);
      if ((bits & collected) != 0) report(slab - 1, "collected from the shared slab");
      const uint64_t all = bits | collected;
      if (all != 0) {
        if (!is(Mutation::kShareOffered)) co_await end_offer(t, slab - 1, "shared while it is offered");
        const uint64_t rest = all & (all - 1);
        const auto store = [this, slab, rest, all, &t]() -> uint64_t {
          cells[word(slab - 1)] = rest;
          cells[offered(slab - 1)] = 0;
          held(t.index) &= ~objects(slab - 1, rest);
          take_live(t, slab - 1, all ^ rest);
          return all ^ rest;
        };
        co_await t.atomically("takes from the shared slab", store);
        if (scenario_.hardened) co_await t.fetch_or(lives(slab - 1), all ^ rest);
        object = (slab - 1) * kObjects + static_cast<unsigned>(std::countr_zero(all)) + 1;
        break;
      }
      co_await t.store(last_owner(slab - 1), kShared);
      co_await t.exchange(owner(slab - 1), kDetached);
      const uint64_t missed = co_await free_bits(t, slab - 1);
      uint64_t found = 0;
      if (missed != 0) found = co_await t.compare_exchange(owner(slab - 1), kDetached, kShared);
      if (found == kDetached) continue;
      shared() = 0;
    }
    uint64_t slab = first_of(t, Listed::kCentral, kNobody);
    if (slab == 0) slab = co_await make_slab(t, kShared);
    if (slab == 0) break;
    put(slab - 1, Listed::kNowhere);
    co_await t.store(owner(slab - 1), kShared);
    shared() = slab;
  }
  co_await t.exchange(kCentralLock, 0);
  co_return object;
}

}  // namespace brimful::model
