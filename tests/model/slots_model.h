// SPDX-License-Identifier: MIT
//
// The slow paths of src/slots as a model: the same functions by the same names, on a heap small enough to try
// every order of steps.
//
// Size: one class, three slabs of one group of two objects, two contexts with a magazine for two objects each, a
// central index with its shared slab. What a lock guards (queues, `listed`, the central list) is plain state
// here, touched without a step, because nobody else can look at it; what several threads touch without a lock
// is a cell, also the current slab, which malloc's own advance reads.
//
// Invariant, after every step: each object of each slab is in exactly ONE place: live, free by the owner's words, in the
// remote mask, in a context's magazine, or in the hands of a thread that is about to put it into one of these. A
// double free is reported to a program that frees twice in sequence, and to no other. Of two frees at the same moment,
// which may put an object into two places, neither is forgotten: one is reported, or both are still to be seen, unless the
// object was handed out again or its slab given back meanwhile (the gap of the default tier). At the end: no lock is held, and
// each slab can be found again: by its context, in the central index, as the shared slab, or detached without a free
// object.
//
// Left out on purpose: countdowns and ticks (they only time a look; here every free that makes the group all
// free looks), batches (an offer takes the whole word), the filters of the magazines (they only say when to compare; here
// a magazine is a mask of objects), and what is behind the heap lock.
//
// In scenarios of the hardened tier the promise is the whole one: no object is handed out while it is live, and of any
// frees no more succeed than it was handed out; nobody is told of a double free while there was none.
#pragma once

#include <string>
#include <vector>

#include "explorer.h"

