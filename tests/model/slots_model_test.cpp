// SPDX-License-Identifier: MIT
//
// Runs the explorer over scenarios of the front end's slow paths. Each must be free of faults in every order,
// and each known-bad mutation of the protocol must be found in the scenario that is meant for it: an explorer
// that finds nothing wrong with a protocol that is wrong proves nothing.
//
//   slots_model_test             all of it
//   slots_model_test NAME        the scenarios whose name contains NAME, without mutations
//   slots_model_test --trace M   the order of steps that shows mutation number M
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "slots_model.h"

namespace brimful::model {
namespace {

using What = Action::What;

constexpr uint64_t kMaxStates = 2'000'000;
constexpr uint64_t kSampledStates = 200'000;
constexpr uint64_t kOnly0 = 1, kOnly1 = 2, kBoth = 3;

Action allocate(unsigned variable) { return {What::kAllocate, variable}; }
Action free_of(unsigned variable) { return {What::kFree, variable}; }
Action flush() { return {What::kFlush}; }
Action close(unsigned context) { return {What::kClose, context}; }
Action release_empty() { return {What::kReleaseEmpty}; }
Action tell(unsigned variable, uint64_t object) { return {What::kTell, variable, object}; }
Action free_again(unsigned variable) { return {What::kFreeAgain, variable}; }
// Frees the object, which is in the variable and whose free by another thread has begun.
Action free_too(unsigned variable, uint64_t object) { return {What::kFreeToo, variable, object}; }

SlabSetup current_full(uint64_t context) { return {context, Listed::kCurrent, 0, 0, context}; }
SlabSetup detached(uint64_t last_owner) { return {kDetached, Listed::kNowhere, 0, 0, last_owner}; }

// Objects 0 and 1 are slab 0's, 2 and 3 slab 1's.
const std::vector<Scenario>& scenarios() {
  static const std::vector<Scenario> all = {
      {.name = "others' frees are told while the owner collects",
       .slabs = {current_full(0)},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {allocate(2)}}, {1, kOnly1, {free_of(0), free_of(1), flush()}}}},
      {.name = "two others free into the slab that its owner detaches",
       .slabs = {current_full(0)},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {allocate(2)}}, {1, kOnly1, {free_of(0), flush()}}}},
      {.name = "the owner frees its own while another tells",
       .slabs = {current_full(0)},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {free_of(0), allocate(2)}}, {1, kOnly1, {free_of(1), flush()}}}},
      {.name = "the last owner adopts the slab that another publishes",
       .slabs = {detached(0)},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {free_of(0), allocate(2)}}, {1, kOnly1, {free_of(1), flush()}}}},
      {.name = "two threads of a context free into its detached slab",
       .slabs = {detached(0)},
       .variables = {0, 1},
       .programs = {{0, kOnly0, {free_of(0)}}, {0, kOnly0, {free_of(1)}}, {1, kOnly1, {allocate(2), free_of(2)}}},
       .preemptions = 2},
      {.name = "an adopter has left the context meanwhile",
       .slabs = {detached(0)},
       .variables = {0, 1},
       .programs = {{0, kBoth, {free_of(0)}}, {0, kOnly0, {free_of(1)}}},
       .preemptions = 2},
      {.name = "the owner empties a queued slab while another tells the rest",
       .slabs = {{0, Listed::kQueue, 0, 0, 0}},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {free_of(1), flush(), allocate(2)}}}},
      {.name = "a queued slab is emptied by another while its owner refills",
       .slabs = {{0, Listed::kQueue, 2, 0, 0}},
       .variables = {0, kNobody},
       .programs = {{0, kOnly0, {allocate(1)}}, {1, kOnly1, {free_of(0), flush()}}}},
      {.name = "a central slab is emptied while a context takes it",
       .slabs = {{kCentral, Listed::kCentral, 2, 0, 1}},
       .variables = {0, kNobody},
       .programs = {{0, kOnly0, {allocate(1)}}, {1, kOnly1, {free_of(0), flush()}}}},
      {.name = "two others empty a central slab",
       .slabs = {{kCentral, Listed::kCentral, 0, 0, 1}},
       .variables = {0, 1},
       .programs = {{0, kOnly0, {free_of(0), flush()}}, {1, kOnly1, {free_of(1), flush()}}}},
      {.name = "a context's lock is busy, so objects come from the shared slab",
       .slabs = {current_full(0)},
       .variables = {0, 1, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(2), free_of(2)}}, {0, kOnly0, {allocate(3), free_of(3)}}},
       .preemptions = 2},
      {.name = "the shared slab runs full while its object is freed",
       .slabs = {{0, Listed::kQueue, 0, 0, 0}},
       .variables = {0, 1, kNobody, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(2), allocate(3)}},
                    {0, kOnly0, {allocate(4)}},
                    {1, kOnly1, {free_of(2), flush()}}},
       .preemptions = 1},
      {.name = "frees of two slabs share a magazine and its context",
       .slabs = {detached(kNobody), detached(kNobody)},
       .variables = {0, 2},
       .programs = {{0, kOnly0, {free_of(0), flush()}}, {0, kOnly0, {free_of(1), flush()}}},
       .preemptions = 3},
      {.name = "two threads of a context fill its magazine with objects of two slabs",
       .slabs = {detached(kNobody), detached(kNobody)},
       .variables = {0, 1, 2},
       .programs = {{0, kOnly0, {free_of(0), free_of(1)}}, {0, kOnly0, {free_of(2)}}},
       .preemptions = 2},
      {.name = "a context takes over a slab of which it has freed objects",
       .slabs = {{kCentral, Listed::kCentral, 1, 0, 0}},
       .variables = {1, kNobody, kNobody, kNobody},
       .programs = {{1, kOnly1, {free_of(0), tell(1, 1), allocate(2), free_again(1)}}, {0, kOnly0, {allocate(3)}}}},
      {.name = "a refill is moved to the other context",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0, 1}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kBoth, {allocate(0)}}, {0, kOnly0, {allocate(1)}}},
       .preemptions = 2},
      {.name = "a thread is moved while it frees into its own slab",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {1, kNobody},
       .programs = {{0, kBoth, {free_of(0)}}, {0, kOnly0, {allocate(1)}}},
       .preemptions = 3},
      {.name = "a context is closed while its thread allocates",
       .slabs = {{0, Listed::kCurrent, 2, 0, 0}},
       .variables = {0, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(1)}}, {1, kOnly1, {close(0), allocate(2)}}}},
      {.name = "a context is closed while its thread allocates from a filled slot",
       .slabs = {{0, Listed::kCurrent, 0, 3, 0}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0)}}, {1, kOnly1, {close(0), allocate(1)}}}},
      {.name = "a context is closed while its thread frees its last",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {close(0)}}}},
      {.name = "a context is closed while its thread frees",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {close(0), free_of(1), flush()}}}},
      {.name = "a context is closed while its thread frees another's object",
       .slabs = {current_full(1)},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {close(0)}}}},
      {.name = "an empty current slab is released while it is wanted",
       .slabs = {{0, Listed::kCurrent, 3, 0, 0}},
       .variables = {kNobody},
       .programs = {{0, kBoth, {release_empty()}}, {0, kOnly0, {allocate(0)}}},
       .preemptions = 3},
      {.name = "an empty current slab of a coarse class is released while it is wanted",
       .slabs = {{0, Listed::kCurrent, 2, 1, 0}},
       .variables = {kNobody},
       .programs = {{0, kBoth, {release_empty()}}, {0, kOnly0, {allocate(0)}}},
       .preemptions = 3,
       .coarse = true},
      {.name = "a context is closed while its thread takes freed objects",
       .slabs = {{0, Listed::kCurrent, 2, 1, 0}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0)}}, {1, kOnly1, {close(0), allocate(1)}}},
       .coarse = true},
      {.name = "two threads of a context take freed objects while another frees",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {1, kNobody, kNobody},
       .programs = {{0, kBoth, {allocate(1)}}, {0, kOnly0, {free_of(0), allocate(2)}}},
       .preemptions = 2,
       .coarse = true},
      {.name = "a freed object is taken while others' frees are collected",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0, 1}},
       .variables = {1, kNobody, kNobody},
       .programs = {{0, kBoth, {allocate(1)}}, {0, kOnly0, {free_of(0), allocate(2)}}},
       .preemptions = 2,
       .coarse = true},
      {.name = "a detached slab is refilled by another context",
       .slabs = {current_full(0)},
       .variables = {0, kNobody, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(1)}},
                    {0, kOnly0, {allocate(2)}},
                    {1, kOnly1, {free_of(0), flush(), allocate(3)}}},
       .preemptions = 1,
       .too_large = true},
      {.name = "a thread collects and is moved while another frees",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0, 1}},
       .variables = {1, kNobody},
       .programs = {{0, kBoth, {allocate(1)}}, {0, kOnly0, {free_of(0)}}},
       .preemptions = 2},
      {.name = "the owner frees again what another has freed",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0, 2}},
       .variables = {0, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(2), free_again(1)}}, {1, kOnly1, {free_of(0), flush(), tell(1, 0)}}}},
      {.name = "the owner frees again what another has freed while it took the slab over",
       .slabs = {{kCentral, Listed::kCentral, 2, 0, 1}},
       .variables = {0, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(2), free_again(1)}}, {1, kOnly1, {free_of(0), flush(), tell(1, 0)}}}},
      {.name = "the owner and another free one object at once",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0, 1},
       .programs = {{0, kOnly0, {free_of(0), free_of(1)}}, {1, kOnly1, {free_too(0, 0), flush()}}}},
      {.name = "another and then the owner's two threads free one object at once",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0, 1},
       .programs = {{0, kOnly0, {free_of(1)}}, {0, kOnly0, {free_too(0, 0)}}, {1, kOnly1, {free_of(0), flush()}}},
       .preemptions = 2},
      {.name = "two others free one object at once",
       .slabs = {{kCentral, Listed::kCentral, 0, 0, 1}},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0), flush()}}, {1, kOnly1, {free_too(0, 0), flush()}}}},
      {.name = "a queued slab is emptied by frees of one object at once",
       .slabs = {{0, Listed::kQueue, 2, 0, 0}},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {free_too(0, 0), flush()}}}},
      {.name = "one object is freed at once while its context is closed",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0)}}, {1, kOnly1, {free_too(0, 0), flush(), close(0)}}}},
      {.name = "hardened: an object goes round while it is offered again",
       .slabs = {current_full(0)},
       .variables = {0, 1, kNobody},
       .programs = {{0, kBoth, {free_of(0), allocate(2)}}, {0, kOnly0, {allocate(0), free_of(2)}}},
       .preemptions = 2,
       .hardened = true},
      {.name = "hardened: the owner and another free one object at once, and it is handed out again",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0, 1, kNobody},
       .programs = {{0, kOnly0, {free_of(0), allocate(2), free_of(2)}}, {1, kOnly1, {free_too(0, 0), flush()}}},
       .hardened = true},
      {.name = "hardened: another frees while malloc is offered its neighbour",
       .slabs = {{0, Listed::kCurrent, 1, 0, 0}},
       .variables = {1, kNobody},
       .programs = {{0, kOnly0, {allocate(1)}}, {1, kOnly1, {free_of(0), flush()}}},
       .hardened = true},
      {.name = "hardened: two others free one object at once",
       .slabs = {{kCentral, Listed::kCentral, 0, 0, 1}},
       .variables = {0},
       .programs = {{0, kOnly0, {free_of(0), flush()}}, {1, kOnly1, {free_too(0, 0), flush()}}},
       .hardened = true},
      {.name = "hardened: the owner's two threads and another free one object at once",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0}},
       .variables = {0, 1},
       .programs = {{0, kOnly0, {free_of(1)}}, {0, kOnly0, {free_too(0, 0)}}, {1, kOnly1, {free_of(0), flush()}}},
       .preemptions = 2,
       .hardened = true},
      {.name = "hardened: what malloc takes from its offer is freed again",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {kNobody, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0), free_of(0), allocate(1)}}, {1, kOnly1, {tell(2, 0), free_again(2)}}},
       .hardened = true},
      {.name = "hardened: what is offered is freed again while its slab is given back and made anew",
       .slabs = {{0, Listed::kCurrent, 2, 1, 0}},
       .variables = {kNobody, kNobody, kNobody},
       .programs = {{0, kOnly0, {release_empty(), allocate(0), free_of(0)}}, {1, kOnly1, {tell(2, 0), free_again(2)}}},
       .hardened = true},
      {.name = "hardened: what is offered is freed again while its context is closed",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kOnly0, {tell(1, 0), free_again(1)}}, {1, kOnly1, {close(0), allocate(0)}}},
       .hardened = true},
      {.name = "hardened: what was offered is freed again while it comes from the shared slab",
       .slabs = {{kCentral, Listed::kCentral, 0, 1, 1}},
       .variables = {kNobody, kNobody, kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0)}},
                    {0, kOnly0, {allocate(1), free_of(1)}},
                    {1, kOnly1, {tell(3, 0), free_again(3)}}},
       .preemptions = 1,
       .hardened = true},
      {.name = "hardened: an offer of what is offered already meets a thread that takes it",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0)}},
                    {0, kOnly0, {allocate(1), free_of(1)}},
                    {1, kOnly1, {free_too(1, 0), flush()}}},
       .preemptions = 1,
       .hardened = true},
      {.name = "hardened: a freed object of a coarse class is taken and freed twice",
       .slabs = {{0, Listed::kCurrent, 0, 1, 0}},
       .variables = {1, kNobody, kNobody},
       .programs = {{0, kOnly0, {free_of(0), allocate(1), free_of(1)}}, {1, kOnly1, {free_too(0, 1), flush()}}},
       .coarse = true,
       .hardened = true},
      {.name = "hardened: a refill is moved to the other context",
       .slabs = {{0, Listed::kCurrent, 0, 0, 0, 1}},
       .variables = {kNobody, kNobody},
       .programs = {{0, kBoth, {allocate(0), free_of(0)}}, {0, kOnly0, {allocate(1), free_of(1)}}},
       .preemptions = 2,
       .hardened = true},
      {.name = "an object makes the round of three threads",
       .slabs = {},
       .variables = {kNobody, kNobody},
       .programs = {{0, kOnly0, {allocate(0), allocate(0)}}, {1, kOnly1, {free_of(0), flush(), allocate(1)}}}},
  };
  return all;
}

