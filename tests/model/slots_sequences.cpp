// SPDX-License-Identifier: MIT
//
// The model's heap, its invariant, and the restartable sequences (src/arch/x86_64/sequences.S); see
// slots_model.h.
#include <bit>

#include "slots_model.h"

namespace brimful::model {

SlotsWorld::SlotsWorld(const Scenario& scenario, Mutation mutation)
    : World(static_cast<unsigned>(scenario.programs.size())), scenario_(scenario), mutation_(mutation) {
  preemptions_left = scenario.preemptions;
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    const SlabSetup setup = slab < scenario.slabs.size() ? scenario.slabs[slab] : SlabSetup();
    cells[owner(slab)] = setup.owner;
    cells[last_owner(slab)] = setup.last_owner;
    cells[word(slab)] = setup.free;
    cells[offered(slab)] = setup.offered;
    cells[remote(slab)] = setup.told;
    if (setup.told != 0 && setup.owner < kHasRemote) cells[owner(slab)] |= kHasRemote;
    put(slab, setup.listed, setup.owner);
    if (setup.listed == Listed::kCurrent) {
      cells[current(setup.owner)] = slab + 1;
      cells[slot(setup.owner)] = slab + 1;
    }
  }
  for (uint64_t context = 0; context < kContexts; ++context) cells[active(context)] = context;
  for (unsigned i = 0; i < scenario.variables.size(); ++i) {
    if (scenario.variables[i] == kNobody) continue;
    variable(i) = scenario.variables[i] + 1;
    live() |= uint64_t{1} << scenario.variables[i];
  }
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    // Whatever is in no variable and not free is live for good.
    if (cells[owner(slab)] != kReleased) live() |= objects(slab, kAll & ~free_now(slab));
  }
  for (uint64_t object = 0; object < kSlabs * kObjects && scenario.hardened; ++object) {
    lives_not_freed(object) = lives_not_ended(object) = live() >> object & 1;
    cells[lives(object / kObjects)] |= (live() >> object & 1) << object % kObjects;
  }
  for (uint64_t slab = 0; slab < kSlabs && scenario.hardened; ++slab) cells[lives(slab)] |= cells[offered(slab)];
  for (uint64_t& resident : resident_) resident = kNobody;
  for (uint64_t context = 0; context < kContexts; ++context) {
    unsigned guests = 0;
    bool closed = false;
    for (const Thread& thread : threads) {
      const Program& program = scenario.programs[thread.index];
      if ((program.allowed >> context & 1) != 0) {
        ++guests;
        resident_[context] = thread.index;
      }
      for (const Action& action : program.actions) {
        closed = closed || (action.what == Action::What::kClose && action.argument == context);
      }
    }
    if (guests != 1 || closed || scenario.programs[resident_[context]].allowed != uint64_t{1} << context) {
      resident_[context] = kNobody;
    }
  }
  for (Thread& thread : threads) {
    const Program& program = scenario.programs[thread.index];
    thread.context = program.context;
    thread.allowed = program.allowed;
    thread.running = true;
    for (unsigned other = 0; other < thread.index; ++other) {
      if (threads[other].context == program.context) thread.running = false;
    }
  }
}

