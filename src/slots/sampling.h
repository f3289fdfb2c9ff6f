// SPDX-License-Identifier: MIT
//
// Sampling: which allocations are samples. One comes every `interval` bytes on average, as points strewn evenly and
// independently over all bytes that are handed out; a block on which a point falls is a sample. So a block of u usable
// bytes is one with p = 1 - exp(-u / interval), whatever was before it.
//
// A hit of malloc knows nothing of it. Per context and class it is drawn how many objects come before the next sample:
// the whole part of an exponential wait of mean interval / u, which is geometric with just that p. What offers objects
// (malloc's advance, install) counts them off, and an offer that would pass the point is cut there:
//
//   until = 5, 64 free objects in the group
//   ├ install offers 5, until = -1 ──▶ 5 hits ──▶ the word is empty, the slow way ──▶ the sample ──▶ another point is drawn
//
// Why this is exact though objects that were offered come back unused (a slot is emptied, a slab changes hands): the wait
// has no memory. That objects were counted off without a point among them says nothing about what comes behind. Only an
// offer that was cut says that the next one IS a sample; so the point is dropped, and drawn anew, when such an offer is
// taken back (drop_offer). Whether it is never depends on where the point lay.
//
// Guarded objects (slots/guards.h) are chosen by the same points: there is one where a sample is, and with a chance for each object where
// a guarded one is. Which of the two it is, is drawn when it is reached. What is both is a sample.
//
// Requests that go through C++ alone (large blocks, objects of the shared slab) are decided one by one. Large blocks from
// a stack (arch/) count down the bytes of a wait of their own, pages::RunStacks::Clock::until_sample.
//
// Off, `until` begins at two thousand million objects, and nothing is drawn. Who changes the interval writes
// meta::sample_control; each context compares it with its own in its slow paths, which the heartbeat makes sure of.
//
// Rejected: bytes until the next sample, counted over all classes (tcmalloc): then a hit has to subtract.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "meta/sample_record.h"
#include "slots/context.h"

namespace brimful::meta {
extern SampleControl sample_control;
}

namespace brimful::slots {

inline constexpr std::uint64_t kDefaultSampleInterval = std::uint64_t{512} << 10;

inline std::uint64_t sample_interval() {
  return meta::sample_control.interval_bytes.load(std::memory_order_relaxed);  // relaxed: a number by itself
}

// Of the functions with a context: the caller holds its lock and ran in it when it took it. So no sequence counts down
// meanwhile.

// The request of this class at hand, of which nothing is offered, is to be a sample. If so, the next point is drawn.
bool takes_sample(Context* context, ClassId size_class);

// How many of `count` objects may be offered before the next sample. 0: the next object is one.
unsigned room_before_sample(Context* context, ClassId size_class, unsigned count);

// `count` objects of the group are offered, which ends at the next sample or before it (is_cut).
void note_offer(Context* context, ClassId size_class, const std::uint64_t* group, unsigned count, bool is_cut);

// The slab goes back, and with it what was offered of it and not taken: that is not counted. Lossy by design.
void forget_offers(Slab* slab);

// The request at hand is the sample that room_before_sample() came to.
void draw_next_sample(Context* context, ClassId size_class);

// The request of which takes_sample() or draw_next_sample() was told: the interval of the sample that it is; 0: it is no
// sample, but to be guarded (slots/guards.h).
std::uint64_t choose(const Context* context, ClassId size_class);

// The slot is going to be emptied, whatever it leads to. For a context that nobody runs in, or the caller.
void drop_offer(Context* context, ClassId size_class);

// One request of so many usable bytes, decided by itself: the interval if it is a sample, else 0. Any moment.
std::uint64_t draws_sample(std::uint64_t usable_bytes);

// Of large blocks, for the context that this thread runs in. Lossy by design.
bool takes_run_sample();                       // until_sample has run out
void set_run_wait(std::int64_t until_sample);  // pages::kNoSample, or:
std::int64_t draw_run_wait();                  // bytes until the next
void notice_run_interval(Context* context);    // begins or ends counting when the interval has changed

// Changes the interval, 0: off. As a tool would from outside.
void set_sample_interval(std::uint64_t bytes);

// For tests: what is drawn from here on follows from `seed`.
void seed_samples(std::uint64_t seed);

}  // namespace brimful::slots
