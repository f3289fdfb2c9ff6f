// SPDX-License-Identifier: MIT
//
// slots/events.h, slots/requests.h.
#include "slots/events.h"

#include "meta/block.h"
#include "slots/context.h"
#include "slots/requests.h"
#include "slots/thread.h"

namespace brimful::slots {
namespace {

// The entry of arch::kNoContext is the first: the empty context. It serves for stand-ins, too, which count nothing.
Context* entry(std::uint32_t id) {
  if (!is_context_id(id)) id = arch::kNoContext;
  const auto place = static_cast<std::size_t>(1 + static_cast<std::int64_t>(static_cast<std::int32_t>(id)));
  // pairs with: make_context() (the context)
  return arch::brimful_block.contexts[place].load(std::memory_order_acquire);
}

}  // namespace

void count(Event event) { entry(current_id())->events.count(event); }

EventCounts count_events() {
  EventCounts sums = {};
  entry(arch::kNoContext)->events.add_to(sums);
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    context->events.add_to(sums);
  }
  return sums;
}

void count_request(std::size_t kind, std::size_t requested, std::size_t granted) {
  entry(current_id())->requests.count(kind, requested, granted);
}

RequestCounts count_requests() {
  RequestCounts sums = {};
  entry(arch::kNoContext)->requests.add_to(sums);
  for (Context* context = all_contexts(); context != nullptr; context = context->next_all) {
    context->requests.add_to(sums);
  }
  return sums;
}

}  // namespace brimful::slots