namespace brimful::model {

inline constexpr unsigned kSlabs = 3;
inline constexpr unsigned kObjects = 2;  // per slab
inline constexpr unsigned kContexts = 2;
inline constexpr uint64_t kAll = (1u << kObjects) - 1;
inline constexpr int kMagazineObjects = 2;
inline constexpr uint64_t kNobody = 99;

// Values of a slab's owner: context ids, with or without the mark, then these.
inline constexpr uint64_t kHasRemote = 4;
enum Owner : uint64_t { kDetached = 10, kCentral, kShared, kMoving, kReleased };
inline uint64_t owner_id(uint64_t owner) { return owner < kDetached ? owner & ~kHasRemote : owner; }
enum class Listed : uint64_t { kNowhere, kCurrent, kQueue, kInbox, kCentral };
enum class Outcome { kDone, kOtherContext, kAborted, kRefused, kAlreadySet, kGroupFree };
enum class Refill { kDone, kMoved, kNoMemory };

// Known-bad changes of the protocol. The explorer must find each of them.
enum class Mutation {
  kNone,
  kNoRecheckAfterDetach,   // detach_full does not look for bits that were freed while it let go
  kNoFenceAfterDetach,     // it looks, but its store of the owner may still wait in the store buffer
  kNoRecheckAfterTelling,  // tell_owner does not read the owner again after its fetch_or
  kTrustOldOwner,          // it does, but not if the slab was detached before, although it may have been taken since
  kAdoptByStore,           // adopt reads the owner and then stores it
  kPublishByStore,         // publish likewise
  kDropCollectedBits,      // a holder that was moved keeps the remote bits that it has collected
  kSplitMagazineTake,      // a magazine is read in a section and emptied behind it
  kPushFromOutside,        // a push stores what it has computed from a magazine that it read before its section
  kLeaveSection,           // a push leaves its section for a look at the last owner, and goes on behind it
  kReleaseWithoutLock,     // whoever tells the last bits releases the slab without its list's lock
  kDetachFilledSlot,       // the slot still leads to the group when the slab loses its owner
  kCloseWithoutBarrier,    // a context is emptied although a section may still be running in it
  kCloseWithOneBarrier,    // the slots are emptied, then one barrier, and no second one
  kOrInAnyContext,         // collected bits go into the word whichever context the thread is in
  kFreeOwnerOutside,       // free() compares the owner before its section, not in it
  kInstallInAnyContext,    // a holder that was moved still fills the slot of the context it left
  kAdvanceIgnoresLock,     // malloc advances to a group although somebody works on the context's queue
  kCollectBlindly,         // collect_all does not look whether the owner freed the same object
  kLookOutsideOnly,        // it does, but not once more in the sequence that places the bits
  kCheckPlacedBits,        // it does so when it has placed them, when they are in the words by right
  kUnmarkAfterCollecting,  // collect_all takes the mark down when it found nothing, and does not look again
  kNoFenceAfterUnmarking,  // it looks, but its store of the owner may still wait in the store buffer
  kFreeMarkedBlindly,      // the free of a marked slab does not look at what others have freed
  kTakeFreedUnoffered,     // malloc takes freed objects of the current slab although the slot does not lead there
  kTakeCentralUnflushed,   // a context takes over a slab and keeps objects of it in its magazine
  // tier:hardened
  kLoadAndClear,       // free() reads the live bit and then clears it
  kTrustLife,          // free() finds the live bit set and does not look at the words
  kOfferThenBegin,     // the live bits are set when the offer is made
  kStoreOverLives,     // live bits are set by a store beside bits that others may clear
  kBeginOfferedAgain,  // also those of objects that an earlier offer holds
  kBeginTaken,         // also those of objects that malloc has taken from it meanwhile
  kAbandonOffered,     // an aborted offer clears also the bits of what it has moved
  kAdvanceInHardened,  // malloc goes to the next group by itself
  kReleaseOffered,     // a slab is given back with the live bits of what it still offers
  kShareOffered,       // an offered object becomes the shared slab's with its live bit
};

// What a thread does, in order. Objects are named by the variable they are kept in.
struct Action {
  enum class What { kAllocate, kFree, kFlush, kClose, kReleaseEmpty, kTell, kFreeAgain, kFreeToo } what;
  unsigned argument = 0;  // variable, or the context to close
  uint64_t object = 0;    // kTell: puts it into the variable, for another thread that frees it again
};

struct Program {
  unsigned context;  // where it starts
  uint64_t allowed;  // where it may run, a bit per context
  std::vector<Action> actions;
};

struct SlabSetup {
  uint64_t owner = kReleased;
  Listed listed = Listed::kNowhere;
  uint64_t free = 0;     // bits of the word
  uint64_t offered = 0;  // bits of the offered word; a current slab with some is also in the slot
  uint64_t last_owner = kNobody;
  uint64_t told = 0;  // bits of the remote mask
};

struct Scenario {
  std::string name;
  std::vector<SlabSetup> slabs;
  // Variable i holds object variables[i] (slab * kObjects + index) at the start; kNobody: none yet.
  std::vector<uint64_t> variables;
  std::vector<Program> programs;
  unsigned preemptions = 0;
  bool coarse = false;     // malloc takes freed objects first
  bool hardened = false;   // the tier of live bits
  bool too_large = false;  // to try every order; kept for the mutation that is found in it
};

class SlotsWorld : public World {
 public:
  SlotsWorld(const Scenario& scenario, Mutation mutation);

  Task<void> run(Thread& thread) override;
  bool is_private(Cell cell, const Thread& thread) const override;
  bool is_undisturbed(const Thread& thread) const override;
  void check_always() override;
  void check_end() override;
  std::string name_of(Cell cell) const override;

