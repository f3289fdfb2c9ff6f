// SPDX-License-Identifier: MIT
//
// stats/watch.h.
#include "stats/watch.h"

#include <time.h>

#include <bit>

#include "heap/model.h"
#include "inspect/picture.h"
#include "stats/process.h"

namespace brimful::observer::stats {
namespace {

using nlohmann::json;

constexpr double kHeapShare = 0.05;  // of a processor

double processor_seconds() {
  timespec used = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) / 1e9;
}

struct Offered {
  std::uint64_t unused = 0;   // objects that malloc was offered and has not taken yet
  std::uint64_t foreign = 0;  // live objects of the program's own heaps, which malloc was never offered
};

Offered offered(const heap::Model& model) {
  Offered sums;
  std::vector<std::uint64_t> live;
  const auto ones = [](std::uint64_t word) { return static_cast<std::uint64_t>(std::popcount(word)); };
  for (const heap::Slab& slab : model.slabs()) {
    if (slab.owner == model.layout().owner_heap) {
      model.live_words(slab, live);
      for (const std::uint64_t word : live) sums.foreign += ones(word);
    } else if (slab.owner != model.layout().owner_sampled) {
      for (std::uint32_t n = 0; n < slab.groups; ++n) sums.unused += ones(heap::Model::word(slab.offered, n));
    }
  }
  return sums;
}

}  // namespace

bool Watch::fail(const std::string& why) {
  error_ = why;
  return false;
}

bool Watch::fail_to_read(const std::string& why) {
  const std::string process = "process " + std::to_string(pid_);
  const std::string now = stats::identity(pid_);
  if (now.empty()) return fail(process + " has ended");
  if (now != identity_) return fail(process + " runs another program now");
  return fail(target_->error().empty() ? target_->name() + ": " + why : target_->error());
}

bool Watch::open(pid_t pid) {
  pid_ = pid;
  identity_ = stats::identity(pid);
  std::string why;
  target_ = memory::open_target(std::to_string(pid), &why);
  return target_ != nullptr || fail(why);
}

bool Watch::look_at_heap(json& into) {
  const double began = processor_seconds();
  heap::Model model;
  if (!model.read(target_->anatomy(), target_->reader(), heap::Looks::kTwo)) {
    return fail_to_read(model.error());
  }
  inspect::PictureOptions options;
  options.biggest = 0;
  options.with_hugepages = false;
  json picture = inspect::picture(model, pid_, options);
  heap_ = std::move(picture["totals"]);
  std::uint64_t allocated = picture["blocks"]["live_bytes"];
  for (const json& use : picture["classes"]) {
    allocated += use["live"].get<std::uint64_t>() * use["bytes"].get<std::uint64_t>();
  }
  heap_["allocated"] = allocated;
  heap_["live_block_bytes"] = picture["blocks"]["live_bytes"];
  heap_["moving_bytes"] = picture["moving"]["bytes"];
  heap_["residency"] = picture["residency"];
  heap_["classes"] = std::move(picture["classes"]);
  const Offered sums = offered(model);
  heap_["offered"] = sums.unused;
  const std::uint64_t live = heap_["live_objects"].get<std::uint64_t>() + heap_["live_blocks"].get<std::uint64_t>();
  const std::uint64_t held = live - std::min(live, sums.foreign) + sums.unused;
  const std::uint64_t mallocs = into["calls"]["mallocs"];
  heap_["frees"] = mallocs - std::min(mallocs, held);
  if (!add_kernel_figures(pid_, true, into)) return fail_to_read();
  for (const char* name : {"pss", "hugepages", "anonymous", "swap"}) heap_[name] = into["process"][name];
  const double cost = processor_seconds() - began;
  heap_["processor_seconds"] = cost;
  heap_["at_seconds"] = into["at_seconds"];
  next_heap_at_ = now_seconds() + cost / kHeapShare - cost;
  return true;
}

bool Watch::look(bool light, json& into) {
  Reader reader(target_->anatomy(), target_->reader());
  into = json::object();
  into["pid"] = pid_;
  into["program"] = target_->program();
  into["command"] = command_line(pid_);
  into["version"] = target_->anatomy().version();
  into["at_seconds"] = now_seconds();
  if (!has_names_) {
    counters_.read_names(reader);
    options_.read_table(reader);
  }
  counters_.look(reader, into);
  into["options"] = options_.values(reader);
  into["options_set"] = options_.changed(reader);
  const std::string& missing = target_->anatomy().missing();
  if (!missing.empty()) {
    return fail("process " + std::to_string(pid_) + " has brimful " + target_->anatomy().version() +
                ", whose anatomy lacks \"" + missing + "\": use the observer of that version");
  }
  if (!add_kernel_figures(pid_, false, into) || stats::identity(pid_) != identity_ || reader.has_failed()) {
    return fail_to_read();
  }
  has_names_ = true;
  if (!light) {
    if (now_seconds() >= next_heap_at_ && !look_at_heap(into)) return false;
    into["heap"] = heap_;
    into["heap"]["age_seconds"] = into["at_seconds"].get<double>() - heap_["at_seconds"].get<double>();
    for (const char* name : {"pss", "hugepages", "anonymous", "swap"}) into["process"][name] = heap_[name];
  }
  return true;
}

}  // namespace brimful::observer::stats
