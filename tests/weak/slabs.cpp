// SPDX-License-Identifier: MIT
//
// Scenarios: a slab and those who hand it to each other (src/slots: slab.h, free.cpp, refill.cpp, central.cpp, reclaim.cpp,
// magazine.cpp).
#include "brimful/brimful.h"
#include "meta/granule_table.h"
#include "slots/central.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "world.h"

namespace brimful::weak {
namespace {

using namespace brimful::slots;

void fill_and_mark(unsigned thread) {
  fill(thread);
  if (thread == 0) mark_remote(slab);
}
// Thread 1 has a slab of the class, too: it makes none.
void fill_both(unsigned thread) {
  fill(thread);
  if (thread == 1) brimful_free(brimful_malloc(kBytes));
}

// --- the remote mask: an object freed by another is taken by its owner

void collect(Context* context) {
  context->lock.lock();
  if (owner_id(slab->owner.load(std::memory_order_relaxed)) == context->id) collect_all(slab, context);
  context->lock.unlock();
}
void collect_while_told(unsigned thread) {
  if (thread == 0) {
    collect(contexts[0]);
    if ((slab->word(0).load(std::memory_order_relaxed) & 1) != 0) use(objects[0]);
  } else {
    use(objects[0]);
    tell_owner(slab, 0, 1);
  }
}
void collect_while_told_by_handler(unsigned thread) {
  if (thread == 0) {
    collect(contexts[0]);
    if ((slab->word(0).load(std::memory_order_relaxed) & 1) != 0) use(objects[0]);
  } else {
    use(objects[0]);
    free_nested(slab, 0);
  }
}
// As a program does it: free() of another's object, the magazine, malloc().
void free_and_flush(unsigned thread) {
  if (thread == 0) {
    void* object = brimful_malloc(kBytes);
    use(object);
  } else {
    use(objects[0]);
    brimful_free(objects[0]);
    flush_magazine(contexts[1], kClass);
  }
}
void fill_and_tell(unsigned thread) {
  fill(thread);
  if (thread == 1) tell_owner(slab, 0, 2);
}
// What found no place goes back, for the next to collect.
void return_and_collect(unsigned thread) {
  contexts[0]->lock.lock();
  if (thread == 0) {
    const std::uint64_t told = collect_remote(slab, 0);
    if ((told & 2) != 0) use(objects[1]);
    return_remote(slab, 0, told);
    mark_remote(slab);
  } else if ((collect_remote(slab, 0) & 2) != 0) {
    use(objects[1]);
  }
  contexts[0]->lock.unlock();
}

// --- detaching and publishing: who lets go of a full slab against who frees into it

void detach_while_told(unsigned thread) {
  if (thread == 0) {
    use(brimful_malloc(kBytes));
  } else {
    for (unsigned i = 0; i < 2; ++i) use(objects[i]);
    tell_owner(slab, 0, kQuarter);
  }
}
void tell_two_groups(unsigned thread) { tell_owner(slab, thread, 0xFFFFF); }
void adopt_or_publish(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    brimful_free(objects[0]);
  } else {
    use(objects[20]);
    tell_owner(slab, 0, kQuarter << 16);
  }
}
// The words as the last owner left them, and what it did with its object, are seen by the next owner.
void hand_over(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    brimful_free(objects[0]);
    contexts[0]->lock.lock();
    release_context(contexts[0]);
    contexts[0]->lock.unlock();
  } else {
    Slab* taken = central[kClass].take(contexts[1]->id);
    if (taken == nullptr) return;
    if (taken != slab || (owner_bits(taken, 0) & 1) == 0) fail("a slab was handed over without its words");
    use(objects[0]);
  }
}
void publish_and_take(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    tell_owner(slab, 0, kQuarter);
  } else if (central[kClass].take(contexts[1]->id) == slab) {
    slab->idle_ticks = 1;
    if ((free_bits(slab, 0) & 1) == 0) fail("a slab was published without its bits");
    use(objects[0]);
  }
}
void detach_and_adopt(unsigned thread) {
  if (thread == 0) {
    brimful_malloc(kBytes);
    use(objects[0]);
    brimful_free(objects[0]);
  } else {
    use(objects[20]);
    tell_owner(slab, 0, kQuarter << 16);
  }
}