struct Case {
  Mutation mutation;
  const char* name;
  const char* scenario;  // where it must be found
};

constexpr Case kCases[] = {
    {Mutation::kNoRecheckAfterDetach, "detaching without a second look", "two others free into"},
    {Mutation::kNoFenceAfterDetach, "a second look without a fence", "two others free into"},
    {Mutation::kNoRecheckAfterTelling, "telling without a second look", "two others free into"},
    {Mutation::kTrustOldOwner, "a slab that was detached before taken for published", "two others free into"},
    {Mutation::kAdoptByStore, "adopting by a store", "the last owner adopts"},
    {Mutation::kPublishByStore, "publishing by a store", "the last owner adopts"},
    {Mutation::kDropCollectedBits, "collected bits dropped", "a refill is moved"},
    {Mutation::kSplitMagazineTake, "a magazine taken in two steps", "frees of two slabs share a magazine"},
    {Mutation::kPushFromOutside, "a push of what was computed before", "two threads of a context fill"},
    {Mutation::kLeaveSection, "a push that left its section for a moment", "two threads of a context fill"},
    {Mutation::kReleaseWithoutLock, "releasing without the lock", "two others empty a central slab"},
    {Mutation::kDetachFilledSlot, "detaching with the slot filled", "a detached slab is refilled"},
    {Mutation::kCloseWithoutBarrier, "closing without a barrier", "a context is closed while its thread frees"},
    {Mutation::kCloseWithOneBarrier, "closing with one barrier", "a context is closed while its thread allocates"},
    {Mutation::kOrInAnyContext, "collected bits into another context's word", "a thread collects and is moved"},
    {Mutation::kFreeOwnerOutside, "the owner compared outside of the section", "a thread is moved while it frees"},
    {Mutation::kInstallInAnyContext, "another context's slot filled", "a refill is moved"},
    {Mutation::kAdvanceIgnoresLock, "advancing under somebody's lock", "an empty current slab"},
    {Mutation::kTakeFreedUnoffered, "freed objects taken without a slot", "of a coarse class"},
    {Mutation::kCollectBlindly, "collecting without a look at the words", "free one object at once"},
    {Mutation::kLookOutsideOnly, "collecting with a look outside of the sequence only", "free one object at once"},
    {Mutation::kCheckPlacedBits, "collected bits looked for when they are placed", "others' frees are told"},
    {Mutation::kUnmarkAfterCollecting, "the mark taken down without a second look", "the owner frees again"},
    {Mutation::kNoFenceAfterUnmarking, "a second look for the mark without a fence", "the owner frees again"},
    {Mutation::kFreeMarkedBlindly, "a marked slab's free without a look at the others'", "the owner frees again"},
    {Mutation::kTakeCentralUnflushed, "a slab taken over before its objects are told", "a context takes over a slab"},
    {Mutation::kLoadAndClear, "a live bit looked at and then cleared", "hardened: two others"},
    {Mutation::kTrustLife, "a live bit believed without a look at the words", "hardened: what is offered"},
    {Mutation::kOfferThenBegin, "live bits set behind the offer", "hardened: a refill is moved"},
    {Mutation::kStoreOverLives, "live bits stored over others'", "hardened: another frees while"},
    {Mutation::kBeginOfferedAgain, "live bits set of what is offered already", "hardened: an object goes round"},
    {Mutation::kBeginTaken, "live bits set of what was taken meanwhile", "hardened: an object goes round"},
    {Mutation::kAbandonOffered, "an aborted offer that clears what it has moved", "hardened: a refill is moved"},
    {Mutation::kAdvanceInHardened, "malloc's own advance in the hardened tier", "hardened: an object goes round"},
    {Mutation::kReleaseOffered, "a slab given back with live bits", "given back and made anew"},
    {Mutation::kShareOffered, "an offered object shared with its live bit", "it comes from the shared slab"},
};

