// SPDX-License-Identifier: MIT
//
// alloc/allocate.h, and where the fast paths of arch/ go when they miss.
#include "alloc/allocate.h"

#include <errno.h>
#include <string.h>

#include <bit>

#include "alloc/emergency.h"
#include "alloc/heaps.h"
#include "alloc/large.h"
#include "arch/sequences.h"
#include "config/options.h"
#include "meta/live_map.h"
#include "meta/misuse.h"
#include "meta/request_class.h"
#include "os/calls.h"
#include "os/errno_guard.h"
#include "pages/heap.h"
#include "pages/large_run.h"
#include "pages/purger.h"
#include "pages/run_stacks.h"
#include "slots/background.h"
#include "slots/front_end.h"
#include "slots/guards.h"
#include "slots/object_checks.h"
#include "slots/requests.h"
#include "slots/samples.h"
#include "slots/sampling.h"
#include "slots/slab.h"
#include "slots/thread.h"
#include "slots/user_heap.h"

namespace brimful::alloc {
namespace {

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

// A live block, or what a wild pointer leads to.
struct Block {
  Slab* slab = nullptr;  // with index: an object
  std::uint64_t index = 0;
  Run* run = nullptr;                          // a large or huge block
  const meta::GuardRecord* guarded = nullptr;  // by find_block() only