Task<void> SlotsWorld::run(Thread& t) {
  for (const Action action : scenario_.programs[t.index].actions) {
    switch (action.what) {
      case Action::What::kAllocate: {
        const uint64_t object = co_await allocate(t);
        // Whoever sees the object handed over sees everything stored before.
        co_await t.fence();
        if (object != 0) variable(action.argument) = object;
        break;
      }
      case Action::What::kFree: {
        // Waits until somebody has put an object there: programs hand objects over.
        const auto is_there = [this, action] { return variable(action.argument); };
        const uint64_t found = co_await t.await("takes an object to free", is_there);
        const uint64_t object = found - 1;
        variable(action.argument) = 0;
        live() &= ~(uint64_t{1} << object);
        held(t.index) |= uint64_t{1} << object;
        co_await free_counted(t, object);
        break;
      }
      case Action::What::kFlush:
        co_await flush_magazine(t, t.context);
        break;
      case Action::What::kClose:
        co_await close_context(t, action.argument);
        break;
      case Action::What::kTell:
        co_await t.fence();
        variable(action.argument) = action.object + 1;
        break;
      case Action::What::kFreeAgain: {
        const auto is_there = [this, action] { return variable(action.argument); };
        const uint64_t object = co_await t.await("frees again", is_there);
        stopped = (live() >> (object - 1) & 1) != 0;  // handed out again meanwhile: this free would be right
        if (stopped) break;
        second_free() = object;
        if (scenario_.hardened) races() = 1;
        co_await free_counted(t, object - 1);
        if (!stopped && !scenario_.hardened) fail("the second free of an object is not reported");
        break;
      }
      case Action::What::kFreeToo: {
        const auto is_begun = [this, action]() -> uint64_t { return variable(action.argument) == 0 ? 1 : 0; };
        co_await t.await("frees, too", is_begun);
        stopped = (live() >> action.object & 1) != 0;  // as above
        if (stopped) break;
        second_free() = action.object + 1;
        races() = 1;
        co_await free_counted(t, action.object);
        break;
      }
      case Action::What::kReleaseEmpty:
        co_await release_empty_current(t);
        break;
    }
  }
}

// Of a context with one resident, others only reach the lock and the inbox.
bool SlotsWorld::is_private(Cell cell, const Thread& thread) const {
  for (uint64_t context = 0; context < kContexts; ++context) {
    if (resident_[context] != thread.index) continue;
    if (cell == slot(context) || cell == magazine(context) || cell == active(context) || cell == current(context)) {
      return true;
    }
  }
  return false;
}

bool SlotsWorld::is_undisturbed(const Thread& thread) const { return resident_[thread.context] == thread.index; }

// All objects at once, a bit each, because this is looked at after every step.
void SlotsWorld::check_always() {
  const std::array<uint64_t, kCells> now = all_settled();
  uint64_t once = 0;
  uint64_t twice = 0;
  const auto add = [&](uint64_t place) {
    twice |= once & place;
    once |= place;
  };
  uint64_t counted = 0;
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if (cells[owner(slab)] != kReleased || now[owner(slab)] != kReleased) counted |= objects(slab, kAll);
    add(objects(slab, (now[word(slab)] | now[offered(slab)]) & kAll));
    add(objects(slab, now[remote(slab)] & kAll));
  }
  add(live());
  for (uint64_t context = 0; context < kContexts; ++context) add(now[magazine(context)]);
  for (const Thread& thread : threads) add(held(thread.index));
  if (races() != 0) counted &= ~(uint64_t{1} << (second_free() - 1));
  const uint64_t wrong = counted & (~once | twice);
  if (wrong == 0) return;
  const int object = std::countr_zero(wrong);
  fail("object " + std::to_string(object) + ((once >> object & 1) == 0 ? " is lost" : " is in two places"));
}

void SlotsWorld::check_end() {
  if (races() != 0 && !scenario_.hardened) {
    const uint64_t slab = (second_free() - 1) / kObjects;
    const uint64_t bit = uint64_t{1} << (second_free() - 1) % kObjects;
    const uint64_t object = objects(slab, bit);
    unsigned places = ((cells[word(slab)] | cells[offered(slab)]) & bit) != 0;
    places += (cells[remote(slab)] & bit) != 0;
    for (uint64_t context = 0; context < kContexts; ++context) {
      places += (cells[magazine(context)] & object) != 0;
    }
    if (places < 2 && cells[owner(slab)] != kReleased) fail("of two frees at the same moment one is forgotten");
    return;
  }
  if (scenario_.hardened && is_misused() == 0) check_lives();
  uint64_t locks = cells[kCentralLock];
  for (uint64_t context = 0; context < kContexts; ++context) locks |= cells[context_lock(context)];
  if (locks != 0) fail("a lock is held at the end");
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    const uint64_t owned_by = cells[owner(slab)];
    const auto where = static_cast<Listed>(listed(slab));
    const std::string name = "slab " + std::to_string(slab);
    if (owned_by == kReleased) continue;
    if (owned_by == kDetached) {
      if (free_now(slab) != 0) fail(name + " has free objects, but is in no list and nobody's");
    } else if (owned_by == kCentral) {
      if (where != Listed::kCentral) fail(name + " is the central index's, but not in it");
    } else if (owned_by == kShared) {
      if (shared() != slab + 1) fail(name + " is shared, but is not the shared slab");
    } else if (owned_by >= kDetached || listed_in(slab) != (owned_by & ~kHasRemote)) {
      fail(name + " has an owner that does not know it");
    }
  }
}

