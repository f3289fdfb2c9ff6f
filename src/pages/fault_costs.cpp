// SPDX-License-Identifier: MIT
//
// pages/fault_costs.h.
#include "pages/fault_costs.h"

#include "os/calls.h"

namespace brimful::pages {
namespace {

constexpr std::uint32_t kMeasureEvery = 64;
constexpr std::uint32_t kMostNs = 1U << 30;

}  // namespace

constinit FaultCosts fault_costs;

void FaultCosts::note(Way way, std::uint64_t ns, std::uint64_t pages) {
  Cost& cost = costs_[way];
  std::uint64_t value = ns / pages;
  if (value == 0) value = 1;
  if (value > kMostNs) value = kMostNs;
  const std::uint32_t values = cost.values.load(std::memory_order_relaxed);  // relaxed: an estimate, also below
  const std::uint64_t average = cost.ns.load(std::memory_order_relaxed);     // relaxed: as above
  const std::uint64_t weight = values < 3 ? values : 3;
  // relaxed: as above
  cost.ns.store(static_cast<std::uint32_t>((average * weight + value) / (weight + 1)), std::memory_order_relaxed);
  if (values < UINT32_MAX) cost.values.store(values + 1, std::memory_order_relaxed);  // relaxed: as above
}

std::uint32_t FaultCosts::ns_per_page(Way way) const {
  return costs_[way].ns.load(std::memory_order_relaxed);  // relaxed: an estimate
}

bool FaultCosts::is_known(Way way) const {
  return costs_[way].values.load(std::memory_order_relaxed) >= kLeastValues;  // relaxed: an estimate
}

bool FaultCosts::is_cheaper(Way way) const {
  return !is_known(way) || !is_known(kTouched) || ns_per_page(way) <= ns_per_page(kTouched);
}

bool FaultCosts::is_due() {
  // relaxed: a lost count measures once more or less
  const std::uint32_t number = ranges_.load(std::memory_order_relaxed);
  ranges_.store(number + 1, std::memory_order_relaxed);  // relaxed: as above
  return number < kLeastValues || number % kMeasureEvery == 0;
}

void touch_and_measure(std::uint64_t start) {
  const std::size_t pages = touched_pages(os::page_bytes());
  if (os::calls.is_resident(start)) return;
  const std::uint64_t began_ns = os::calls.cpu_ns();
  os::calls.touch(start, pages * os::page_bytes());
  fault_costs.note(FaultCosts::kTouched, os::calls.cpu_ns() - began_ns, pages);
}

bool populate_and_measure(std::uint64_t start, std::size_t bytes) {
  const std::size_t page = os::page_bytes();
  const std::size_t touched = touched_pages(page) * page;
  if (bytes < 2 * touched) return os::calls.advise(start, bytes, os::Advice::kPopulate);
  // What was there before costs nothing, and would say that everything is cheap.
  const bool is_fresh = !os::calls.is_resident(start) && !os::calls.is_resident(start + touched);
  const std::uint64_t began_ns = os::calls.cpu_ns();
  os::calls.touch(start, touched);
  const std::uint64_t between_ns = os::calls.cpu_ns();
  if (!os::calls.advise(start + touched, bytes - touched, os::Advice::kPopulate)) return false;
  const std::uint64_t ended_ns = os::calls.cpu_ns();
  if (!is_fresh) return true;
  fault_costs.note(FaultCosts::kTouched, between_ns - began_ns, touched / page);
  fault_costs.note(FaultCosts::kPopulated, ended_ns - between_ns, (bytes - touched) / page);
  return true;
}

void touch_hugepage_and_measure(std::uint64_t address) {
  const std::uint64_t middle = address + kHugepageBytes / 2;
  if (os::calls.is_resident(address) || os::calls.is_resident(middle)) return;
  const std::uint64_t began_ns = os::calls.cpu_ns();
  os::calls.touch(address, os::page_bytes());
  const std::uint64_t ended_ns = os::calls.cpu_ns();
  if (!os::calls.is_resident(middle)) return;  // the kernel had none
  fault_costs.note(FaultCosts::kHuge, ended_ns - began_ns, kHugepageBytes / os::page_bytes());
}

}  // namespace brimful::pages
