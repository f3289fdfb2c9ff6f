// SPDX-License-Identifier: MIT
//
// realloc-growth: buffers that realloc makes longer, several in turns; or objects that are cut, grown and moved.
//
// Two modes. `append` is what strings and vectors of C programs do: 16 buffers get pieces of 1 to 64 bytes in random
// order; half of them grow to exactly what is needed, by small steps, the other half by a factor of 1.5 (the two
// policies that A. Koenig, "Why are vectors efficient?", JOOP 1998, and many after him compare). The neighbours grow
// too, so growing in place fails in the middle of a heap, and copying a large buffer at every step is what a good
// allocator avoids by roomy size classes or by moving pages (mremap(2)).
//
// `resize` imitates the programs test_large and test_huge that come with D. Micay's allocator of 2014, as a course
// report of National Cheng Kung University (2023) explains them: an object is cut to half, grown back, doubled, and
// doubled again. Here eight of them take their steps in random turns, so that growing is more than moving the end of
// the heap. Whether one stayed where it was is counted, not demanded.
//
// All contents are compared with what was written when a buffer ends.
//
//   --mode append|resize (default append)  --size BYTES (append: the longest buffer, default 262144; resize: the
//   object at first, default 16384)
// extra: in_place_percent, reallocs that returned the old address.
#include <bit>
#include <iterator>

#include "live.h"

using namespace workload;