// At the end of a program without a fault: a bit is set for what is live or offered, and for nothing else.
void SlotsWorld::check_lives() {
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    const uint64_t offers = cells[owner(slab)] == kReleased ? 0 : cells[offered(slab)];
    if (cells[lives(slab)] != (offers | (live() >> slab * kObjects & kAll))) {
      fail("the live bits of slab " + std::to_string(slab) + " are not those of its objects");
    }
  }
}

std::string SlotsWorld::name_of(Cell cell) const {
  static const char* const slab_cells[] = {"owner", "last owner", "word", "offered", "remote", "live bits"};
  static const char* const context_cells[] = {"slot", "magazine", "active id", "lock", "inbox", "current"};
  if (cell == kCentralLock) return "the central lock";
  if (cell < kSlabs * kPerSlab) {
    return std::string(slab_cells[cell % kPerSlab]) + " of slab " + std::to_string(cell / kPerSlab);
  }
  cell -= kSlabs * kPerSlab;
  return std::string(context_cells[cell % kPerContext]) + " of context " + std::to_string(cell / kPerContext);
}

void SlotsWorld::put(uint64_t slab, Listed where, uint64_t context) {
  listed(slab) = static_cast<uint64_t>(where);
  listed_in(slab) = context;
  order(slab) = ++tail();
}

uint64_t SlotsWorld::first_of(Thread& t, Listed where, uint64_t context) {
  uint64_t found = 0;
  for (uint64_t slab = 0; slab < kSlabs; ++slab) {
    if (listed(slab) != static_cast<uint64_t>(where) || (where != Listed::kCentral && listed_in(slab) != context))
      continue;
    if (found == 0 || order(slab) < order(found - 1)) found = slab + 1;
  }
  return t.observe(found);
}

void SlotsWorld::take_live(Thread& t, uint64_t slab, uint64_t bit) {
  held(t.index) &= ~objects(slab, bit);
  if (scenario_.hardened) {
    const auto object = static_cast<unsigned>(std::countr_zero(objects(slab, bit)));
    if (static_cast<int64_t>(lives_not_freed(object)) > 0) fail("an object that is live is handed out again");
    ++lives_not_freed(object);
    ++lives_not_ended(object);
    live() |= objects(slab, bit);
    return;
  }
  if (races() != 0 && objects(slab, bit) == uint64_t{1} << (second_free() - 1)) {
    stopped = true;  // handed out while one of its frees is not known yet: the gap of the default tier
    return;
  }
  if ((live() & objects(slab, bit)) != 0) fail("an object that is live is handed out again");
  live() |= objects(slab, bit);
}

Task<uint64_t> SlotsWorld::seq_take(Thread& t) {
  co_await t.begin_section();
  const uint64_t slab = co_await t.load(slot(t.context));
  if (t.aborted || slab == 0) {
    t.end_section();
    co_return 0;
  }
  const uint64_t free_objects = co_await t.load(offered(slab - 1));
  if (t.aborted || free_objects == 0) {
    t.end_section();
    co_return 0;
  }
  const uint64_t rest = free_objects & (free_objects - 1);
  co_await t.store(offered(slab - 1), rest);
  if (t.end_section()) co_return 0;
  const uint64_t bit = free_objects ^ rest;
  take_live(t, slab - 1, bit);
  co_return (slab - 1) * kObjects + static_cast<unsigned>(std::countr_zero(bit)) + 1;
}