Result explore_scenario(const Scenario& scenario, Mutation mutation, uint64_t max_states) {
  return explore([&] { return new SlotsWorld(scenario, mutation); }, max_states);
}

bool check_sound(const Scenario& scenario) {
  const uint64_t most = scenario.too_large ? kSampledStates : kMaxStates;
  const Result result = explore_scenario(scenario, Mutation::kNone, most);
  const bool sound = result.fault.empty() && (result.complete || scenario.too_large);
  std::printf("%s  %8llu states  %s%s\n", sound ? "ok    " : "FAILED", static_cast<unsigned long long>(result.states),
              scenario.name.c_str(), result.complete ? "" : " (not every order)");
  if (!result.fault.empty()) std::printf("%s\n%s\n", result.trace.c_str(), result.fault.c_str());
  return sound;
}

bool check_found(const Case& test, bool print) {
  for (const Scenario& scenario : scenarios()) {
    if (scenario.name.find(test.scenario) == std::string::npos) continue;
    const Result result = explore_scenario(scenario, test.mutation, kMaxStates);
    if (result.fault.empty()) continue;
    std::printf("ok      %8llu states  %s: found: %s\n", static_cast<unsigned long long>(result.states), test.name,
                result.fault.c_str());
    if (print) std::printf("%s\n", result.trace.c_str());
    return true;
  }
  std::printf("FAILED  %s: not found in \"%s\"\n", test.name, test.scenario);
  return false;
}

}  // namespace
}  // namespace brimful::model

int main(int count, char** arguments) {
  using namespace brimful::model;
  if (count == 3 && std::strcmp(arguments[1], "--trace") == 0) {
    const size_t number = std::strtoul(arguments[2], nullptr, 10);
    return number < std::size(kCases) && check_found(kCases[number], true) ? 0 : 1;
  }
  unsigned checks = 0;
  unsigned failed = 0;
  for (const Scenario& scenario : scenarios()) {
    if (count == 2 && scenario.name.find(arguments[1]) == std::string::npos) continue;
    ++checks;
    failed += check_sound(scenario) ? 0 : 1;
    std::fflush(stdout);
  }
  for (const Case& test : kCases) {
    if (count == 2) break;
    ++checks;
    failed += check_found(test, false) ? 0 : 1;
    std::fflush(stdout);
  }
  std::printf("%u checks, %u failed\n", checks, failed);
  return failed == 0 && checks > 0 ? 0 : 1;
}
