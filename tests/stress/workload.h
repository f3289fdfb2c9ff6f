// SPDX-License-Identifier: MIT
//
// What the worker threads do: phases that together visit every path of a slab allocator.
//
//   mixed    random allocate / free / realloc / check / hand over, on a table of live objects
//   burst    hundreds of objects of one size, then freed in LIFO, FIFO or random order or handed over whole:
//   fills
//            slabs, makes them full and ownerless, lets another thread's first free adopt them
//   drain    frees everything it holds: empties slabs, gives pages back
//   receive  frees what the others posted: remote frees in batches
//
// Roles: a mixer does all four; a producer never frees, a consumer never allocates (its context has no slab
// of its own, so everything it frees is remote); a guest runs a few thousand operations, leaves its objects
// in the mailboxes and to a TLS destructor, and exits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mailbox.h"
#include "oracle.h"

namespace brimful::stress {

enum class Role { kMixer, kProducer, kConsumer, kGuest };

inline constexpr size_t kMailboxes = 8;
inline constexpr size_t kHeld = 2048;

// The mailboxes of all workers: even numbers are lock-free, odd ones are locked.
class PostOffice {
 public:
  void initialize();
  bool post(size_t box, const Object& object);
  bool take(size_t box, Object* object);

 private:
  LockFreeMailbox lock_free_[kMailboxes / 2];
  LockedMailbox locked_[kMailboxes / 2];
};

// One worker's state. Lives in memory from map_zeroed.
class Worker {
 public:
  // See Oracle::initialize. Without an office (in a forked child, where a box may be locked by a thread that
  // is not there) the worker keeps to itself.
  void initialize(unsigned index, uint64_t stream, uint64_t seed, Role role, PostOffice* office);

  // Works until `operations` calls have been made or totals.stop is raised.
  void run(uint64_t operations);

  // Frees everything that the worker still holds.
  void drain();

  // Posts what it holds beyond `kept` objects to other threads; frees what no box takes.
  void hand_over_all(size_t kept);

  void forget_office() { office_ = nullptr; }

  // Frees what is in the mailboxes, at most `limit` objects. Returns how many.
  size_t receive(size_t limit);

  Oracle& oracle() { return oracle_; }
  Role role() const { return role_; }

 private:
  void mixed(size_t steps);
  void burst();
  void produce(size_t steps);
  void hold(const Object& object);
  Object let_go(size_t position);
  void hand_over(const Object& object);
  bool is_done(uint64_t operations) const;

  Oracle oracle_;
  Role role_;
  PostOffice* office_;
  size_t held_count_;
  Object held_[kHeld];
};

}  // namespace brimful::stress
