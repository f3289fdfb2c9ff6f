// SPDX-License-Identifier: MIT
//
// Free pages inside live slabs go back to the system, too. No list runs through free objects, so a page that only holds
// free ones holds nothing: it can be dropped, and comes back as zeros when malloc offers its objects again.
//
// Done for the running context's own slabs, a bounded number at a time, when they have been left alone for a while. Only
// objects that are free by the slab's word count: those in the offered word may be taken at any moment. Nothing is
// offered meanwhile, because the context's lock is held and this thread was seen to run in the context after taking it:
// a malloc that had begun to offer before was aborted, and one that begins later finds the lock taken.
#include <bit>

#include "os/calls.h"
#include "slots/front_end.h"
#include "slots/slab.h"

namespace brimful::slots {
namespace {

constexpr int kSlabsAtATime = 256;
// A partial slab is looked at when it has waited for two looks, then at every eighth.
constexpr unsigned kWaitLooks = 2;
constexpr unsigned kLookPeriod = 8;
// Of the slab in use only classes whose objects hold pages are worth a look.
constexpr std::uint32_t kPageClassBytes = 2048;

// Drops the whole pages inside [start, end).
void purge_pages(std::uint64_t start, std::uint64_t end) {
  const std::size_t page = os::page_bytes();
  const std::uint64_t first = round_up(start, page);
  const std::uint64_t last = round_down(end, page);
  if (first < last) os::calls.purge(first, last - first);
}

}  // namespace

void purge_slab(Slab* slab) {
  std::uint64_t run = 0;  // start of the current run of free objects
  for (unsigned g = 0; g < slab->groups; ++g) {
    // pairs with: the owner's free (the objects' last use). Offered objects are left alone.
    const std::uint64_t free =
        slab->word(g).load(std::memory_order_acquire) & ~slab->offered(g).load(std::memory_order_acquire);
    if (free == kAllFree && run != 0) continue;
    for (unsigned bit = 0; bit < kGroupObjects; ++bit) {
      const std::uint64_t object = slab->object(std::uint64_t{g} * kGroupObjects + bit);
      const bool is_free = (free >> bit & 1) != 0;
      if (is_free && run == 0) run = object;
      if (!is_free && run != 0) {
        purge_pages(run, object);
        run = 0;
      }
    }
  }
  if (run != 0) purge_pages(run, slab->object(slab->count));
}

void purge_free_pages(Context* context) {
  std::uint64_t nothing = 0;
  if (arch::brimful_seq_or(context, &nothing, 0) != arch::Outcome::kDone) return;
  int budget = kSlabsAtATime;
  for (ClassQueue& queue : context->queues) {
    Slab* current = queue.current;
    if (current != nullptr && current->shape().bytes >= kPageClassBytes && has_free(current)) purge_slab(current);
    for (Slab* slab = queue.partial.front(); slab != nullptr && budget > 0; slab = slab->next) {
      if (slab->idle_ticks++ % kLookPeriod != kWaitLooks) continue;
      purge_slab(slab);
      --budget;
    }
  }
}

}  // namespace brimful::slots