  [[nodiscard]] bool is_in_heap() const { return slab != nullptr || run != nullptr; }
  [[nodiscard]] bool is_there() const { return is_in_heap() || guarded != nullptr; }
};

// The large block of which `address` is an inner byte: its header is only at its first granule, so walk back to it.
// For reports only. Caller holds the heap lock.
Run* enclosing_run(std::uint64_t address) {
  meta::GranuleTable& table = pages::heap.table;
  for (std::uint64_t at = round_down(address, kGranuleBytes); pages::heap.pages.was_used(at); at -= kGranuleBytes) {
    Header* header = table.look_up(at);
    if (header->kind == Kind::kNone) continue;
    auto* run = static_cast<Run*>(header);
    if (header->kind != Kind::kLarge || !pages::is_live(run)) return nullptr;
    return run->start <= address && address < run->start + run->bytes ? run : nullptr;
  }
  return nullptr;
}

// In a SlowScope.
BRIMFUL_COLD void bad_pointer(std::uint64_t address, const char* call) {
  if (slots::thread_state.depth <= 1) {  // it may be the program's first call: the options, and memory for the hook
    slots::prepare();
    prepare_emergency();
  }
  const Header* owner = meta::header_of(address);
  bool was_used = false;
  if (owner->kind != Kind::kSlab || address - owner->start >= static_cast<const Slab*>(owner)->count() *
                                                                  static_cast<const Slab*>(owner)->shape().bytes) {
    owner = nullptr;
    if (slots::thread_state.depth <= 1) {  // deeper, this thread may hold the lock already
      const sync::MutexLock guard(pages::heap.lock);
      was_used = pages::heap.pages.was_used(address);
      owner = was_used ? enclosing_run(address) : pages::heap.huge.find(address);
    }
  }
  meta::report_bad_pointer(call, address, was_used, owner, slots::history_of(address, owner));
}

// The block in a window that starts at `address`, or an empty one. Takes no lock. A call would be a tenth of a large
// free().
[[gnu::always_inline]] inline Block find_in_windows(std::uint64_t address) {
  Header* header = meta::header_of(address);
  Block block;
  switch (header->kind) {
    case Kind::kSlab: {
      auto* slab = static_cast<Slab*>(header);
      const std::uint64_t index = slab->index_of(address);
      if (index < slab->count()) {
        block.slab = slab;
        block.index = index;
        return block;
      }
      break;
    }
    case Kind::kLarge:
      if (header->start == address && pages::is_live(static_cast<Run*>(header))) {
        block.run = static_cast<Run*>(header);
        return block;
      }
      break;
    default:
      break;
  }
  return block;
}

// In tier:hardened, what destroyed heaps leave behind keeps its headers. true: it has been reported.
bool report_if_destroyed(std::uint64_t address, const char* call) {
  const Header* header = meta::header_of(address);
  // relaxed: a block that was destroyed before the program asks about it
  if (BRIMFUL_LIKELY(header->owner.load(std::memory_order_relaxed) != kOwnerDestroyed)) return false;
  const bool is_block = header->kind == Kind::kLarge ? header->start == address
                                                     : static_cast<const Slab*>(header)->index_of(address) <
                                                           static_cast<const Slab*>(header)->count();
  if (is_block) meta::report_destroyed(call, address);
  return is_block;
}

// The block that starts at `address`; an empty one when there is none, which has been reported.
Block find_block(std::uint64_t address, const char* call) {
  Block block = find_in_windows(address);
  if (BRIMFUL_LIKELY(block.is_in_heap())) return block;
  if (slots::is_guarded(address)) {
    block.guarded = slots::guarded_at(address, call);
    return block;
  }
  if (slots::thread_state.depth <= 1) block.run = find_huge(address);
  if (BRIMFUL_UNLIKELY(block.run == nullptr) && !report_if_destroyed(address, call)) bad_pointer(address, call);
  return block;
}

bool is_live(Slab* slab, std::uint64_t index) {
  if (config::is_hardened() && !meta::live_map.is_set(slab->object(index))) return false;
  const auto group = static_cast<unsigned>(index / kGroupObjects);
  return (slots::free_bits(slab, group) >> (index % kGroupObjects) & 1) == 0;
}

BRIMFUL_COLD void not_live(const Block& block, const char* call) {
  const std::uint64_t object = block.slab->object(block.index);
  if (report_if_destroyed(object, call)) return;
  meta::report_double_free(call, *block.slab, block.index, slots::history_of(object, block.slab));
}

// As find_block(), and an object that was freed is none either.
Block find_live(std::uint64_t address, const char* call) {
  const Block block = find_block(address, call);
  if (BRIMFUL_LIKELY(block.slab == nullptr || is_live(block.slab, block.index))) return block;
  not_live(block, call);
  return {};
}

std::size_t bytes_in_heap(const Block& block) {
  return block.slab != nullptr ? meta::usable_bytes(block.slab->size_class) : block.run->bytes;
}
std::size_t bytes_of(const Block& block) {
  if (BRIMFUL_UNLIKELY(!block.is_there())) return 0;
  return block.guarded != nullptr ? block.guarded->bytes : bytes_in_heap(block);
}

// realloc() leaves an object where it is while it fits and at least half of it is used.
bool may_stay(std::size_t bytes, std::size_t usable) {
  return bytes <= usable && (bytes > usable / 2 || usable <= 2 * kObjectAlignment);
}

// A realloc() to less found no memory and left the object where it was: from then on, a size that is too small for an
// object's class proves nothing.
constinit bool shrink_was_refused = false;

std::uint32_t heap_number(const Block& block) {
  return block.slab != nullptr ? slots::heap_number(block.slab) : slots::heap_number(block.run);
}

// Frees of samples and of guarded objects, as any moment allows.
BRIMFUL_COLD void free_sampled(Slab* slab, std::uint64_t index) {
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  slots::free_sampled(slab, index, scope.nested());
}
BRIMFUL_COLD void free_guarded(std::uint64_t address) {
  const os::ErrnoGuard errno_guard;
  slots::free_guarded(address, "free");
}
BRIMFUL_COLD void end_large_sample(Run* run) {
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  slots::end_sample(run, scope.nested() ? meta::kSampleFreeInHandler : 0);
}

void free_object(Slab* slab, std::uint64_t index, const slots::SlowScope& scope) {
  if (slots::heap_number(slab) != 0) {
    if (scope.nested()) return slots::free_in_heap_nested(slab, index);
    return slots::free_in_heap(slab, index);
  }
  if (scope.nested()) return slots::free_nested(slab, index);
  slots::prepare();
  slots::free(slab, index);
}

// The class of a request; kClassCount: none. The first of all comes before the options say which it is.
std::size_t class_of_request(std::size_t bytes, std::size_t alignment) {
  if (BRIMFUL_UNLIKELY(!slots::thread_state.attached)) {
    const slots::SlowScope scope;
    if (!scope.nested()) slots::prepare();
  }
  return meta::class_for(bytes, alignment);
}

// `bytes` were asked for, which the class holds.
void* allocate_class(std::size_t index, std::size_t bytes) {
  void* object = slots::take(static_cast<ClassId>(index));
  if (BRIMFUL_LIKELY(object != nullptr)) return object;
  const slots::SlowScope scope;
  if (scope.nested()) return allocate_emergency(kSizeClasses[index].bytes, std::size_t{1} << kSizeClasses[index].shift);
  slots::prepare();
  prepare_emergency();
  slots::count_request(index, bytes, kSizeClasses[index].bytes);
  slots::Allocation got = slots::allocate(static_cast<ClassId>(index));
  if (BRIMFUL_UNLIKELY(got.is_guarded)) {
    if (void* guarded = slots::allocate_guarded(bytes)) return guarded;
    // One like any. If that is chosen as well, nearly all are: then of the shared slab.
    got = slots::allocate(static_cast<ClassId>(index));
    if (got.is_guarded) got.object = slots::allocate_unsampled(static_cast<ClassId>(index));
  }
  if (BRIMFUL_UNLIKELY(got.sample_interval != 0)) {
    got.object = slots::allocate_sampled(static_cast<ClassId>(index), bytes, got.sample_interval);
    if (got.object == nullptr) got.object = slots::allocate_unsampled(static_cast<ClassId>(index));
  }
  return got.object;
}

[[gnu::always_inline]] inline void* allocate_run(std::size_t bytes, std::size_t alignment) {
  if (void* block = allocate_large_lightly(bytes, alignment)) return block;
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  if (scope.nested()) return allocate_emergency(bytes, alignment);
  slots::prepare();
  prepare_emergency();
  void* block = allocate_large(bytes, alignment);
  if (block == nullptr && bytes <= kMostBytes) {
    slots::reclaim_all();  // granules of empty slabs may join to what is asked for
    block = allocate_large(bytes, alignment);
  }
  if (block != nullptr) slots::count_request(slots::kLargeRequests, bytes, round_up(bytes, os::page_bytes()));
  return block;
}

// The block, which the program does not have yet, is a sample of the interval, if that is not 0.
void* sample_large(void* block, std::size_t bytes, std::uint64_t interval, std::uint32_t flags) {
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  if (block == nullptr || interval == 0 || scope.nested()) return block;
  slots::prepare();
  Header* header = meta::header_of(address_of(block));
  const bool is_in_window = header->kind == Kind::kLarge && header->start == address_of(block);
  Run* run = is_in_window ? static_cast<Run*>(header) : find_huge(address_of(block));
  if (run != nullptr) slots::begin_sample(run, bytes, interval, flags);
  return block;
}

// While samples are taken. A block from a stack is decided by the bytes that the stacks count down, in arch/; every other
// by itself. Both are one chance for each block.
BRIMFUL_COLD void* allocate_run_sampling(std::size_t bytes, std::size_t alignment) {
  if (slots::sample_interval() == meta::kIntervalUnread) {  // the program's first request; it may be a sample, too
    const os::ErrnoGuard errno_guard;
    const slots::SlowScope scope;
    if (!scope.nested()) slots::prepare();
  }
  if (slots::sample_interval() == 0) return allocate_run(bytes, alignment);
  if (!slots::takes_run_sample()) {
    const bool may_lie_in_stack = bytes > kMaxClassBytes && alignment <= kGranuleBytes;
    void* block = may_lie_in_stack ? arch::brimful_take_run(bytes) : nullptr;
    if (block != nullptr) return block;
    if (!slots::takes_run_sample()) {
      block = allocate_run(bytes, alignment);
      return sample_large(block, bytes, slots::draws_sample(round_up(bytes, os::page_bytes())), 0);
    }
  }
  // The wait is over, and the next one begins behind this block.
  slots::set_run_wait(pages::kNoSample);
  void* block = allocate_run(bytes, alignment);
  slots::set_run_wait(slots::draw_run_wait());
  return sample_large(block, bytes, slots::sample_interval(), 0);
}

// A thread with a current heap: its fast paths always miss.
bool has_current_heap() { return BRIMFUL_UNLIKELY(slots::thread_state.heap != nullptr); }

// free() for such a thread, as any other thread would do it.
BRIMFUL_COLD void free_outside_heap(void* pointer);

}  // namespace

void* allocate_run_of(std::size_t bytes, std::size_t alignment) {
  if (BRIMFUL_UNLIKELY(slots::sample_interval() != 0)) return allocate_run_sampling(bytes, alignment);
  return allocate_run(bytes, alignment);
}

void* or_errno(void* block) {
  if (BRIMFUL_LIKELY(block != nullptr && block != kMisused)) return block;
  errno = block == nullptr ? ENOMEM : EINVAL;
  return nullptr;
}

void* allocate(std::size_t bytes) { return arch::brimful_malloc(bytes); }

void* allocate_zeroed(std::size_t count, std::size_t bytes) {
  std::size_t total = 0;
  if (__builtin_mul_overflow(count, bytes, &total)) return nullptr;
  if (total > kMaxClassBytes) {
    void* block = has_current_heap() ? allocate_in_current_heap(total, kObjectAlignment)
                                     : allocate_run_of(total, kObjectAlignment);
    if (block != nullptr) clear_large(block, total);
    return block;
  }
  void* object = arch::brimful_malloc(total);
  return object != nullptr ? memset(object, 0, total) : nullptr;
}

void* allocate_aligned(std::size_t alignment, std::size_t bytes) {
  const std::size_t size_class = class_of_request(bytes, alignment);
  if (size_class < kClassCount) {
    const std::size_t request = aligned_request(bytes, alignment);
    if (BRIMFUL_LIKELY(!config::checks.canary)) return arch::brimful_malloc(request);
    if (has_current_heap()) return allocate_in_current_heap(bytes, alignment);
    const os::ErrnoGuard errno_guard;
    return allocate_class(size_class, request);
  }
  return has_current_heap() ? allocate_in_current_heap(bytes, alignment) : allocate_run_of(bytes, alignment);
}

namespace {

// To a block of `bytes` bytes of the heap, 0: of none.
void* move(void* pointer, std::size_t old_bytes, std::size_t bytes, std::uint32_t heap) {
  void* moved = heap != 0 ? allocate_beside(heap, bytes) : arch::brimful_malloc(bytes);
  if (BRIMFUL_UNLIKELY(moved == nullptr)) {
    if (bytes > old_bytes) return nullptr;
    shrink_was_refused = true;
    return pointer;
  }
  memcpy(moved, pointer, bytes < old_bytes ? bytes : old_bytes);
  arch::brimful_free(pointer);
  return moved;
}

// As resize_large(). Who looks at samples sees a block of the old size freed, if it was a sample, and one of the new size
// allocated, if that is one.
void* resize_sampled(Run* run, std::uint64_t address, std::size_t bytes) {
  if (BRIMFUL_UNLIKELY(run->sample != 0)) slots::end_sample(run, meta::kSampleResized);
  return resize_large(run, address, bytes);
}

// Another size, another place: what was asked for is where its page ends.
BRIMFUL_COLD void* reallocate_guarded(void* pointer, std::size_t bytes) {
  const os::ErrnoGuard errno_guard;
  const slots::OutsideHeap outside;
  const meta::GuardRecord* guarded = slots::guarded_at(address_of(pointer), "realloc");
  if (guarded == nullptr) return kMisused;
  const std::size_t old_bytes = guarded->bytes;
  return bytes == old_bytes ? pointer : move(pointer, old_bytes, bytes, 0);
}

// Of a heap, or above the classes, or for a thread with a current heap.
void* reallocate_any(void* pointer, std::size_t bytes) {
  const os::ErrnoGuard errno_guard;
  const slots::OutsideHeap outside;  // a block stays in its heap, or in none
  const std::uint64_t address = address_of(pointer);
  Block block;
  std::size_t old_bytes = 0;
  std::uint32_t heap = 0;
  std::uint64_t interval = 0;  // of a sample, which the block is that has another size now
  {
    const slots::SlowScope scope;
    block = find_live(address, "realloc");
    if (BRIMFUL_UNLIKELY(!block.is_in_heap())) return kMisused;
    old_bytes = bytes_in_heap(block);
    heap = heap_number(block);
    if (block.slab != nullptr) {
      if (may_stay(bytes, old_bytes)) return pointer;
    } else if (bytes > kMaxClassBytes && !scope.nested()) {
      void* resized =
          heap != 0 ? resize_large_in_heap(block.run, address, bytes) : resize_sampled(block.run, address, bytes);
      if (resized != nullptr) {
        if (BRIMFUL_LIKELY(slots::sample_interval() == 0 || heap != 0)) return resized;
        interval = slots::draws_sample(round_up(bytes, os::page_bytes()));
        if (interval == 0) return resized;
        pointer = resized;
      }
    }
  }
  if (interval != 0) return sample_large(pointer, bytes, interval, meta::kSampleResized);
  return move(pointer, old_bytes, bytes, heap);
}

}  // namespace

void* reallocate(void* pointer, std::size_t bytes) {
  const Block block = find_in_windows(address_of(pointer));
  if (BRIMFUL_UNLIKELY(!block.is_in_heap()) && slots::is_guarded(address_of(pointer))) {
    return reallocate_guarded(pointer, bytes);
  }
  if (block.slab == nullptr || slots::heap_number(block.slab) != 0 || has_current_heap()) {
    return reallocate_any(pointer, bytes);
  }
  if (BRIMFUL_UNLIKELY(!is_live(block.slab, block.index))) {
    not_live(block, "realloc");
    return kMisused;
  }
  const std::size_t usable = bytes_in_heap(block);
  return may_stay(bytes, usable) ? pointer : move(pointer, usable, bytes, 0);
}

std::size_t usable_bytes(const void* pointer, const char* call) {
  const slots::SlowScope scope;
  return bytes_of(find_live(address_of(pointer), call));
}

std::size_t usable_bytes_of_request(std::size_t alignment, std::size_t bytes) {
  const std::size_t size_class = class_of_request(bytes, alignment);
  if (size_class < kClassCount) return meta::usable_bytes(static_cast<ClassId>(size_class));
  return bytes <= kMostBytes ? round_up(bytes, os::page_bytes()) : 0;
}

std::uint32_t heap_number_of(const void* pointer, const char* call) {
  const slots::SlowScope scope;
  const Block block = find_live(address_of(pointer), call);
  if (BRIMFUL_UNLIKELY(!block.is_there())) return kNotLive;
  return block.guarded != nullptr ? 0 : heap_number(block);
}

bool check_size(const void* pointer, std::size_t bytes, std::size_t alignment) {
  const slots::SlowScope scope;
  const std::uint64_t address = address_of(pointer);
  const Block block = find_live(address, "free_sized");
  if (BRIMFUL_UNLIKELY(!block.is_there())) return false;
  // A guarded object is looked at as one of its class: what was asked for with an alignment has been rounded up.
  const std::size_t asked = bytes_of(block);
  const std::size_t usable = block.guarded != nullptr ? kSizeClasses[class_of(asked)].bytes : asked;
  bool right = shrink_was_refused && bytes <= usable;
  if (block.run == nullptr) {
    const std::size_t least_alignment = alignment > 0 ? alignment : 1;
    const bool is_of_class = block.slab != nullptr ? meta::class_for(bytes, least_alignment) == block.slab->size_class
                                                   : class_of_aligned(bytes, least_alignment) == class_of(usable);
    right = right || may_stay(bytes, usable) || is_of_class;
  } else {
    right = right || round_up(bytes != 0 ? bytes : 1, os::page_bytes()) == usable;
  }
  if (!right) meta::report_wrong_size(address, bytes, usable);
  return true;
}

std::size_t trim() {
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  if (scope.nested()) return 0;
  slots::prepare();
  slots::reclaim_all();
  const auto purged_slabs = static_cast<std::size_t>(slots::purge_all_pages());
  return pages::trim() + purged_slabs;
}

namespace {

void free_claimed(Run* run) {
  const bool is_of_heap = slots::heap_number(run) != 0;
  if (BRIMFUL_UNLIKELY(run->sample != 0)) end_large_sample(run);
  clear_freed(run, run->start, run->start + run->bytes);
  if (!is_of_heap && free_large_lightly(run)) return;
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  if (is_of_heap) return scope.nested() ? slots::leave_heap_later(run) : free_large_of_heap(run);
  scope.nested() ? free_large_nested(run) : free_large(run);
}

// free() of what the fast path could not. In tier:hardened the life of an object has been ended. `is_looked_at`: so were its
// contents.
[[gnu::always_inline]] inline void free_found(std::uint64_t address, const Block& block, bool is_looked_at) {
  if (BRIMFUL_LIKELY(block.slab != nullptr)) {
    if (!is_looked_at && !slots::before_free(block.slab, block.index)) return;
    if (BRIMFUL_UNLIKELY(slots::is_sampled(block.slab))) return free_sampled(block.slab, block.index);
    const bool is_of_heap = slots::heap_number(block.slab) != 0;
    if (!is_of_heap && slots::free_lightly(block.slab, block.index)) return;
  }
  if (block.run != nullptr) {
    if (!claim_large(block.run, address)) return meta::report_bad_pointer("free", address, true, nullptr);
    return free_claimed(block.run);
  }
  if (BRIMFUL_UNLIKELY(block.slab == nullptr && slots::is_guarded(address))) return free_guarded(address);
  const os::ErrnoGuard errno_guard;
  const slots::SlowScope scope;
  if (block.slab != nullptr) return free_object(block.slab, block.index, scope);
  if (BRIMFUL_UNLIKELY(scope.nested())) return free_huge_nested(address);
  if (BRIMFUL_UNLIKELY(!find_block(address, "free").is_there())) return;
  if (!free_huge(address)) meta::report_bad_pointer("free", address, true, nullptr);
}

[[gnu::always_inline]] inline void free_any(void* pointer) {
  if (has_current_heap()) return free_outside_heap(pointer);
  const std::uint64_t address = address_of(pointer);
  free_found(address, find_in_windows(address), false);
}

void free_outside_heap(void* pointer) {
  const slots::OutsideHeap outside;
  free_any(pointer);
}

// In tier:hardened every free() comes to free_hardened() (slots/lives.h). Of any number that race for an object, one ends its
// life; until it goes on, the object is nobody's, so its slab stays what it is. What is not an object of the running context
// goes on here, as far as it has come.
enum class Ended { kNot, kLife, kLifeAndLookedAt };
[[gnu::noinline]] void free_other(void* pointer, Ended ended, const void* caller) {
  {
    const std::uint64_t address = address_of(pointer);
    const slots::OutsideHeap outside;
    const Block block = find_in_windows(address);
    if (ended == Ended::kNot && block.slab != nullptr) {
      not_live(block, "free");
    } else {
      free_found(address, block, ended == Ended::kLifeAndLookedAt);
    }
  }
  slots::start_wanted_thread(caller, slots::Call::kFree);
}

[[gnu::noinline]] void free_hardened(void* pointer, const void* caller) {
  const std::uint64_t address = address_of(pointer);
  if (BRIMFUL_UNLIKELY(!meta::live_map.clear(address))) return free_other(pointer, Ended::kNot, caller);
  Header* header = meta::header_in(meta::hidden_table, address);
  auto* slab = static_cast<Slab*>(header);
  const std::uint64_t index = slab->index_of(address);
  if (BRIMFUL_UNLIKELY(header->kind != Kind::kSlab || index >= slab->count())) {
    return free_other(pointer, Ended::kLife, caller);
  }
  if (!slots::before_free(slab, index)) return;
  const arch::Outcome outcome = arch::brimful_seq_free(slab, index, 0);
  if (BRIMFUL_LIKELY(outcome == arch::Outcome::kDone)) return;
  // kAlreadySet, of an object that is offered: it will be seen once more.
  if (outcome != arch::Outcome::kGroupFree) return free_other(pointer, Ended::kLifeAndLookedAt, caller);
  if (slots::counts_down(slab)) arch::brimful_free_event(slab);
}

// The size names the object's class, as the fast path of the default tier would find.
[[gnu::always_inline]] inline bool names_class(const void* pointer, std::size_t bytes) {
  return bytes <= kMaxClassBytes && meta::header_in(meta::hidden_table, address_of(pointer))->size_class ==
                                        meta::class_for(bytes, kObjectAlignment);
}

// free() in the default tier.
[[gnu::noinline]] void free_default(void* pointer, const void* caller) {
  free_any(pointer);
  slots::start_wanted_thread(caller, slots::Call::kFree);
}

}  // namespace

}  // namespace brimful::alloc