void shared_slab(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  objects[0] = static_cast<std::uint64_t*>(central[kClass].allocate_shared(kClass));
  slab = static_cast<Slab*>(meta::header_of(reinterpret_cast<std::uint64_t>(objects[0])));
  for (unsigned i = 1; i < slab->count(); ++i)
    objects[i] = static_cast<std::uint64_t*>(central[kClass].allocate_shared(kClass));
}
// A context is taken apart while others free into its full slab.
void release_while_told(unsigned thread) {
  if (thread == 0) {
    contexts[0]->lock.lock();
    release_context(contexts[0]);
    contexts[0]->lock.unlock();
  } else {
    use(objects[0]);
    tell_owner(slab, 0, kQuarter);
  }
}
// Who publishes it and takes it over sees that the object is gone that was handed out last.
// As many objects are free as make a slab worth using.
constexpr unsigned kFirstFree = 56;
void fill_most(unsigned thread) {
  fill(thread);
  if (thread != 0) return;
  for (unsigned i = kFirstFree; i < 64; ++i) brimful_free(objects[i]);
}
std::uint64_t handed_out = 0;
void hand_out(void* object) { handed_out = slab->index_of(reinterpret_cast<std::uint64_t>(object)); }
void hand_out_the_rest() {
  for (unsigned i = kFirstFree; i < 64; ++i) hand_out(brimful_malloc(kBytes));
}
void take_over_when_told() {
  tell_owner(slab, 0, kQuarter);
  if (central[kClass].take(contexts[1]->id) == slab && (free_bits(slab, 0) >> handed_out & 1) != 0)
    fail("a live object is free");
}
void release_and_take_over(unsigned thread) {
  if (thread == 1) return take_over_when_told();
  hand_out_the_rest();
  contexts[0]->lock.lock();
  release_context(contexts[0]);
  contexts[0]->lock.unlock();
}
void detach_and_take_over(unsigned thread) {
  if (thread == 1) return take_over_when_told();
  hand_out_the_rest();
  brimful_malloc(kBytes);
}
void shared_but_one(unsigned thread) {
  shared_slab(thread);
  if (thread == 0) slab->word(0).store(std::uint64_t{1} << 63, std::memory_order_relaxed);
}
void share_and_take_over(unsigned thread) {
  if (thread == 1) return take_over_when_told();
  hand_out(central[kClass].allocate_shared(kClass));
  central[kClass].allocate_shared(kClass);
}
// The current slab's last object is told, and its memory is another slab's next.
void free_but_one(unsigned thread) {
  fill(thread);
  if (thread != 0) return;
  for (unsigned i = 1; i < 64; ++i) brimful_free(objects[i]);
}
void release_current(unsigned thread) {
  if (thread == 1) {
    use(objects[0]);
    tell_owner(slab, 0, 1);
    return;
  }
  contexts[0]->lock.lock();
  release_empty_currents(contexts[0], 0);
  contexts[0]->lock.unlock();
  if (slab->owner.load(std::memory_order_relaxed) == kOwnerReleased) use(objects[0]);
}
// Who told a detached slab may still count its words when it is gone and another slab has its header.
void tell_and_make_again(unsigned thread) {
  tell_owner(slab, 0, thread == 1 ? kQuarter : ~kQuarter);
  if (thread == 0 && slab->owner.load(std::memory_order_relaxed) == kOwnerReleased) {
    make_slab(kClass, contexts[0]->id, Expected::kFew);
  }
}
// The owner frees its last object by a fast path, without a lock, while another tells the rest and gives the slab back.
void queue_slab(unsigned thread) {
  detach(thread);
  if (thread == 0) brimful_free(objects[1]);
}
void empty_queued(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    brimful_free(objects[0]);
  } else {
    use(objects[2]);
    tell_owner(slab, 0, ~std::uint64_t{3});
    if (slab->owner.load(std::memory_order_relaxed) == kOwnerReleased) use(objects[0]);
  }
}