 private:
  // Cells.
  static constexpr Cell kPerSlab = 6;
  static constexpr Cell kPerContext = 6;
  static Cell owner(uint64_t slab) { return static_cast<Cell>(slab * kPerSlab); }
  static Cell last_owner(uint64_t slab) { return owner(slab) + 1; }
  static Cell word(uint64_t slab) { return owner(slab) + 2; }
  static Cell offered(uint64_t slab) { return owner(slab) + 3; }
  static Cell remote(uint64_t slab) { return owner(slab) + 4; }
  static Cell lives(uint64_t slab) { return owner(slab) + 5; }  // tier:hardened: the live bits
  static Cell slot(uint64_t context) { return static_cast<Cell>(kSlabs * kPerSlab + context * kPerContext); }
  static Cell magazine(uint64_t context) { return slot(context) + 1; }  // a bit per object
  static Cell active(uint64_t context) { return slot(context) + 2; }
  static Cell context_lock(uint64_t context) { return slot(context) + 3; }
  static Cell inbox(uint64_t context) { return slot(context) + 4; }    // a bit per slab
  static Cell current(uint64_t context) { return slot(context) + 5; }  // slab + 1, or 0; like slot
  static constexpr Cell kCentralLock = kSlabs * kPerSlab + kContexts * kPerContext;

  // Ghosts: what locks guard, and what the programs hold.
  uint64_t& listed(uint64_t slab) { return ghosts[slab]; }
  uint64_t& listed_in(uint64_t slab) { return ghosts[kSlabs + slab]; }  // the context whose queue, slot or inbox
  uint64_t& order(uint64_t slab) { return ghosts[2 * kSlabs + slab]; }  // place in a list, first in first out
  uint64_t& shared() { return ghosts[3 * kSlabs]; }                     // slab + 1, or 0
  uint64_t& tail() { return ghosts[3 * kSlabs + 1]; }
  uint64_t& live() { return ghosts[3 * kSlabs + 2]; }                // a bit per object
  uint64_t& held(unsigned thread) { return ghosts[16 + thread]; }    // likewise: in the thread's hands
  uint64_t& variable(unsigned index) { return ghosts[24 + index]; }  // object + 1, or 0
  uint64_t& second_free() { return ghosts[40]; }  // object + 1 that is being freed for the second time
  uint64_t& races() { return ghosts[41]; }        // 1: while the first free was on its way, maybe
  // tier:hardened: how often the object was handed out, less its calls of free() that have begun; and less those that have
  // succeeded. Below 0: the program is wrong; the allocator is.
  uint64_t& lives_not_freed(uint64_t object) { return ghosts[42 + object]; }
  uint64_t& lives_not_ended(uint64_t object) { return ghosts[48 + object]; }
  uint64_t& is_misused() { return ghosts[54]; }
  static uint64_t objects(uint64_t slab, uint64_t bits) { return bits << slab * kObjects; }

  [[nodiscard]] bool is(Mutation mutation) const { return mutation_ == mutation; }
  void put(uint64_t slab, Listed where, uint64_t context = kNobody);
  uint64_t first_of(Thread& t, Listed where, uint64_t context);  // slab + 1, or 0
  Listed listed_now(Thread& t, uint64_t slab) { return static_cast<Listed>(t.observe(listed(slab))); }
  uint64_t free_now(uint64_t slab) const {
    return settled(word(slab)) | settled(offered(slab)) | settled(remote(slab));
  }
  void take_live(Thread& t, uint64_t slab, uint64_t bit);

  // src/arch: the sequences.
  Task<uint64_t> seq_take(Thread& t);  // object + 1, or 0
  Task<bool> seq_advance(Thread& t);
  Task<uint64_t> seq_take_freed(Thread& t);
  Task<Outcome> fast_free(Thread& t, uint64_t slab, uint64_t bit);
  Task<Outcome> section_free(Thread& t, uint64_t slab, uint64_t bit);
  Task<Outcome> section_free_foreign(Thread& t, uint64_t slab, uint64_t bit, bool* marked);
  Task<Outcome> section_free_marked(Thread& t, uint64_t slab, uint64_t bit);
  Task<Outcome> seq_free(Thread& t, uint64_t slab, uint64_t bit, uint64_t mark);
  Task<uint64_t> free_bits_in_section(Thread& t, uint64_t slab);
  Task<bool> begin_in(Thread& t, uint64_t context);
  Task<void> offer(Thread& t, uint64_t slab);
  Task<Outcome> seq_store_owner(Thread& t, uint64_t context, uint64_t slab, uint64_t value);
  Task<Outcome> seq_or(Thread& t, uint64_t context, uint64_t slab, uint64_t bits);
  Task<Outcome> seq_install(Thread& t, uint64_t context, uint64_t slab);
  Task<Outcome> seq_empty(Thread& t, uint64_t context);
  Task<Outcome> seq_magazine_push(Thread& t, uint64_t context, uint64_t slab, uint64_t bit);
  Task<Outcome> seq_magazine_take(Thread& t, uint64_t context, uint64_t* taken);