namespace {

constexpr unsigned kBuffers = 16;
constexpr unsigned kObjects = 8;
constexpr std::size_t kPiece = 64;

struct Buffer {
  unsigned char* data;
  std::size_t length;
  std::size_t capacity;
  std::size_t limit;
  unsigned char key;  // append: of the content; resize: how many steps were taken
};

struct Counts {
  std::uint64_t reallocs = 0;
  std::uint64_t in_place = 0;
  std::uint64_t pieces = 0;
  Live live;
};

unsigned char content(std::size_t at, unsigned char key) { return static_cast<unsigned char>(at * 31 + key); }

void write(unsigned char* data, std::size_t from, std::size_t to, unsigned char key) {
  for (std::size_t i = from; i < to; i++) data[i] = content(i, key);
}

void verify(const unsigned char* data, std::size_t from, std::size_t to, unsigned char key) {
  unsigned wrong = 0;
  for (std::size_t i = from; i < to; i++) wrong |= data[i] ^ content(i, key);
  if (wrong != 0) fail("realloc lost content");
}

unsigned char* resize(unsigned char* data, std::size_t from, std::size_t to, Counts& counts) {
  const auto before = reinterpret_cast<std::uintptr_t>(data);
  auto* moved = static_cast<unsigned char*>(std::realloc(data, to));
  if (moved == nullptr) fail("realloc returned NULL");
  counts.reallocs++;
  counts.in_place += reinterpret_cast<std::uintptr_t>(moved) == before;
  counts.live.subtract(from);
  counts.live.add(to);
  return moved;
}

// Lengths are as likely in each power of two as in the next.
void begin(Buffer& buffer, std::size_t longest, Random& random) {
  const unsigned bits = static_cast<unsigned>(std::bit_width(longest)) - 1;
  const std::size_t base = std::size_t{1} << (6 + random.below(bits - 6));
  buffer = {nullptr, 0, 0, base + random.below(base), static_cast<unsigned char>(random.next() >> 56)};
}

void end(Buffer& buffer, Counts& counts) {
  verify(buffer.data, 0, buffer.length, buffer.key);
  std::free(buffer.data);
  counts.live.subtract(buffer.capacity);
}

void append(Buffer& buffer, std::size_t bytes, bool exact, Counts& counts) {
  const std::size_t needed = buffer.length + bytes;
  if (needed > buffer.capacity) {
    const std::size_t roomy = buffer.capacity + buffer.capacity / 2;
    const std::size_t capacity = exact || roomy < needed ? needed : roomy;
    buffer.data = resize(buffer.data, buffer.capacity, capacity, counts);
    buffer.capacity = capacity;
  }
  write(buffer.data, buffer.length, needed, buffer.key);
  buffer.length = needed;
  counts.pieces++;
}

void run_append(std::uint64_t steps, std::size_t longest, Random& random, Counts& counts) {
  Buffer buffers[kBuffers];
  for (Buffer& buffer : buffers) begin(buffer, longest, random);
  for (std::uint64_t i = 0; i < steps; i++) {
    const std::uint32_t which = random.below(kBuffers);
    append(buffers[which], random.between(1, kPiece), which % 2 == 0, counts);
    if (buffers[which].length < buffers[which].limit) continue;
    end(buffers[which], counts);
    begin(buffers[which], longest, random);
  }
  for (Buffer& buffer : buffers) end(buffer, counts);
}

// Writes both ends of a range, so that a large object costs the allocator's work and not that of filling it.
void write_ends(unsigned char* data, std::size_t from, std::size_t to) {
  write(data, from, from + kPiece, 1);
  write(data, to - kPiece, to, 1);
}

// One step in the life of an object: made, cut to half, grown back, doubled, doubled again, freed.
void step(Buffer& object, std::size_t size, Counts& counts) {
  const std::size_t lives[] = {size, size / 2, size, 2 * size, 4 * size};
  const std::size_t now = object.length;
  if (object.key == std::size(lives)) {
    verify(object.data, 0, kPiece, 1);
    std::free(object.data);
    counts.live.subtract(now);
    object = {};
    return;
  }
  const std::size_t next = lives[object.key++];
  object.data = resize(object.data, now, next, counts);
  object.length = next;
  counts.pieces++;
  if (now == 0) {
    write_ends(object.data, 0, next / 2);
    write_ends(object.data, next / 2, next);
  } else if (next < now) {
    verify(object.data, next - kPiece, next, 1);
  } else {
    verify(object.data, now - kPiece, now, 1);
    write_ends(object.data, now, next);
  }
}

void run_resize(std::uint64_t steps, std::size_t size, Random& random, Counts& counts) {
  Buffer objects[kObjects] = {};
  for (std::uint64_t i = 0; i < steps; i++) step(objects[random.below(kObjects)], size, counts);
  for (Buffer& object : objects) {
    while (object.length != 0) step(object, size, counts);
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const char* mode = arguments.text("mode", "append");
  const bool appends = std::strcmp(mode, "append") == 0;
  if (!appends && std::strcmp(mode, "resize") != 0) usage("--mode");
  const auto size = arguments.integer("size", appends ? 262144 : 16384, 512, std::uint64_t{1} << 30);
  arguments.check();

  Report report("realloc-growth", common.threads);
  const double steps_at_scale_1 = appends ? 4e6 : size <= 65536 ? 6e5 : 3e9 / static_cast<double>(size);
  const std::uint64_t steps = (common.scaled(steps_at_scale_1) + common.threads - 1) / common.threads;
  std::atomic<std::uint64_t> peak{0}, reallocs{0}, in_place{0}, pieces{0};
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    Counts counts;
    if (appends) {
      run_append(steps, size, random, counts);
    } else {
      run_resize(steps, size, random, counts);
    }
    // relaxed: read after the threads have ended
    peak.fetch_add(counts.live.most, std::memory_order_relaxed);
    reallocs.fetch_add(counts.reallocs, std::memory_order_relaxed);
    in_place.fetch_add(counts.in_place, std::memory_order_relaxed);
    pieces.fetch_add(counts.pieces, std::memory_order_relaxed);
  };
  report.start();
  run_threads(common.threads, body);
  report.stop();
  // relaxed: the threads have ended
  report.operations = pieces.load(std::memory_order_relaxed);
  report.peak_live_bytes = peak.load(std::memory_order_relaxed);
  report.extra("in_place_percent", 100.0 * static_cast<double>(in_place.load(std::memory_order_relaxed)) /
                                       static_cast<double>(reallocs.load(std::memory_order_relaxed)));
  return report.print();
}