// malloc's own step to the next group of the current slab: no lock, but only while nobody holds it.
Task<uint64_t> SlotsWorld::seq_take_freed(Thread& t) {
  co_await t.begin_section();
  const uint64_t id = t.context;
  const uint64_t active_id = co_await t.load(active(id));
  if (t.aborted || active_id != id) co_return (t.end_section(), 0);
  const bool unoffered = is(Mutation::kTakeFreedUnoffered);
  const uint64_t busy = co_await t.load(context_lock(id));
  if (t.aborted || (busy != 0 && !unoffered)) co_return (t.end_section(), 0);
  const uint64_t slab = co_await t.load(unoffered ? current(id) : slot(id));
  if (t.aborted || slab == 0) co_return (t.end_section(), 0);
  const uint64_t freed = co_await t.load(word(slab - 1));
  if (t.aborted || freed == 0) co_return (t.end_section(), 0);
  const uint64_t rest = freed & (freed - 1);
  co_await t.store(word(slab - 1), rest);
  if (t.end_section()) co_return 0;
  const uint64_t bit = freed ^ rest;
  take_live(t, slab - 1, bit);
  co_return (slab - 1) * kObjects + static_cast<unsigned>(std::countr_zero(bit)) + 1;
}

Task<bool> SlotsWorld::seq_advance(Thread& t) {
  co_await t.begin_section();
  const uint64_t id = t.context;
  const uint64_t active_id = co_await t.load(active(id));
  if (t.aborted || active_id != id) co_return t.end_section() && false;
  const uint64_t busy = co_await t.load(context_lock(id));
  if (t.aborted || (busy != 0 && !is(Mutation::kAdvanceIgnoresLock))) co_return t.end_section() && false;
  const uint64_t slab = co_await t.load(current(id));
  if (t.aborted || slab == 0) co_return t.end_section() && false;
  const uint64_t owned_by = co_await t.load(owner(slab - 1));
  if (t.aborted || owner_id(owned_by) != id) co_return t.end_section() && false;
  const uint64_t freed = co_await t.load(word(slab - 1));
  if (t.aborted || freed == 0) co_return t.end_section() && false;
  co_await t.store(slot(id), 0);
  if (!t.aborted) co_await offer(t, slab - 1);
  if (!t.aborted) co_await t.store(slot(id), slab);
  co_return !t.end_section();
}

// free's own attempts, up to the slow path (kRefused, or aborted).
Task<Outcome> SlotsWorld::fast_free(Thread& t, uint64_t slab, uint64_t bit) {
  Outcome outcome = co_await section_free(t, slab, bit);
  bool marked = false;
  if (outcome == Outcome::kOtherContext) outcome = co_await section_free_foreign(t, slab, bit, &marked);
  if (marked) outcome = co_await section_free_marked(t, slab, bit);
  co_return outcome;
}

Task<Outcome> SlotsWorld::section_free(Thread& t, uint64_t slab, uint64_t bit) {
  uint64_t owned_by = 0;
  if (is(Mutation::kFreeOwnerOutside)) owned_by = co_await t.load(owner(slab));
  co_await t.begin_section();
  if (!is(Mutation::kFreeOwnerOutside)) owned_by = co_await t.load(owner(slab));
  const uint64_t id = is(Mutation::kFreeOwnerOutside) ? owned_by : t.context;
  if (t.aborted || owned_by != id || owned_by >= kHasRemote) {
    co_return t.end_section() ? Outcome::kAborted : Outcome::kOtherContext;
  }
  const uint64_t before = co_await t.load(word(slab));
  uint64_t still_offered = 0;
  if (!t.aborted) still_offered = co_await t.load(offered(slab));
  if (!t.aborted && ((before | still_offered) & bit) != 0) {
    t.end_section();
    co_return Outcome::kAlreadySet;
  }
  if (!t.aborted) co_await t.store(word(slab), before | bit);
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bit);
  co_return (before | bit) == kAll ? Outcome::kGroupFree : Outcome::kDone;
}

