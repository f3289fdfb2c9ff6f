// SPDX-License-Identifier: MIT
//
// Contexts and attachment (slots/thread.h): which contexts there are, and how a thread finds its own.
//
// Nothing in here may allocate, and little may be assumed: the caller can be the dynamic linker (slots/start.cpp).
#include "slots/thread.h"

#include <pthread.h>

#include <atomic>

#include "config/options.h"
#include "meta/block.h"
#include "os/cpus.h"
#include "pages/heap.h"
#include "slots/front_end.h"
#include "slots/magazine.h"
#include "slots/start.h"

namespace brimful::slots {

constinit bool per_cpu = false;
constinit std::atomic<Context*> every_context{nullptr};

namespace {

// How the process runs; written once, by choose_mode().
struct Mode {
  const char* reason;  // why not per CPU
  bool uses_mm_cid;
  bool has_barrier;            // for the contexts of threads; CPUs' are not used without
  std::uint32_t cpu_contexts;  // per CPU: ids below are CPUs', from here on threads'
};
constinit Mode mode = {};

// Contexts. Guarded by the heap lock.
constinit std::uint32_t covered_contexts = 0;  // ids that lead somewhere
constinit std::uint32_t next_thread_id = 0;
constinit Context* free_thread_contexts = nullptr;

constinit pthread_key_t exit_key = 0;
constinit bool has_exit_key = false;

// More CPUs than this and there would be too few numbers left for threads.
constexpr std::uint32_t kMostCpus = kMaxContexts / 2;

// The contexts by id, where malloc's fast path does not look: in tier:hardened. See context_entry().
BRIMFUL_ZEROS_COLD constinit std::atomic<Context*> hidden_contexts[kMaxContexts] = {};

// Makes ids below `count` lead to the empty context at least. Caller holds the heap lock.
bool cover_contexts(std::uint32_t count) {
  // relaxed: written under this lock
  if (count > first_stand_in.load(std::memory_order_relaxed)) return false;
  for (; covered_contexts < count; ++covered_contexts) {
    // relaxed: no thread has such an id yet
    arch::brimful_block.contexts[1 + covered_contexts].store(&empty_context, std::memory_order_relaxed);
  }
  return true;
}

// Where the context of an id stands: in the block; in tier:hardened apart from it, so that there every id leads to the
// empty context for good and each malloc misses. A thread may have read anything of the block before the tier was known
// (a signal handler can start the allocator between two instructions of the first malloc): what it read then is right.
std::atomic<Context*>& context_entry(std::uint32_t id) {
  return config::is_hardened() ? hidden_contexts[id] : arch::brimful_block.contexts[1 + id];
}

// A thread's last word: its context's slabs become everybody's.
void on_thread_exit(void* value) {
  const SlowScope scope;
  auto* context = static_cast<Context*>(value);
  ThreadState& state = thread_state;
  state.gone = true;
  if (state.own_context != context) return;
  context->lock.lock();
  release_context(context);
  context->lock.unlock();
  (state.heap != nullptr ? state.own_id_pointer : arch::brimful_thread.context_id) = &no_context_id;
  state.own_context = nullptr;
  recycle_context(context);
}

// Caller holds the heap lock. nullptr when there is no memory.
Context* make_context(std::uint32_t id) {
  if (!cover_contexts(id + 1)) return nullptr;
  auto* context = static_cast<Context*>(pages::heap.arena.allocate(sizeof(Context)));
  if (context == nullptr) return nullptr;
  for (Slot& slot : context->slots) slot.word = &arch::brimful_zero_word;
  // A new context has nothing to look after, and a program that ends at once need not read the clock.
  context->heartbeat =
      arch::has_fast_advance() && !config::checks.offers ? 4 * kHeartbeat * BRIMFUL_BEATS_OF_A_GROUP : 0;
  context->id = context->active_id = id;
  context->requests.begin();
  pages::begin_stacks(context->run_stacks);
  context->next_all = every_context.load(std::memory_order_relaxed);  // relaxed: written under the heap lock only
  every_context.store(context, std::memory_order_release);      // pairs with: all_contexts() (the context filled above)
  context_entry(id).store(context, std::memory_order_release);  // pairs with: context_of() (as above)
  return context;
}

Context* take_thread_context() {
  const sync::MutexLock guard(pages::heap.lock);
  Context* context = free_thread_contexts;
  if (context != nullptr) {
    free_thread_contexts = context->next_free;
  } else {
    context = make_context(next_thread_id);
    if (context == nullptr) return nullptr;
    ++next_thread_id;
    set_magazine_limits(next_thread_id - mode.cpu_contexts);
  }
  context->taken = true;
  return context;
}

}  // namespace

void choose_mode() {
  // The kernel's masks have a bit for each id that it can show. The list is a file, 17 us to read, for where they say nothing.
  const std::uint32_t mask_bits = os::cpu_mask_bits();
  const bool mask_suffices = mask_bits != 0 && mask_bits <= kMostCpus;
  const std::uint32_t cpus = os::cpu_ids(mask_suffices ? 0 : os::possible_cpus(), mask_bits, kMostCpus);
  const os::RseqArea area = os::rseq_area();
  mode.uses_mm_cid = area.mm_cid != nullptr;
  if (config::front_end() == config::FrontEnd::kThread) {
    mode.reason = "front_end:thread";
  } else if (!arch::kRestartable) {
    mode.reason = "this build has no restartable sequences";
  } else if (area.cpu_id == nullptr) {
    mode.reason = "the kernel offers this process no restartable sequences (rseq)";
  } else if (cpus == 0 || cpus > kMostCpus) {
    mode.reason = cpus == 0 ? "the number of CPUs is unknown" : "too many CPUs";
  } else {
    per_cpu = true;
    mode.cpu_contexts = cpus;
    cover_contexts(cpus);
    os::register_rseq_barrier();
  }
  if (!per_cpu && arch::kRestartable && area.rseq_cs != nullptr) mode.has_barrier = os::register_rseq_barrier();
  next_thread_id = mode.cpu_contexts;
  set_magazine_limits(0);
  has_exit_key = pthread_key_create(&exit_key, on_thread_exit) == 0;
}

void describe_mode(Line& description) {
  description << "front end ";
  if (!per_cpu) {
    description << "thread (" << mode.reason << ")";
    return;
  }
  const bool own = os::rseq_owner() == os::RseqOwner::kBrimful;
  const std::uint32_t possible = os::possible_cpus();
  description << "percpu (" << (mode.uses_mm_cid ? "mm_cid" : "cpu_id") << " of "
              << (own ? "our own rseq area" : "the C library's rseq area") << "), "
              << (possible != 0 && possible < mode.cpu_contexts ? possible : mode.cpu_contexts) << " contexts at most";
}

void attach() {
  ThreadState& state = thread_state;
  const os::RseqArea area = os::rseq_area();
  arch::ThreadArea thread = {};
  thread.rseq_cs = area.rseq_cs != nullptr ? area.rseq_cs : &state.own_cs;
  if (per_cpu && area.cpu_id != nullptr) {
    thread.context_id = mode.uses_mm_cid ? area.mm_cid : area.cpu_id;
  } else {
    Context* context = take_thread_context();
    if (context == nullptr) return;  // stays at the dummies; tries again at its next slow path
    // relaxed: until now the context was empty; the lock that closing takes orders what comes after
    context->is_closable.store(mode.has_barrier && area.rseq_cs != nullptr, std::memory_order_relaxed);
    state.own_context = context;
    state.own_id = context->id;
    thread.context_id = &state.own_id;
    if (has_exit_key) pthread_setspecific(exit_key, context);
  }
  // The cs pointer first: a signal handler in between still finds no context, and goes the slow way.
  arch::brimful_thread.rseq_cs = thread.rseq_cs;
  std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with: a signal handler on this thread (the cs pointer)
  arch::brimful_thread.context_id = thread.context_id;
  state.attached = true;
  current_context();  // what is counted from here on is counted in it
}

std::uint32_t contexts_covered() { return covered_contexts; }

Context* context_of(std::uint32_t id) {
  if (!is_context_id(id)) return nullptr;
  Context* context = context_entry(id).load(std::memory_order_acquire);  // pairs with: make_context()
  return context != &empty_context ? context : nullptr;
}

Context* current_context() {
  const std::uint32_t id = current_id();
  if (!is_context_id(id)) return nullptr;
  Context* context = context_of(id);
  if (BRIMFUL_LIKELY(context != nullptr)) return context;
  const sync::MutexLock guard(pages::heap.lock);
  context = context_of(id);
  return context != nullptr ? context : make_context(id);
}

Context* all_contexts() { return every_context.load(std::memory_order_acquire); }  // pairs with: make_context()

bool is_closable(const Context* context) {
  if (per_cpu && context->id < mode.cpu_contexts) return true;
  return context->is_closable.load(std::memory_order_relaxed);  // relaxed: as attach() says
}

bool has_barrier() { return mode.has_barrier; }

void recycle_context(Context* context) {
  const sync::MutexLock guard(pages::heap.lock);
  context->active_ms.store(0, std::memory_order_relaxed);  // relaxed: a rough age; nothing is left to reclaim
  context->taken = false;
  context->orphaned = false;
  context->next_free = free_thread_contexts;
  free_thread_contexts = context;
}

}  // namespace brimful::slots
