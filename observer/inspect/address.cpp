// SPDX-License-Identifier: MIT
//
// inspect/address.h.
#include "inspect/address.h"

#include <algorithm>
#include <string>

#include "inspect/sample.h"

namespace brimful::observer::inspect {
namespace {

using heap::Block;
using heap::kGroupObjects;
using heap::Model;
using heap::Slab;
using nlohmann::json;

const Model::Kept* kept_at(const Model& model, std::uint64_t object) {
  const auto found = std::lower_bound(model.kept().begin(), model.kept().end(), object,
                                      [](const Model::Kept& k, std::uint64_t a) { return k.address < a; });
  return found != model.kept().end() && found->address == object ? &*found : nullptr;
}

// live, or how it is free.
json state_of(const Model& model, const Slab& slab, std::uint64_t index) {
  const auto group = static_cast<std::uint32_t>(index / kGroupObjects);
  const std::uint64_t bit = std::uint64_t{1} << (index % kGroupObjects);
  if (const Model::Kept* const kept = kept_at(model, slab.object(index))) {
    return {{"state", "free"}, {"free_as", "magazine"}, {"context", kept->context}};
  }
  if ((Model::word(slab.remote, group) & bit) != 0) return {{"state", "free"}, {"free_as", "freed by another thread"}};
  if ((Model::word(slab.words, group) & bit) != 0) return {{"state", "free"}, {"free_as", "freed"}};
  if ((Model::word(slab.offered, group) & bit) != 0) return {{"state", "free"}, {"free_as", "offered to malloc"}};
  return {{"state", "live"}};
}

json owner_of(const Model& model, const Slab& slab) {
  const heap::Layout& layout = model.layout();
  if (slab.owner < layout.owner_first_special) {
    return {{"owner", "context"}, {"context", slab.owner & ~layout.owner_has_remote}};
  }
  if (slab.owner == layout.owner_heap) return {{"owner", "heap"}, {"heap", slab.last_owner}};
  if (slab.owner == layout.owner_sampled) return {{"owner", "sampled"}};
  if (slab.owner == layout.owner_detached) return {{"owner", "none, it was full"}};
  if (slab.owner == layout.owner_central) return {{"owner", "central index"}};
  if (slab.owner == layout.owner_shared) return {{"owner", "shared"}};
  if (slab.owner == layout.owner_moving) return {{"owner", "changing"}};
  return {{"owner", "unknown"}};
}

json object_json(const Model& model, const Slab& slab, std::uint64_t index) {
  json object = {{"number", index}, {"start", slab.object(index)}, {"end", slab.object(index) + slab.object_bytes}};
  object.update(state_of(model, slab, index));
  return object;
}

json in_slab(const Model& model, const Slab& slab, const memory::Read& read, std::uint64_t address) {
  json result = {{"what", "object"}, {"class_bytes", slab.object_bytes}, {"moving", slab.is_moving}};
  result["slab"] = {{"start", slab.start}, {"end", slab.end}, {"objects", slab.count()}};
  result["slab"].update(owner_of(model, slab));
  const std::uint64_t index = (address - slab.start) / slab.object_bytes;
  if (index >= slab.count()) {
    result["what"] = "end of a slab";  // behind its last object
    return result;
  }
  result.update(object_json(model, slab, index));
  result["offset"] = address - slab.object(index);
  if (index > 0) result["before"] = object_json(model, slab, index - 1);
  if (index + 1 < slab.count()) result["after"] = object_json(model, slab, index + 1);
  if (slab.owner == model.layout().owner_sampled) {
    json sample = sample_of(model, read, slab.object(index));
    if (!sample.is_null()) result["sample"] = std::move(sample);
  }
  return result;
}

json in_block(const Model& model, const Block& block, const memory::Read& read, std::uint64_t address) {
  json result = {{"what", block.is_huge ? "huge block" : "large block"},
                 {"state", block.is_live ? "live" : "free"},
                 {"start", block.start},
                 {"end", block.usable_end},
                 {"offset", address - block.start},
                 {"moving", false}};
  if (block.heap != 0) result["heap"] = block.heap;
  if (!block.is_live) result["free_as"] = "waits for the next request of its length";
  json sample = sample_of(model, read, block.start);
  if (!sample.is_null()) result["sample"] = std::move(sample);
  return result;
}

// In the pages of guarded objects, the nearest of them.
json beside_guarded(const heap::GuardedObjects& guarded, const memory::Read& read, std::uint64_t address) {
  const heap::Guarded* best = nullptr;
  std::uint64_t best_distance = 2 * guarded.page_bytes;
  for (const heap::Guarded& object : guarded.objects) {
    const std::uint64_t end = object.start + object.bytes;
    const std::uint64_t distance = address < object.start ? object.start - address : address >= end ? address - end : 0;
    if (distance >= best_distance) continue;
    best = &object;
    best_distance = distance;
  }
  if (best == nullptr) return {{"what", "page of guarded objects that was never used"}};
  const std::uint64_t end = best->start + best->bytes;
  json result = {{"what", "guarded object"},
                 {"state", best->is_live ? "live" : "free"},
                 {"start", best->start},
                 {"end", end},
                 {"where", address < best->start ? "before"
                           : address >= end      ? "behind"
                                                 : "inside"},
                 {"distance", address >= best->start && address < end ? address - best->start : best_distance}};
  json stacks = guarded_stacks(read, *best);
  if (!stacks.is_null()) result["sample"] = std::move(stacks);
  return result;
}

json elsewhere(const std::vector<memory::Mapping>& mappings, std::uint64_t address) {
  for (const memory::Mapping& mapping : mappings) {
    if (address < mapping.start || address >= mapping.end) continue;
    const std::string& path = mapping.path;
    std::string what = "anonymous memory";
    if (path == "[heap]") {
      what = "brk heap";
    } else if (path.rfind("[stack", 0) == 0) {
      what = "stack";
    } else if (!path.empty() && path[0] == '[') {
      what = "kernel's mapping";
    } else if (!path.empty()) {
      what = "file";
    }
    return {{"what", what},
            {"start", mapping.start},
            {"end", mapping.end},
            {"path", path},
            {"offset", address - mapping.start},
            {"writable", mapping.is_writable}};
  }
  return {{"what", "not mapped"}};
}

}  // namespace

json describe(const Model& model, const std::vector<memory::Mapping>& mappings, const memory::Read& read,
              std::uint64_t address) {
  json result;
  const auto in = [address](const std::vector<heap::Range>& ranges) {
    return std::any_of(ranges.begin(), ranges.end(), [address](const heap::Range& r) { return r.holds(address); });
  };
  if (const Slab* const slab = model.slab_at(address)) {
    result = in_slab(model, *slab, read, address);
  } else if (const Block* const block = model.block_at(address)) {
    result = in_block(model, *block, read, address);
  } else if (address >= model.guarded().start && address < model.guarded().end) {
    result = beside_guarded(model.guarded(), read, address);
  } else if (in(model.metadata()) || in(model.metadata_in_windows())) {
    result = {{"what", "metadata of the heap"}};
  } else if (const heap::HugepageRecord* const record = model.hugepage(address)) {
    const unsigned granule = address / heap::kGranuleBytes % 32;
    const bool was_used = (record->used_once >> granule & 1) != 0;
    result = {{"what", was_used ? "free memory of the heap" : "memory of the heap that was never used"},
              {"state", "free"}};
  } else {
    result = elsewhere(mappings, address);
    for (const heap::Window& window : model.windows()) {
      if (window.range.holds(address)) result = {{"what", "memory of the heap that was never used"}, {"state", "free"}};
    }
  }
  result["address"] = address;
  return result;
}

}  // namespace brimful::observer::inspect
