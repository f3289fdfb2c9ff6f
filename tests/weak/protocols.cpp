// SPDX-License-Identifier: MIT
//
// The library's protocols on the weak memory: each scenario is a few calls of two or three threads, made of the functions of
// src/ themselves. What a program does with an object is a plain write to its first word: so an object that is handed out
// without its last use being known is a race. check() looks for what is lost.
//
//   protocols                         all scenarios, each in a process of its own
//   protocols --list                  their names
//   protocols NAME [P S]              one, with other bounds: preemptions, stale accesses
//     --sites                         and where it has atomic accesses
//     --weaken ADDRESS[=ORDER]        with one of them relaxed (or another order, as a number)
//     --trace                         and the steps that led to the fault
//
// Exit code: 0 no fault, 1 a fault was found, 2 not every run was tried.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "explorer.h"
#include "meta/granule_table.h"
#include "os/calls.h"
#include "pages/heap.h"
#include "slots/central.h"
#include "slots/context.h"
#include "slots/freed_slots.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/slab.h"
#include "slots/thread.h"

namespace brimful::weak {
namespace {

using namespace brimful::slots;

constexpr std::uint64_t kMostRuns = 3'000'000;
constexpr std::size_t kBytes = 1024;       // a slab of one group
constexpr std::size_t kTwoGroups = 512;
const ClassId kClass = class_of(kBytes);

Context* contexts[kMostThreads];
Slab* slab = nullptr;
std::uint64_t* objects[128];

void use(void* object) { ++*static_cast<std::uint64_t*>(object); }

Slab* slab_of(void* object) {
  return static_cast<Slab*>(meta::header_of(reinterpret_cast<std::uint64_t>(object)));
}

void attach(unsigned thread) {
  os::calls.now_ms = []() -> std::uint64_t { return 1000; };
  os::calls.yield = [] { weak::yield(); };
  brimful::slots::prepare();
  contexts[thread] = current_context();
}

// A slab of thread 0 in which all objects live; it is the current one.
void fill_with(unsigned thread, std::size_t bytes) {
  attach(thread);
  if (thread != 0) return;
  slab = slab_of(brimful_malloc(bytes));
  for (std::uint64_t i = 1; i < slab->count(); ++i) brimful_malloc(bytes);
  for (unsigned i = 0; i < slab->count(); ++i) objects[i] = reinterpret_cast<std::uint64_t*>(slab->object(i));
}
void fill(unsigned thread) { fill_with(thread, kBytes); }
void fill_and_mark(unsigned thread) {
  fill(thread);
  if (thread == 0) mark_remote(slab);
}
// The slab is detached, and thread 0 has another that is current and has free objects.
void detach_with(unsigned thread, std::size_t bytes) {
  fill_with(thread, bytes);
  if (thread == 0) brimful_malloc(bytes);
}
void detach(unsigned thread) { detach_with(thread, kBytes); }
void detach_two_groups(unsigned thread) { detach_with(thread, kTwoGroups); }
// Thread 1 has a slab of the class, too: it makes none.
void fill_both(unsigned thread) {
  fill(thread);
  if (thread == 1) brimful_free(brimful_malloc(kBytes));
}

bool is_told(std::uint64_t index) { return (free_bits(slab, static_cast<unsigned>(index / 64)) >> index % 64 & 1) != 0; }

// A slab with free objects is one that somebody finds, and its owner knows that others have freed.
void check_found() {
  const std::uint32_t owner = slab->owner.load(std::memory_order_relaxed);
  if (owner == kOwnerDetached && free_objects(slab) * 4 >= slab->count())
    fail("the slab has free objects and belongs to nobody");
  if (owner < kFirstSpecialOwner && (owner & kOwnerHasRemote) == 0) {
    for (unsigned g = 0; g < slab->groups; ++g) {
      if (slab->remote(g).load(std::memory_order_relaxed) != 0) fail("the owner does not know that others have freed");
    }
  }
}
void check_told() {
  if (!is_told(0)) fail("an object that was freed is lost");
  check_found();
}

constexpr std::uint64_t kQuarter = 0xFFFF;

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

void shared_slab(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  objects[0] = static_cast<std::uint64_t*>(central[kClass].allocate_shared(kClass));
  slab = slab_of(objects[0]);
  for (unsigned i = 1; i < slab->count(); ++i)
    objects[i] = static_cast<std::uint64_t*>(central[kClass].allocate_shared(kClass));
}
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
// Two that can't know of each other leave it in the index.
void check_given_back() {
  const std::uint32_t owner = slab->owner.load(std::memory_order_relaxed);
  if (owner != kOwnerReleased && owner != kOwnerCentral) fail("an empty slab was not given back");
}

// --- contexts are found by number and by the list

void attach_first(unsigned thread) {
  if (thread == 0) attach(thread);
}
void make_and_find_context(unsigned thread) {
  if (thread == 1) {
    attach(1);
    return;
  }
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    if (context->id > 10) fail("a context is found that is not made yet");
  }
  const Context* other = context_of(contexts[0]->id + 1);
  if (other != nullptr && other->id != contexts[0]->id + 1) fail("as above, by its number");
}

// --- the table of granules: a header is found by an address

std::uint64_t next_start = 0;
void slab_to_come(unsigned thread) {
  attach(thread);
  if (thread != 0) return;
  Slab* next = make_slab(kClass, kOwnerMoving);
  next_start = next->start;
  release_slab(next);
}
void make_and_look_up(unsigned thread) {
  if (thread == 0) {
    make_slab(kClass, kOwnerMoving);
  } else {
    const Header* header = pages::heap.table.look_up(next_start);
    if (header->kind == Kind::kSlab && header->start != next_start) fail("a header that is not filled yet");
  }
}

// --- lists of freed slots

struct Freed {
  std::uint32_t next;
  std::uint32_t value;
};
Freed freed_records[4];
Freed* freed_record(std::uint32_t slot) { return &freed_records[slot - 1]; }
FreedSlots<freed_record>* freed_slots = nullptr;
alignas(FreedSlots<freed_record>) unsigned char freed_slots_memory[sizeof(FreedSlots<freed_record>)];
void begin_freed(unsigned thread) {
  if (thread == 0) freed_slots = new (freed_slots_memory) FreedSlots<freed_record>;
}
void push_and_collect(unsigned thread) {
  if (thread < 2) {
    freed_records[thread].value = 7;
    freed_slots->push(thread + 1);
  } else {
    freed_slots->collect([](std::uint32_t slot) {
      if (freed_record(slot)->value != 7) fail("a record that is not written yet");
    });
  }
}
void check_freed() {
  freed_slots->collect([](std::uint32_t) {});
  if (freed_slots->count() != 2) fail("a slot is lost");
}

// --- locks

sync::Mutex<sync::Rank::kHeap> mutex;
unsigned counter = 0;
void count_under_lock(unsigned) {
  mutex.lock();
  ++counter;
  mutex.unlock();
}
void try_under_lock(unsigned) {
  if (!mutex.try_lock()) return;
  ++counter;
  mutex.unlock();
}
void check_count() {
  if (counter != 2) fail("a count is lost");
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
    {"empty_queued", 2, queue_slab, empty_queued, nullptr, {2, 1}},
    {"adopt_by_inbox", 2, detach, adopt_by_inbox, nullptr, {2, 1}},
    {"allocate_shared_while_told", 2, shared_slab, allocate_shared_while_told, check_found, {2, 1}},
    {"empty_by_two", 2, central_slab, empty_by_two, check_given_back, {2, 1}},
    {"make_and_find_context", 2, attach_first, make_and_find_context, nullptr, {1, 1}},
    {"make_and_look_up", 2, slab_to_come, make_and_look_up, nullptr, {1, 1}},
    {"push_and_collect", 3, begin_freed, push_and_collect, check_freed, {3, 2}},
    {"count_under_lock", 2, nullptr, count_under_lock, check_count, {2, 1}},
    {"try_under_lock", 2, nullptr, try_under_lock, nullptr, {2, 1}},
};

int run(const Scenario& scenario, Bounds bounds, bool sites, bool trace) {
  const Result result = explore(scenario, bounds, kMostRuns);
  std::printf("%s  %8lu runs  %8lu states  %s%s%s\n", !result.fault.empty() ? "FAULT " : result.is_complete ? "ok    " : "PART  ",
              static_cast<unsigned long>(result.runs), static_cast<unsigned long>(result.states), scenario.name,
              result.fault.empty() ? "" : ": ", result.fault.c_str());
  if (trace && !result.fault.empty()) print_trace();
  if (sites) print_sites();
  std::fflush(stdout);
  return !result.fault.empty() ? 1 : result.is_complete ? 0 : 2;
}

}  // namespace
}  // namespace brimful::weak

