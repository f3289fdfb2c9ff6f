// SPDX-License-Identifier: MIT
//
// From the model of the heap (heap/model.h) to the objects that live, and to what memory is the allocator's own.
#include <algorithm>
#include <vector>

#include "heap/model.h"
#include "leaks/look.h"
#include "meta/sample_record.h"

namespace brimful::observer::leaks {
namespace {

constexpr int kAttempts = 5;

// Records of samples hold addresses of objects, and copies of stacks: they are no roots.
bool add_samples(const heap::Layout& layout, const memory::Read& read, std::vector<memory::Range>& ours) {
  const std::uint64_t control = layout.samples_control;
  const auto word_at = [&](std::size_t offset, std::uint64_t& word) {
    return read(control + offset, &word, sizeof word);
  };
  std::uint64_t records = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t slots = 0;
  if (!word_at(offsetof(meta::SampleControl, records), records) ||
      !word_at(offsetof(meta::SampleControl, slot_bytes), slot_bytes) ||
      !word_at(offsetof(meta::SampleControl, slots), slots)) {
    return false;
  }
  if (records != 0) ours.push_back({records, records + slots * slot_bytes});
  return true;
}

std::vector<memory::Range> own_memory(const heap::Model& model) {
  std::vector<memory::Range> ours = model.metadata();
  ours.push_back({model.layout().heap, model.layout().heap + model.layout().heap_bytes});
  for (const heap::Window& window : model.windows()) ours.push_back(window.range);
  for (const heap::Block& block : model.blocks()) {
    if (block.is_huge) ours.push_back({block.start, block.end});
  }
  // The pages of freed guarded objects have no access, and so hold no root.
  if (model.guarded().end != 0) ours.push_back({model.guarded().start, model.guarded().end});
  return ours;
}

// Whether all of it is mapped; `mappings` are sorted by address.
bool is_mapped(const std::vector<memory::Mapping>& mappings, std::uint64_t start, std::uint64_t end) {
  for (const memory::Mapping& mapping : mappings) {
    if (mapping.start > start) return false;
    if (mapping.end > start) start = mapping.end;
    if (start >= end) return true;
  }
  return false;
}

// A damaged header may say of a block that it is longer than all memory, and all of a block is copied.
Objects live_objects(const heap::Model& model, const std::vector<memory::Mapping>& mappings) {
  Objects objects;
  std::vector<std::uint64_t> live;
  for (const heap::Slab& slab : model.slabs()) {
    model.live_words(slab, live);
    objects.add(slab.start, slab.object_bytes, slab.count(), true, live.data());
  }
  const std::uint64_t all = 1;
  for (const heap::Block& block : model.blocks()) {
    if (block.is_live && block.usable_end != block.start && is_mapped(mappings, block.start, block.usable_end))
      objects.add(block.start, block.usable_end - block.start, 1, false, &all);
  }
  for (const heap::Guarded& guarded : model.guarded().objects) {
    if (guarded.is_live) objects.add(guarded.start, std::max<std::uint64_t>(guarded.bytes, 1), 1, false, &all);
  }
  objects.finish();
  return objects;
}

}  // namespace

bool read_heap(memory::Target& target, HeapView& view, std::string* error) {
  view.library = target.anatomy().version();
  // What moves may make no sense for a moment; held, it makes sense at once.
  for (int attempt = 0; attempt < (target.pid() != 0 ? kAttempts : 1); ++attempt) {
    if (!target.mappings(view.mappings)) {
      *error = target.error();
      return false;
    }
    heap::Model model;
    if (!model.read(target.anatomy(), target.reader(), heap::Looks::kOne)) {
      *error = target.name() + ": " + model.error();
      continue;
    }
    view.ours = own_memory(model);
    view.objects = live_objects(model, view.mappings);
    if (add_samples(model.layout(), target.reader(), view.ours)) return true;
    *error = target.name() + ": its samples can't be read";
  }
  return false;
}

}  // namespace brimful::observer::leaks
