// SPDX-License-Identifier: MIT
//
// The steps of look.h.
#include "leaks/look.h"

#include <errno.h>

#include <algorithm>
#include <cstring>

#include "leaks/lost.h"
#include "leaks/mark.h"
#include "memory/piece.h"

namespace brimful::observer::leaks {
namespace {

std::uint64_t page_of(std::uint64_t address) { return address / memory::kPageBytes * memory::kPageBytes; }

// Whether any object of the span lives.
bool has_live(const Objects& objects, const Span& span) {
  for (std::uint64_t word = span.first / 64; word <= (span.first + span.count - 1) / 64; ++word) {
    if (objects.live().words()[word] != 0) return true;
  }
  return false;
}

}  // namespace

bool Look::take(memory::Target& target) {
  if (target.pid() == 0) {
    const std::vector<memory::ThreadState> threads = target.threads();
    if (!read_heap(target, view_, &error_)) return false;
    if (!copy(target, threads)) return false;
    mark(threads);
    return true;
  }
  if (!prepare(target)) return false;
  if (!seizure_.seize(target.pid())) {
    error_ = seizure_.error();
    return false;
  }
  const bool is_read = read_heap(target, view_, &error_);
  const bool is_copied = is_read && copy(target, seizure_.threads());
  seizure_.release();
  held_seconds_ = seizure_.held_seconds();
  if (is_copied) mark(seizure_.threads());
  return is_copied;
}

// The heap while it moves: good enough to know how much memory the copy will take.
bool Look::prepare(memory::Target& target) {
  if (!read_heap(target, view_, &error_)) return false;
  std::uint64_t slabs = 0;
  std::uint64_t all = 0;
  for (const Span& span : view_.objects.spans()) {
    if (!has_live(view_.objects, span)) continue;
    all += span.bytes();
    if (span.is_slab) slabs += span.bytes();
  }
  for (const memory::Mapping& mapping : view_.mappings) all += mapping.is_readable ? mapping.end - mapping.start : 0;
  if (image_.prepare(slabs + slabs / 16, all + all / 4)) return true;
  error_ = "no memory for a copy of the heap (" + std::to_string(slabs >> 20) + " MiB)";
  return false;
}

bool Look::copy(memory::Target& target, const std::vector<memory::ThreadState>& threads) {
  image_.clear();
  threads_ = threads.size();
  std::vector<Span>& spans = view_.objects.spans();
  std::vector<std::size_t> pieces(spans.size());
  // Slabs first: they are full of pages, and the room for them is there.
  for (const bool slabs : {true, false}) {
    for (std::size_t n = 0; n < spans.size(); ++n) {
      if (spans[n].is_slab != slabs || !has_live(view_.objects, spans[n])) continue;
      pieces[n] =
          1 + image_.add(page_of(spans[n].start),
                         page_of(spans[n].start + spans[n].bytes() + memory::kPageBytes - 1) - page_of(spans[n].start),
                         memory::Pages::kTouched);
    }
  }
  roots_ = find_roots(view_.mappings, view_.ours, threads, [&target](std::uint64_t address, std::uint64_t& word) {
    return target.read(address, &word, sizeof word);
  });
  kernel_words_ = target.kernel_words();
  root_pieces_.clear();
  for (const Root& root : roots_.memory) {
    const std::uint64_t start = page_of(root.range.start);
    root_pieces_.push_back(image_.add(start, page_of(root.range.end + memory::kPageBytes - 1) - start, root.pages));
  }
  const bool is_copied = target.pid() != 0 ? image_.copy(target.pid())
                                           : image_.copy_by([&target](std::uint64_t from, void* to, std::size_t bytes) {
                                               return target.read(from, to, bytes);
                                             });
  if (!is_copied) {
    error_ = "process " + std::to_string(target.pid()) + " can't be copied: " + std::strerror(errno);
    return false;
  }
  for (std::size_t n = 0; n < spans.size(); ++n) {
    if (pieces[n] != 0) spans[n].memory = image_.piece(pieces[n] - 1);
  }
  return true;
}

void Look::mark(const std::vector<memory::ThreadState>& threads) {
  Marker marker(view_.objects);
  for (const std::uint64_t owner : roots_.owners) marker.add_owner(owner);
  marker.add_root_words(kernel_words_);
  for (const memory::ThreadState& thread : threads) marker.add_root_words(thread.words);
  for (std::size_t n = 0; n < root_pieces_.size(); ++n) {
    const Root& root = roots_.memory[n];
    marker.add_root(image_.piece(root_pieces_[n]), root.range.start, root.range.end, root.step);
  }
  marker.run();
  possibly_ = marker.possibly();
  lost_ = lost_objects(view_.objects, marker.reached(), possibly_);
}

std::string Look::first_bytes(Object object, std::size_t bytes) const {
  const Span& span = view_.objects.span(object);
  const std::uint64_t from = span.address(object.index) - span.memory.start;
  bytes = std::min<std::size_t>(bytes, span.object_bytes);
  return {reinterpret_cast<const char*>(span.memory.data + from), bytes};
}

}  // namespace brimful::observer::leaks
