// SPDX-License-Identifier: MIT
//
// Samples: the objects and large blocks that were chosen (slots/sampling.h), and what is known of each.
//
//   meta::sample_control ── records ──▶ slots (meta/sample_record.h)       reserved once, when the first sample comes
//                                       │ behind them: for each sampled slab, object number ──▶ slot
//   a class's slabs, owner kOwnerSampled ┘  last_owner: which of these tables
//
// A sampled object lives in a slab of sampled ones, for malloc finds no room there and free() of another owner's object is
// never a hit. So nothing else has to know which objects are samples. Such a slab belongs to no context, for life:
//
//   words[group]    bit: free, may be taken           written under sample_lock
//   remote(group)   bit: freed, the record not yet    set by its free(), by which double frees are found
//
// A free() takes no lock, so it may come from a signal handler that interrupted anything, or while another thread forks:
// it sets the bit, writes into the record who frees, and pushes the record on a list. Who takes the lock for the next
// sample collects the list: objects become free in their words, and records wait, freed, for readers to see them. The one
// that was freed first is used again when there are kKeptRecords.
//
// A large block that is a sample is one like any; its header names the slot, and no stack takes it, so its free() comes
// here, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "meta/header.h"
#include "meta/misuse.h"
#include "meta/sample_record.h"
#include "sync/mutex.h"

namespace brimful::slots {

extern sync::SampleMutex sample_lock;

// A sampled object of the class, for a request of so many bytes; nullptr: there is no memory or no slot, so the request
// goes without. Inside a SlowScope that is not nested.
void* allocate_sampled(ClassId size_class, std::size_t requested, std::uint64_t interval);

// The live large block is a sample from here on, unless there is no slot. Same conditions.
void begin_sample(Run* run, std::size_t requested, std::uint64_t interval, std::uint32_t flags);

inline bool is_sampled(const Slab* slab) {
  return slab->owner.load(std::memory_order_relaxed) == kOwnerSampled;  // relaxed: so for the slab's life
}

// The object's free(). Takes no lock. Any moment.
void free_sampled(Slab* slab, std::uint64_t index, bool is_nested);

// The life of a large block ends, which the caller has claimed: if it is a sample, that is written down. Likewise.
void end_sample(Run* run, std::uint32_t flags);

// Gives back sampled slabs without a live object.
void release_sampled();

// Who allocated, and perhaps freed, what the address lies in, if that is a sample. `owner`: its slab, its block, or nullptr. For
// reports: while others take and free samples, a stack may be of another one. No lock.
meta::History history_of(std::uint64_t address, const Header* owner);

// The record of a slot, or nullptr. For tests and reports.
meta::SampleRecord* sample_record(std::uint32_t slot);

// Objects of their sizes that the live samples stand for, and how much of them was asked for: an estimate without bias.
struct SampledUse {
  std::uint64_t samples;
  std::uint64_t requested_bytes;
  std::uint64_t usable_bytes;
};
SampledUse sampled_use();

}  // namespace brimful::slots
