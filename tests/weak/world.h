// SPDX-License-Identifier: MIT
//
// What scenarios begin with: threads with contexts, and a slab of thread 0 whose objects all live.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "classes/size_classes.h"
#include "explorer.h"
#include "slots/context.h"

namespace brimful::weak {

inline constexpr std::size_t kBytes = 1024;  // a slab of one group
inline constexpr std::size_t kTwoGroups = 512;
inline constexpr ClassId kClass = class_of(kBytes);
inline constexpr std::uint64_t kQuarter = 0xFFFF;  // of a group

extern Context* contexts[kMostThreads];
extern Slab* slab;
extern std::uint64_t* objects[128];  // of the slab

// The program's last, or next, use of an object.
inline void use(void* object) { ++*static_cast<std::uint64_t*>(object); }

// For Scenario::prepare: time stands still, and memory comes from an array, so that a run can be put back.
void set_calls(unsigned thread);
void pass_time(std::uint64_t ms);
// And the thread gets a context.
void attach(unsigned thread);
// The slab is the current one.
void fill(unsigned thread);
// The slab is detached, and thread 0 has another that is current and has free objects.
void detach(unsigned thread);
void detach_two_groups(unsigned thread);

// A thread that the library starts is a fiber's to run. Whether it has come to its end, and does not sleep.
void run_started_thread();
extern bool has_ended_thread;

// For Scenario::check: a slab with free objects is one that somebody finds, and its owner knows that others have freed.
void check_found();
// And object 0 is free.
void check_told();

// The scenarios: of slabs (slabs.cpp) and of everything else.
std::span<const Scenario> slab_scenarios();
std::span<const Scenario> other_scenarios();

}  // namespace brimful::weak
