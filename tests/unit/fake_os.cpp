// SPDX-License-Identifier: MIT
//
// fake_os.h.
#include "fake_os.h"

#include <utility>

#include "base/units.h"

namespace brimful::testing {
namespace {

FakeOs* current = nullptr;

void* fake_map(std::uintptr_t hint, std::size_t bytes, os::Access access) {
  const Call kind = access == os::Access::kNone ? Call::kReserve : Call::kMap;
  if (current->enter(kind)) return nullptr;
  void* result = os::linux_calls().map(hint, bytes, access);
  if (result != nullptr) current->done(kind, reinterpret_cast<std::uint64_t>(result), bytes);
  return result;
}

template <Call kind, auto member>
bool fake(std::uintptr_t address, std::size_t bytes) {
  if (current->enter(kind) || !(os::linux_calls().*member)(address, bytes)) return false;
  current->done(kind, address, bytes);
  return true;
}

bool fake_move_pages(std::uintptr_t from, std::size_t bytes, std::uintptr_t to) {
  if (current->enter(Call::kMovePages) || !os::linux_calls().move_pages(from, bytes, to)) return false;
  current->done(Call::kMovePages, from, bytes);
  return true;
}

void* fake_resize(std::uintptr_t address, std::size_t old_bytes, std::size_t new_bytes) {
  if (current->enter(Call::kResize)) return nullptr;
  void* result = os::linux_calls().resize(address, old_bytes, new_bytes);
  if (result == nullptr) return nullptr;
  current->done(Call::kUnmap, address, old_bytes);
  current->done(Call::kResize, reinterpret_cast<std::uint64_t>(result), new_bytes);
  return result;
}

void ignore_name(std::uintptr_t /*address*/, std::size_t /*bytes*/, const char* /*text*/) {}

std::uint64_t fake_now_ms() { return current->now_ms; }

std::uint32_t fake_node() { return current->node; }

bool fake_prefer_node(std::uintptr_t address, std::size_t bytes, std::uint32_t /*node*/) {
  if (current->enter(Call::kPreferNode)) return false;
  current->done(Call::kPreferNode, address, bytes);
  return true;
}

// No test needs a pool: what is asked for is ordinary memory, and a test says when the pool is empty.
bool fake_map_hugetlb(std::uintptr_t address, std::size_t bytes, unsigned /*page_shift*/) {
  if (current->enter(Call::kHugetlb) || !os::linux_calls().commit(address, bytes)) return false;
  current->done(Call::kHugetlb, address, bytes);
  return true;
}

bool fake_advise(std::uintptr_t address, std::size_t bytes, os::Advice advice) {
  if (advice == os::Advice::kNoDump || advice == os::Advice::kDump) {
    current->dumps.push_back({{address, bytes}, advice});
    return os::linux_calls().advise(address, bytes, advice);
  }
  if (current->enter(Call::kAdvise)) return false;
  current->advices.push_back({{address, bytes}, advice});
  if (advice == os::Advice::kPopulate) {
    current->cpu_ns += current->populated_ns * (bytes / os::page_bytes());
    if (current->only_pretends) return true;
  }
  return os::linux_calls().advise(address, bytes, advice) || advice != os::Advice::kPopulate;
}

bool fake_is_resident(std::uintptr_t address) {
  ++current->residence_questions;
  return !current->enter(Call::kIsResident) && current->is_resident(address);
}

void fake_touch(std::uintptr_t address, std::size_t bytes) { current->touch(address, bytes); }

std::uint64_t fake_cpu_ns() { return current->cpu_ns; }

os::HugepageMode fake_hugepage_mode() {
  ++current->mode_questions;
  return current->hugepage_mode;
}

void fake_yield() { os::linux_calls().yield(); }

constexpr os::Calls kFake = {fake_map,
                             fake<Call::kDecommit, &os::Calls::decommit>,
                             fake<Call::kCommit, &os::Calls::commit>,
                             fake<Call::kSeal, &os::Calls::seal>,
                             fake<Call::kPurge, &os::Calls::purge>,
                             fake<Call::kUnmap, &os::Calls::unmap>,
                             fake_move_pages,
                             fake_resize,
                             ignore_name,
                             fake_now_ms,
                             fake_node,
                             fake_prefer_node,
                             fake_map_hugetlb,
                             fake<Call::kPurgeLazily, &os::Calls::purge_lazily>,
                             fake_advise,
                             fake_is_resident,
                             fake_touch,
                             fake_cpu_ns,
                             fake_hugepage_mode,
                             fake_yield};

}  // namespace

const char* name_of(Call kind) {
  constexpr const char* kNames[kCallKinds] = {"map",          "reserve",    "decommit", "commit",      "purge",
                                              "unmap",        "move_pages", "resize",   "prefer_node", "hugetlb",
                                              "purge_lazily", "advise",     "seal",     "is_resident"};
  return kNames[static_cast<std::size_t>(kind)];
}

FakeOs::FakeOs() {
  current = this;
  os::calls = kFake;
}

FakeOs::~FakeOs() {
  os::calls = os::linux_calls();
  current = nullptr;
}

bool FakeOs::Plan::hits() {
  if (times == 0) return false;
  if (skip > 0) {
    --skip;
    return false;
  }
  if (times != kAlways) --times;
  return true;
}

void FakeOs::fail(Call kind, std::size_t n, std::size_t times) {
  const std::lock_guard guard(mutex_);
  plans_[static_cast<std::size_t>(kind)] = {n - 1, times};
}

void FakeOs::fail_any(std::size_t n, std::size_t times) {
  const std::lock_guard guard(mutex_);
  any_ = {n - 1, times};
}

std::size_t FakeOs::succeed() {
  const std::lock_guard guard(mutex_);
  for (Plan& plan : plans_) plan = {};
  any_ = {};
  return std::exchange(failed_, 0);
}

std::size_t FakeOs::total() const {
  std::size_t sum = 0;
  for (const std::size_t n : counts_) sum += n;
  return sum;
}

void FakeOs::reset() {
  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < kCallKinds; ++i) {
    counts_[i] = 0;
    logs_[i].clear();
  }
}