// Somebody else's, into the magazine. `marked`: ours after all, with the mark.
Task<Outcome> SlotsWorld::section_free_foreign(Thread& t, uint64_t slab, uint64_t bit, bool* marked) {
  uint64_t before = 0;
  if (is(Mutation::kPushFromOutside)) before = co_await t.load(magazine(t.context));
  co_await t.begin_section();
  const uint64_t id = t.context;
  const uint64_t owned_by = co_await t.load(owner(slab));
  const bool special = owned_by >= kShared;
  if (t.aborted || special || owner_id(owned_by) == id) {
    *marked = !t.aborted && !special;
    co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  }
  uint64_t last = kNobody;
  if (owned_by == kDetached) last = co_await t.load(last_owner(slab));
  if (t.aborted || last == id) co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  if (is(Mutation::kLeaveSection) && owned_by == kDetached) t.end_section();
  const uint64_t free_before = co_await free_bits_in_section(t, slab);
  if (t.aborted || (free_before & bit) != 0) co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  const uint64_t active_id = co_await t.load(active(id));
  if (t.aborted || active_id != id) co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  if (!is(Mutation::kPushFromOutside)) before = co_await t.load(magazine(id));
  const bool full = std::popcount(before) == kMagazineObjects;
  if (t.aborted || full || (before & objects(slab, bit)) != 0) {
    co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  }
  co_await t.store(magazine(id), before | objects(slab, bit));
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bit);
  co_return Outcome::kDone;
}

Task<Outcome> SlotsWorld::section_free_marked(Thread& t, uint64_t slab, uint64_t bit) {
  co_await t.begin_section();
  const uint64_t owned_by = co_await t.load(owner(slab));
  if (t.aborted || owned_by != (t.context | kHasRemote)) {
    co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  }
  uint64_t others = co_await t.load(offered(slab));
  uint64_t told = 0;
  if (!t.aborted && !is(Mutation::kFreeMarkedBlindly)) told = co_await t.load(remote(slab));
  others |= told;
  uint64_t before = 0;
  if (!t.aborted) before = co_await t.load(word(slab));
  if (t.aborted || (others & bit) != 0) co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  if ((before & bit) != 0) {
    t.end_section();
    co_return Outcome::kAlreadySet;
  }
  co_await t.store(word(slab), before | bit);
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bit);
  co_return (before | bit) == kAll ? Outcome::kGroupFree : Outcome::kDone;
}

Task<uint64_t> SlotsWorld::free_bits_in_section(Thread& t, uint64_t slab) {
  uint64_t bits = co_await t.load(word(slab));
  uint64_t more = 0;
  if (!t.aborted) more = co_await t.load(offered(slab));
  bits |= more;
  if (!t.aborted) more = co_await t.load(remote(slab));
  co_return bits | more;
}

Task<Outcome> SlotsWorld::seq_free(Thread& t, uint64_t slab, uint64_t bit, uint64_t mark) {
  co_await t.begin_section();
  const uint64_t owned_by = co_await t.load(owner(slab));
  if (t.aborted || owned_by != (t.context | mark)) {
    co_return t.end_section() ? Outcome::kAborted : Outcome::kOtherContext;
  }
  const uint64_t before = co_await t.load(word(slab));
  uint64_t still_offered = 0;
  if (!t.aborted) still_offered = co_await t.load(offered(slab));
  if (!t.aborted && ((before | still_offered) & bit) != 0 && !is(Mutation::kTrustLife)) {
    t.end_section();
    co_return Outcome::kAlreadySet;
  }
  if (!t.aborted) co_await t.store(word(slab), before | bit);
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bit);
  co_return (before | bit) == kAll ? Outcome::kGroupFree : Outcome::kDone;
}

