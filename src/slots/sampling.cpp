// SPDX-License-Identifier: MIT
//
// slots/sampling.h.
#include "slots/sampling.h"

#include <bit>

#include "base/bits.h"
#include "base/exponential.h"
#include "os/clock.h"
#include "pages/run_stacks.h"
#include "slots/guards.h"
#include "slots/thread.h"

namespace brimful::meta {

constinit SampleControl sample_control = {};

}  // namespace brimful::meta

namespace brimful::slots {
namespace {

constexpr std::int32_t kFar = INT32_MAX;

// State of the random numbers of all contexts; 0: not begun. Drawn from once for each sample.
constinit std::atomic<std::uint64_t> random_state{0};

std::uint64_t random() {
  std::uint64_t state = random_state.load(std::memory_order_relaxed);  // relaxed: any start will do
  if (state == 0) {
    // By time and by where this process lies: processes of a kind must not sample the same.
    const std::uint64_t seed = os::monotonic_ns() ^ std::rotl(reinterpret_cast<std::uint64_t>(&state), 32);
    random_state.compare_exchange_strong(state, seed | 1, std::memory_order_relaxed);  // relaxed: as above
  }
  // relaxed: only that no two get the same number matters
  return random_of(random_state.fetch_add(kRandomStep, std::memory_order_relaxed));
}

// Samples per object of the class: the rate of an exponential wait.
double sample_rate(ClassId size_class, std::uint64_t interval) {
  return interval != 0 ? static_cast<double>(kSizeClasses[size_class].bytes) / static_cast<double>(interval) : 0;
}

// How many objects of the class come before the next point.
void draw(Sampling& sampling, ClassId size_class, std::uint64_t interval) {
  SamplePoint& point = sampling.points[size_class];
  const double rate = sample_rate(size_class, interval) + guard_rate_of(size_class);
  const double objects = rate != 0 ? exponential(random()) / rate : kFar;
  point.is_sample = objects < kFar;
  sampling.set_until(point, point.is_sample ? static_cast<std::int32_t>(objects) : kFar);
  point.trimmed = nullptr;
}

// The points that go with the interval; 0: off.
std::uint64_t renew(Context* context) {
  Sampling& sampling = context->sampling;
  const std::uint64_t interval = sample_interval();
  if (BRIMFUL_UNLIKELY(sampling.interval_bytes != interval)) {
    for (SamplePoint& point : sampling.points) sampling.forget(point);
    sampling.interval_bytes = interval;
    context->run_stacks.clock.set_until_sample(interval != 0 ? draw_run_wait() : pages::kNoSample);
    // relaxed: a count for readers
    meta::sample_control.generation.fetch_add(1, std::memory_order_relaxed);
  }
  return interval;
}

bool is_used_up(const std::uint64_t* word) {
  // relaxed: written in this context
  return std::atomic_ref(*const_cast<std::uint64_t*>(word)).load(std::memory_order_relaxed) == 0;
}

// Whether the slot still leads to the offer that was cut, and it is used up; or nothing was cut. malloc's advance empties
// the slot on its way to us, and begins only when the offer is used up; all others drop it before they do so.
bool is_at_point(const SamplePoint& point, const Slot& slot) {
  if (point.trimmed == nullptr || slot.word == &arch::brimful_zero_word) return true;
  return slot.word == point.trimmed && is_used_up(slot.word);
}

}  // namespace

bool takes_sample(Context* context, ClassId size_class) {
  const std::uint64_t interval = renew(context);
  Sampling& sampling = context->sampling;
  SamplePoint& point = sampling.points[size_class];
  if (BRIMFUL_LIKELY(point.until >= 0)) return false;
  const bool is_due = point.is_sample && is_at_point(point, context->slots[size_class]);
  draw(sampling, size_class, interval);
  return is_due;
}

void drop_offer(Context* context, ClassId size_class) {
  Sampling& sampling = context->sampling;
  SamplePoint& point = sampling.points[size_class];
  // Also one that is used up: of all the offers that this may happen to at just this object, only those that had no point
  // in them would draw anew, and those that end here would be samples in addition.
  if (BRIMFUL_UNLIKELY(point.trimmed != nullptr)) sampling.forget(point);
}

unsigned room_before_sample(Context* context, ClassId size_class, unsigned count) {
  Sampling& sampling = context->sampling;
  SamplePoint& point = sampling.points[size_class];
  const auto wanted = static_cast<std::int32_t>(count);
  if (BRIMFUL_LIKELY(point.until >= wanted)) return count;
  if (!point.is_sample) draw(sampling, size_class, sampling.interval_bytes);
  return static_cast<unsigned>(point.until < wanted ? point.until : wanted);
}

void note_offer(Context* context, ClassId size_class, const std::uint64_t* group, unsigned count, bool is_cut) {
  Sampling& sampling = context->sampling;
  SamplePoint& point = sampling.points[size_class];
  point.until -= static_cast<std::int32_t>(count);
  if (BRIMFUL_LIKELY(!is_cut)) return;
  sampling.set_until(point, -1);
  point.trimmed = group;
}

void forget_offers(Slab* slab) {
  std::int64_t unused = 0;
  for (unsigned g = 0; g < slab->groups; ++g) {
    const std::uint64_t left = slab->offered(g).load(std::memory_order_relaxed);  // relaxed: a count for reports
    if (BRIMFUL_UNLIKELY(left != 0)) unused += count_ones(left);
  }
  Context* context = unused == 0 ? nullptr : context_of(current_id());
  if (context != nullptr) context->sampling.raise(-unused);
}

void draw_next_sample(Context* context, ClassId size_class) {
  draw(context->sampling, size_class, context->sampling.interval_bytes);
}

std::uint64_t choose(const Context* context, ClassId size_class) {
  const std::uint64_t interval = context->sampling.interval_bytes;
  const double guarded = guard_rate_of(size_class);
  if (interval == 0 || guarded == 0) return interval;
  constexpr double kStep = 1.0 / (std::uint64_t{1} << 53);
  const double sampled = sample_rate(size_class, interval);
  const double drawn = static_cast<double>(random() >> 11) * kStep * chance_below(sampled + guarded);
  return drawn < chance_below(sampled) ? interval : 0;
}

std::uint64_t draws_sample(std::uint64_t usable_bytes) {
  const std::uint64_t interval = sample_interval();
  if (interval == 0) return 0;
  const double wait = exponential(random()) * static_cast<double>(interval);
  return wait < static_cast<double>(usable_bytes) ? interval : 0;
}

bool takes_run_sample() {
  const Context* context = context_of(current_id());
  return context != nullptr && context->run_stacks.clock.until_sample < 0;
}

void set_run_wait(std::int64_t until_sample) {
  Context* context = context_of(current_id());
  if (context != nullptr) context->run_stacks.clock.set_until_sample(until_sample);
}

std::int64_t draw_run_wait() {
  constexpr double kMost = 1e18;
  const double bytes = exponential(random()) * static_cast<double>(sample_interval());
  return bytes < kMost ? static_cast<std::int64_t>(bytes) : static_cast<std::int64_t>(kMost);
}

void notice_run_interval(Context* context) {
  constexpr std::int64_t kCounts = pages::kNoSample / 2;
  pages::RunStacks::Clock& clock = context->run_stacks.clock;
  const bool is_on = sample_interval() != 0;
  if (is_on == (clock.until_sample < kCounts)) return;
  clock.set_until_sample(is_on ? draw_run_wait() : pages::kNoSample);
}

void set_sample_interval(std::uint64_t bytes) {
  // relaxed: a number by itself; whoever reads the old one samples by it for a moment longer
  meta::sample_control.interval_bytes.store(bytes, std::memory_order_relaxed);
}

void seed_samples(std::uint64_t seed) {
  random_state.store(seed | 1, std::memory_order_relaxed);  // relaxed: before there are threads
}

}  // namespace brimful::slots
