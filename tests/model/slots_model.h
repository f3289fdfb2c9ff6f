// SPDX-License-Identifier: MIT
//
// The slow paths of src/slots as a model: the same functions by the same names, on a heap small enough to try every
// order of steps.
//
// Size: one class, three slabs of one group of two objects, two contexts with one pending entry each, a central index
// with its shared slab. What a lock guards (queues, `listed`, the central list) is plain state here, touched without a
// step, because nobody else can look at it; what several threads touch without a lock is a cell.
//
// Invariant, after every step: no object is live and free at once, or free in two places, or live twice; a double free
// is never reported (no program frees twice). At the end, when everything pending has been told: each object is live or
// in exactly one place, and each slab with a free object can be found again: by its context, in the central index, as
// the shared slab, or detached with less than a quarter of it freed.
//
// The clauses left out on purpose: countdowns (they only time a look; here every free that makes the group all free looks),
// hardened tier, tables and headers, the heap lock's inside.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "explorer.h"

namespace brimful::model {

inline constexpr unsigned kSlabs = 3;
inline constexpr unsigned kObjects = 2;  // per slab
inline constexpr unsigned kContexts = 2;
inline constexpr uint64_t kAll = (1u << kObjects) - 1;
inline constexpr uint64_t kNobody = 99;

// Owners: context ids, then these.
enum Owner : uint64_t { kDetached = 10, kCentral, kShared, kMoving, kReleased };
enum class Where : uint64_t { kNowhere, kCurrent, kQueue, kInbox, kCentral, kShared };
enum class Outcome { kDone, kOtherContext, kAborted, kRefused, kAlreadySet, kGroupFree };
enum class Refill { kDone, kMoved, kNoMemory };

// Known-bad changes of the protocol. The explorer must find each of them.
enum class Mutation {
  kNone,
  kNoRecheckAfterDetach,    // detach_full does not look for bits that were freed while it let go
  kNoFenceAfterDetach,      // it looks, but its store of the owner may still wait in the store buffer
  kNoRecheckAfterTelling,   // tell_owner does not read the owner again after its fetch_or
  kAdoptByStore,            // adopt checks the owner, then stores it
  kPublishByStore,          // publish likewise
  kDropCollectedBits,       // a refill that was moved keeps the remote bits that it had collected
  kSplitPendingTake,        // the mask is read in a section, and cleared after it
  kClaimFullEntry,          // a pending entry gets a new key although its mask is not empty
  kReleaseWithoutLock,      // whoever tells the last bits releases the slab without the list's lock
  kDetachWithoutEmptying,   // the slot still leads to the group when the slab loses its owner
  kReclaimWithoutBarrier,   // an idle context is emptied although a section may still be running in it
  kOrWithoutContext,        // collected bits go into the word whichever context the thread is in
  kFreeOwnerOutside,        // free() compares the owner before its section, not in it
  kInstallUnverified,       // a refill that was moved still writes the old context's slot
  kEnqueueWithoutLock,      // an adopter whose context's lock is busy leaves the slab in no list
};

// What a thread of a scenario does, in order. Objects are named by the variable they are kept in.
struct Action {
  enum class What { kAllocate, kFree, kFlush, kTrim, kReclaim } what;
  unsigned argument = 0;  // variable, or the context to reclaim
};

struct Program {
  unsigned context;          // where it starts
  uint64_t allowed;          // where it may run, a bit per context
  std::vector<Action> actions;
};

struct SlabSetup {
  uint64_t owner = kReleased;
  Where listed = Where::kNowhere;  // kCurrent also puts the group into the slot
  uint64_t free = 0;               // bits of the word
  uint64_t remote = 0;
  uint64_t last_owner = kNobody;
};

struct Scenario {
  std::string name;
  std::vector<SlabSetup> slabs;
  // Variable i holds object objects[i] (slab * kObjects + index) at the start; kNobody: none yet.
  std::vector<uint64_t> variables;
  std::vector<Program> programs;
  unsigned preemptions = 0;
};

class SlotsWorld : public World {
 public:
  SlotsWorld(const Scenario& scenario, Mutation mutation);

  Task<void> run(Thread& thread) override;
  void check_always() override;
  void check_end() override;
  std::string name_of(Cell cell) const override;