  void report(uint64_t slab, const char* where);
  Task<void> free_counted(Thread& t, uint64_t object);
  void check_lives();

  // src/slots. One co_await to a statement: gcc 12 gets those wrong that stand in && or ?:.
  Task<bool> try_lock(Thread& t, Cell lock);
  Task<uint64_t> owner_bits(Thread& t, uint64_t slab);
  Task<uint64_t> free_bits(Thread& t, uint64_t slab);
  Task<uint64_t> make_slab(Thread& t, uint64_t owner_id);  // slab + 1, or 0
  Task<void> release_slab(Thread& t, uint64_t slab);
  Task<uint64_t> begin_offer(Thread& t, uint64_t slab, uint64_t places);
  Task<void> abandon_offer(Thread& t, uint64_t slab, uint64_t fresh);
  Task<void> end_offer(Thread& t, uint64_t slab, const char* where);
  Task<bool> end_life(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> mark_remote(Thread& t, uint64_t slab);
  Task<void> check_collected(Thread& t, uint64_t slab, uint64_t bits, const char* where);
  Task<void> check_uncollected(Thread& t, uint64_t slab, const char* where);
  Task<uint64_t> collect_remote(Thread& t, uint64_t slab);
  Task<void> return_remote(Thread& t, uint64_t slab, uint64_t bits);
  Task<bool> collect_masks(Thread& t, uint64_t slab, uint64_t context, bool* found);
  Task<bool> collect_all(Thread& t, uint64_t slab, uint64_t context);
  Task<Refill> install_next_group(Thread& t, uint64_t context);
  Task<Refill> detach_full(Thread& t, uint64_t context);
  Task<uint64_t> take_central(Thread& t, uint64_t context);
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
  Task<bool> is_worth_publishing(Thread& t, uint64_t slab);
  Task<bool> tell_last_of_group(Thread& t, uint64_t slab, uint64_t bits, uint64_t* before);
  Task<void> tell_owner(Thread& t, uint64_t slab, uint64_t bits);
  Task<void> look_for_remote(Thread& t, uint64_t slab);
  Task<Outcome> free_own(Thread& t, uint64_t slab, uint64_t bit);
  Task<bool> is_foreign(Thread& t, uint64_t slab, uint64_t id);
  Task<Outcome> push(Thread& t, uint64_t context, uint64_t slab, uint64_t bit);
  Task<bool> keep(Thread& t, uint64_t context, uint64_t slab, uint64_t bit);
  Task<bool> keep_with_room(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> tell_all(Thread& t, uint64_t taken);
  Task<void> flush_magazine(Thread& t, uint64_t context);
  Task<void> empty_magazine(Thread& t, uint64_t context);
  Task<void> free_remote(Thread& t, uint64_t slab, uint64_t bit);
  Task<bool> free_lightly(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> free(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> free_slowly(Thread& t, uint64_t slab, uint64_t bit);
  Task<void> on_countdown(Thread& t, uint64_t slab);
  Task<void> rehome(Thread& t, uint64_t slab);
  Task<void> close_context(Thread& t, uint64_t context);
  Task<void> release_empty_current(Thread& t);

  const Scenario& scenario_;
  Mutation mutation_;
  // The thread that alone ever runs in a context which nobody closes, or kNobody.
  uint64_t resident_[kContexts];
};

}  // namespace brimful::model