// The misses of arch/sequences.h.
extern "C" {

void* brimful::arch::brimful_malloc_slow(std::size_t bytes) {
  if (alloc::has_current_heap()) return alloc::allocate_in_current_heap(bytes, kObjectAlignment);
  void* block = nullptr;
  if (bytes > kMaxClassBytes) {
    block = alloc::allocate_run_of(bytes, kObjectAlignment);
  } else {
    const os::ErrnoGuard errno_guard;
    block = alloc::allocate_class(alloc::class_of_request(bytes, kObjectAlignment), bytes);
  }
  if (BRIMFUL_UNLIKELY(block == nullptr)) errno = ENOMEM;
  slots::start_wanted_thread(__builtin_return_address(0), slots::Call::kMalloc);
  return block;
}

void brimful::arch::brimful_free_slow(void* pointer) {
  if (pointer == nullptr) return;
  if (config::is_hardened()) return alloc::free_hardened(pointer, __builtin_return_address(0));
  alloc::free_default(pointer, __builtin_return_address(0));
}

void brimful::arch::brimful_free_claimed(Run* run, void* pointer) {
  const std::uint64_t address = alloc::address_of(pointer);
  if (BRIMFUL_UNLIKELY(!alloc::holds_claim(run, address))) {
    meta::report_bad_pointer("free", address, true, nullptr);
  } else {
    const slots::OutsideHeap outside;
    alloc::free_claimed(run);
  }
  slots::start_wanted_thread(__builtin_return_address(0), slots::Call::kFree);
}

void brimful::arch::brimful_free_sized_slow(void* pointer, std::size_t bytes) {
  if (pointer == nullptr) return;
  if (config::is_hardened() && alloc::names_class(pointer, bytes)) {
    return alloc::free_hardened(pointer, __builtin_return_address(0));
  }
  if (alloc::check_size(pointer, bytes, kObjectAlignment)) brimful_free(pointer);
}

std::size_t brimful::arch::brimful_usable_size_slow(const void* pointer) {
  return pointer != nullptr ? alloc::usable_bytes(pointer, "malloc_usable_size") : 0;
}

void* brimful::arch::brimful_realloc_slow(void* pointer, std::size_t bytes) {
  if (pointer == nullptr) return brimful_malloc(bytes);
  if (bytes == 0) {
    brimful_free(pointer);
    return nullptr;
  }
  return alloc::or_errno(alloc::reallocate(pointer, bytes));
}

void brimful::arch::brimful_free_twice(void* pointer) {
  const alloc::Block block = alloc::find_in_windows(alloc::address_of(pointer));
  // An index behind the slab's last object looks like a double free, too: see free in arch/.
  if (block.slab == nullptr) return brimful_free_slow(pointer);
  meta::report_double_free("free", *block.slab, block.index);
}

void brimful::arch::brimful_free_event(Header* slab) {
  {
    const os::ErrnoGuard errno_guard;
    const slots::SlowScope scope;
    if (!scope.nested() && slab->kind == Kind::kSlab) slots::on_countdown(static_cast<Slab*>(slab));
  }
  slots::start_wanted_thread(__builtin_return_address(0), slots::Call::kFree);
}

}  // extern "C"