// Begins a section that verifies its context. false: it ended, by abort or refusal; `aborted` tells which.
Task<bool> SlotsWorld::begin_in(Thread& t, uint64_t context) {
  co_await t.begin_section();
  const uint64_t active_id = co_await t.load(active(context));
  if (!t.aborted && active_id == t.context) co_return true;
  t.end_section();
  co_return false;
}

Task<void> SlotsWorld::offer(Thread& t, uint64_t slab) {
  const uint64_t freed = co_await t.load(word(slab));
  uint64_t before = 0;
  if (!t.aborted) before = co_await t.load(offered(slab));
  if (!t.aborted) co_await t.store(offered(slab), before | freed);
  if (!t.aborted) co_await t.store(word(slab), 0);
}

Task<Outcome> SlotsWorld::seq_store_owner(Thread& t, uint64_t context, uint64_t slab, uint64_t value) {
  const bool here = co_await begin_in(t, context);
  if (!here) co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  co_await t.store(owner(slab), value);
  co_return t.end_section() ? Outcome::kAborted : Outcome::kDone;
}

Task<Outcome> SlotsWorld::seq_or(Thread& t, uint64_t context, uint64_t slab, uint64_t bits) {
  const bool here = co_await begin_in(t, context);
  if (!here && (t.aborted || !is(Mutation::kOrInAnyContext))) {
    co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  }
  const uint64_t before = co_await t.load(word(slab));
  const bool blind = is(Mutation::kLookOutsideOnly) || is(Mutation::kCollectBlindly);
  if (!t.aborted && (before & bits) != 0 && !blind) {
    t.end_section();
    co_return Outcome::kAlreadySet;
  }
  if (!t.aborted) co_await t.store(word(slab), before | bits);
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bits);
  co_return Outcome::kDone;
}

Task<Outcome> SlotsWorld::seq_install(Thread& t, uint64_t context, uint64_t slab) {
  const bool here = co_await begin_in(t, context);
  if (!here && (t.aborted || !is(Mutation::kInstallInAnyContext))) {
    co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  }
  co_await t.store(slot(context), 0);
  if (!t.aborted) co_await offer(t, slab);
  if (!t.aborted) co_await t.store(slot(context), slab + 1);
  co_return t.end_section() ? Outcome::kAborted : Outcome::kDone;
}

Task<Outcome> SlotsWorld::seq_empty(Thread& t, uint64_t context) {
  const bool here = co_await begin_in(t, context);
  if (!here) co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  co_await t.store(slot(context), 0);
  co_return t.end_section() ? Outcome::kAborted : Outcome::kDone;
}

Task<Outcome> SlotsWorld::seq_magazine_push(Thread& t, uint64_t context, uint64_t slab, uint64_t bit) {
  uint64_t before = 0;
  if (is(Mutation::kPushFromOutside)) before = co_await t.load(magazine(context));
  const bool here = co_await begin_in(t, context);
  if (!here) co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  if (!is(Mutation::kPushFromOutside)) before = co_await t.load(magazine(context));
  if (t.aborted || std::popcount(before) == kMagazineObjects) {
    co_return t.end_section() ? Outcome::kAborted : Outcome::kRefused;
  }
  if ((before & objects(slab, bit)) != 0) {
    t.end_section();
    co_return Outcome::kAlreadySet;
  }
  co_await t.store(magazine(context), before | objects(slab, bit));
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) &= ~objects(slab, bit);
  co_return Outcome::kDone;
}

Task<Outcome> SlotsWorld::seq_magazine_take(Thread& t, uint64_t context, uint64_t* taken) {
  const bool here = co_await begin_in(t, context);
  if (!here) co_return t.aborted ? Outcome::kAborted : Outcome::kOtherContext;
  const uint64_t found = co_await t.load(magazine(context));
  if (is(Mutation::kSplitMagazineTake)) {
    if (t.end_section()) co_return Outcome::kAborted;
  }
  if (!t.aborted) co_await t.store(magazine(context), 0);
  if (t.end_section()) co_return Outcome::kAborted;
  held(t.index) |= found;
  *taken = found;
  co_return Outcome::kDone;
}

}  // namespace brimful::model