 private:
  // Cells.
  static Cell owner(uint64_t slab) { return static_cast<Cell>(slab * 5); }
  static Cell last_owner(uint64_t slab) { return owner(slab) + 1; }
  static Cell word(uint64_t slab) { return owner(slab) + 2; }
  static Cell remote(uint64_t slab) { return owner(slab) + 3; }
  static Cell remote_count(uint64_t slab) { return owner(slab) + 4; }
  static Cell context_cell(uint64_t context) { return static_cast<Cell>(kSlabs * 5 + context * 6); }
  static Cell slot(uint64_t context) { return context_cell(context); }  // slab + 1, or 0
  static Cell key(uint64_t context) { return context_cell(context) + 1; }
  static Cell mask(uint64_t context) { return context_cell(context) + 2; }
  static Cell active(uint64_t context) { return context_cell(context) + 3; }
  static Cell context_lock(uint64_t context) { return context_cell(context) + 4; }
  static Cell inbox(uint64_t context) { return context_cell(context) + 5; }  // bit set of slabs
  static constexpr Cell kCentralLock = kSlabs * 5 + kContexts * 6;

  // Ghosts: what locks guard, and what the programs hold.
  uint64_t& listed(uint64_t slab) { return ghosts[slab]; }
  uint64_t& current(uint64_t context) { return ghosts[kSlabs + context]; }  // slab + 1, or 0
  uint64_t& shared() { return ghosts[kSlabs + kContexts]; }                 // slab + 1, or 0
  uint64_t& live(uint64_t object) { return ghosts[kSlabs + kContexts + 1 + object]; }
  uint64_t& held(unsigned thread) { return ghosts[24 + thread]; }       // bits in the thread's hands, for the check
  uint64_t& variable(unsigned index) { return ghosts[32 + index]; }     // object + 1, or 0
  uint64_t& listed_in(uint64_t slab) { return ghosts[48 + slab]; }      // context of Where::kQueue, kCurrent, kInbox

  [[nodiscard]] bool is(Mutation mutation) const { return mutation_ == mutation; }
  void put(uint64_t slab, Where where, uint64_t context = kNobody);
  uint64_t first_listed(Where where, uint64_t context);
  uint64_t free_bits_now(uint64_t slab) const;

  // src/arch: the sequences.
  Task<uint64_t> seq_take(Thread& t);  // object + 1, or 0
  Task<Outcome> seq_free(Thread& t, uint64_t slab, uint64_t bit);
  Task<Outcome> seq_store_owner(Thread& t, uint64_t context, uint64_t slab, uint64_t value);
  Task<Outcome> seq_or(Thread& t, uint64_t context, uint64_t slab, uint64_t bits);
  Task<Outcome> seq_install(Thread& t, uint64_t context, uint64_t group);
  Task<Outcome> seq_pending_add(Thread& t, uint64_t context, uint64_t slab, uint64_t bit, uint64_t* now);
  Task<Outcome> seq_pending_take(Thread& t, uint64_t context, uint64_t expected, uint64_t* taken);
  Task<Outcome> seq_pending_claim(Thread& t, uint64_t context, uint64_t slab);

  // src/slots.
  Task<uint64_t> free_bits(Thread& t, uint64_t slab);
  Task<uint64_t> make_slab(Thread& t, uint64_t owner_id);  // slab + 1, or 0
  Task<void> release_slab(Thread& t, uint64_t slab);
  Task<uint64_t> collect_remote(Thread& t, uint64_t slab);
  Task<void> return_remote(Thread& t, uint64_t slab, uint64_t bits);
  Task<Refill> install_next_group(Thread& t, uint64_t context);
  Task<Refill> detach_full(Thread& t, uint64_t context);
  Task<Refill> refill(Thread& t, uint64_t context);
  Task<uint64_t> allocate(Thread& t);
  Task<uint64_t> central_take(Thread& t, uint64_t context);
  Task<void> central_add(Thread& t, uint64_t slab);
  Task<bool> central_tell(Thread& t, uint64_t slab, uint64_t bits, uint64_t* before);
  Task<uint64_t> allocate_shared(Thread& t);
  Task<void> publish(Thread& t, uint64_t slab);
  Task<void> adopt(Thread& t, uint64_t slab, uint64_t context);
  Task<void> drain_inbox(Thread& t, uint64_t context);
  Task<bool> tell_under_lock(Thread& t, uint64_t slab, uint64_t owner_id, uint64_t bits, uint64_t* before);
  Task<void> tell_owner(Thread& t, uint64_t slab, uint64_t bits);
  Task<void> flush_pending(Thread& t, uint64_t context);
  Task<void> free_remote(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> free(Thread& t, uint64_t object);
  Task<void> on_countdown(Thread& t, uint64_t slab);
  Task<void> rehome(Thread& t, uint64_t slab);
  Task<void> reclaim_idle(Thread& t, uint64_t context);
  Task<void> trim(Thread& t);
  Task<bool> try_lock(Thread& t, Cell lock);
  Task<void> unlock(Thread& t, Cell lock);

  Scenario scenario_;
  Mutation mutation_;
};

}  // namespace brimful::model