int main(int count, char** arguments) {
  using namespace brimful::weak;
  setenv("BRIMFUL_CONF", "front_end:thread,purge_delay_ms:-1,guards:0", 1);
  const char* name = nullptr;
  bool sites = false;
  bool trace = false;
  unsigned numbers[2];
  unsigned given = 0;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--list") == 0) {
      for (const Scenario& scenario : kScenarios) std::printf("%s\n", scenario.name);
      return 0;
    }
    if (std::strcmp(arguments[i], "--sites") == 0) {
      sites = true;
    } else if (std::strcmp(arguments[i], "--trace") == 0) {
      trace = true;
      trace_faults();
    } else if (std::strcmp(arguments[i], "--weaken") == 0 && i + 1 < count) {
      char* end = nullptr;
      const std::uintptr_t site = std::strtoul(arguments[++i], &end, 16);
      weaken(site, *end == '=' ? static_cast<Order>(std::atoi(end + 1)) : Order::kRelaxed);
    } else if (name == nullptr) {
      name = arguments[i];
    } else if (given < 2) {
      numbers[given++] = static_cast<unsigned>(std::atoi(arguments[i]));
    }
  }
  int worst = 0;
  for (const Scenario& scenario : kScenarios) {
    if (name != nullptr && std::strcmp(name, scenario.name) != 0) continue;
    const Bounds bounds = given == 2 ? Bounds{numbers[0], numbers[1]} : scenario.bounds;
    if (name != nullptr) return run(scenario, bounds, sites, trace);
    std::fflush(stdout);
    // Begun anew, because a fork() is something that the library notices.
    const pid_t child = vfork();
    if (child == 0) {
      execl("/proc/self/exe", arguments[0], scenario.name, nullptr);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (!WIFEXITED(status)) std::printf("FAULT   %s: signal %d\n", scenario.name, WTERMSIG(status));
    if (code > worst) worst = code;
  }
  return worst;
}