std::vector<Range> FakeOs::log(Call kind) const {
  const std::lock_guard guard(mutex_);
  return logs_[static_cast<std::size_t>(kind)];
}

bool FakeOs::enter(Call kind) {
  const std::lock_guard guard(mutex_);
  ++counts_[static_cast<std::size_t>(kind)];
  const bool by_kind = plans_[static_cast<std::size_t>(kind)].hits();
  const bool by_any = kind != Call::kUnmap && kind != Call::kIsResident && any_.hits();
  if (by_kind || by_any) ++failed_;
  return by_kind || by_any;
}

void FakeOs::done(Call kind, std::uint64_t start, std::size_t bytes) {
  const std::lock_guard guard(mutex_);
  logs_[static_cast<std::size_t>(kind)].push_back({start, bytes});
  if (kind == Call::kMap || kind == Call::kReserve || kind == Call::kResize) add(start, bytes);
  if (kind == Call::kUnmap) remove(start, bytes);
}

// By the last advice that said something about the address.
bool FakeOs::is_advised(std::uint64_t address) const {
  bool advised = false;
  for (const Advised& call : advices) {
    if (call.advice == os::Advice::kPopulate || address - call.range.start >= call.range.bytes) continue;
    advised = call.advice == os::Advice::kHugepage;
  }
  return advised;
}

bool FakeOs::is_resident(std::uint64_t address) const {
  return huge_.contains(round_down(address, kHugepageBytes)) || os::linux_calls().is_resident(address);
}

void FakeOs::touch(std::uint64_t start, std::size_t bytes) {
  for (std::uint64_t page = start; page < start + bytes; page += os::page_bytes()) {
    const bool advised = is_advised(page);
    if (!advised) cpu_ns += touched_ns;
    if (advised && huge_.insert(round_down(page, kHugepageBytes)).second) cpu_ns += hugepage_ns;
  }
  if (!only_pretends) os::linux_calls().touch(start, bytes);
}

void FakeOs::add(std::uint64_t start, std::size_t bytes) {
  remove(start, bytes);
  mapped_[start] = start + bytes;
}

void FakeOs::remove(std::uint64_t start, std::size_t bytes) {
  const std::uint64_t end = start + bytes;
  auto it = mapped_.upper_bound(start);
  if (it != mapped_.begin()) --it;
  while (it != mapped_.end() && it->first < end) {
    const auto [old_start, old_end] = *it;
    if (old_end <= start) {
      ++it;
      continue;
    }
    it = mapped_.erase(it);
    if (old_start < start) mapped_[old_start] = start;
    if (old_end > end) mapped_[end] = old_end;
  }
}

std::size_t FakeOs::mapped_bytes() const {
  const std::lock_guard guard(mutex_);
  std::size_t sum = 0;
  for (const auto& [start, end] : mapped_) sum += end - start;
  return sum;
}

void FakeOs::unmap_everything() {
  const std::lock_guard guard(mutex_);
  for (const auto& [start, end] : mapped_) os::linux_calls().unmap(start, end - start);
  mapped_.clear();
}

}  // namespace brimful::testing