// --- the inbox: adopted while the context's lock is busy

void adopt_by_inbox(unsigned thread) {
  if (thread == 0) {
    use(objects[0]);
    brimful_free(objects[0]);
  } else {
    contexts[0]->lock.lock();
    drain_inbox(contexts[0]);
    if (contexts[0]->queues[kClass].partial.front() == slab) slab->idle_ticks = 1;
    contexts[0]->lock.unlock();
  }
}

// --- the shared slab

void allocate_shared_while_told(unsigned thread) {
  if (thread == 0) {
    use(central[kClass].allocate_shared(kClass));
  } else {
    use(objects[0]);
    tell_owner(slab, 0, kQuarter);
  }
}

// --- a slab that is emptied by two is given back, once, and its memory is used again

void empty_by_two(unsigned thread) {
  use(objects[32 * thread]);
  tell_owner(slab, 0, 0xFFFFFFFFull << 32 * thread);
  if (slab->owner.load(std::memory_order_relaxed) != kOwnerReleased) return;
  void* object = brimful_malloc(kBytes);
  use(object);
}
void central_slab(unsigned thread) {
  detach(thread);
  if (thread != 0) return;
  std::uint32_t expected = kOwnerDetached;
  slab->owner.compare_exchange_strong(expected, kOwnerMoving);
  central[kClass].add(slab);
}

// --- pages of a slab in use go back while its owner frees by the fast path

void purge_while_freed(unsigned thread) {
  if (thread == 0) {
    for (unsigned i = 4; i < 8; ++i) {  // a page
      use(objects[i]);
      brimful_free(objects[i]);
    }
  } else {
    purge_slab(slab, InUse::kYes);
  }
}

const Scenario kScenarios[] = {
    {"collect_while_told", 2, fill, collect_while_told, check_told, {3, 2}},
    {"collect_while_marked", 2, fill_and_mark, collect_while_told, check_told, {3, 2}},
    {"collect_while_told_by_handler", 2, fill_and_mark, collect_while_told_by_handler, check_told, {3, 2}},
    {"free_and_flush", 2, fill_both, free_and_flush, check_found, {2, 1}},
    {"return_and_collect", 2, fill_and_tell, return_and_collect, nullptr, {2, 1}},
    {"detach_while_told", 2, fill, detach_while_told, check_found, {2, 1}},
    {"tell_two_groups", 2, detach_two_groups, tell_two_groups, check_found, {2, 1}},
    {"adopt_or_publish", 2, detach, adopt_or_publish, check_found, {2, 1}},
    {"hand_over", 2, fill, hand_over, nullptr, {2, 1}},
    {"publish_and_take", 2, detach, publish_and_take, nullptr, {2, 1}},
    {"detach_and_adopt", 2, fill, detach_and_adopt, check_found, {2, 1}},
    {"release_while_told", 2, fill, release_while_told, check_found, {2, 1}},
    {"release_and_take_over", 2, fill_most, release_and_take_over, nullptr, {2, 1}},
    {"detach_and_take_over", 2, fill_most, detach_and_take_over, nullptr, {2, 1}},
    {"share_and_take_over", 2, shared_but_one, share_and_take_over, nullptr, {2, 1}},
    {"release_current", 2, free_but_one, release_current, nullptr, {2, 1}},
    {"tell_and_make_again", 2, detach, tell_and_make_again, nullptr, {2, 1}},
    {"empty_queued", 2, queue_slab, empty_queued, nullptr, {2, 1}},
    {"purge_while_freed", 2, queue_slab, purge_while_freed, nullptr, {2, 1}},
    {"adopt_by_inbox", 2, detach, adopt_by_inbox, nullptr, {2, 1}},
    {"allocate_shared_while_told", 2, shared_slab, allocate_shared_while_told, check_found, {2, 1}},
    {"empty_by_two", 2, central_slab, empty_by_two, nullptr, {2, 1}},
};

}  // namespace

std::span<const Scenario> slab_scenarios() { return kScenarios; }

}  // namespace brimful::weak
