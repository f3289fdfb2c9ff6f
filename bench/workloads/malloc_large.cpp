// SPDX-License-Identifier: MIT
//
// malloc-large: a window of live objects of 5 to 25 MiB; a step frees one at random and makes another in its place.
//
// Imitates malloc-large of the mimalloc-bench suite, as its list of benchmarks describes it (part of Leijen, Zorn, de
// Moura, "Mimalloc: Free List Sharding in Action", APLAS 2019, and its sources): large objects that a window keeps
// alive. It shows whether an allocator asks the kernel for each large object, whether it keeps freed ones for the next
// (time against resident memory), and how well it fits new sizes into old places.
//
// What the program touches decides what is measured, so both ends exist: `ends` writes the first and the last word,
// `pages` one word in each 4 KiB page, as a program that fills its buffers.
//
// Afterwards the program may shrink: half of the window is freed, and what the process holds then is compared with what
// is still in use, after some light activity. (With `--touch ends` hardly anything is resident: use `pages`.)
//
//   --touch ends|pages (default ends)  --window OBJECTS (default 20)
//   --shrink SECONDS (of light activity with half of the window; 0, the default: none; one thread)
// extra, with --shrink: resident_over_live, resident_shrunk_mib
#include "light.h"
#include "live.h"

using namespace workload;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::size_t kPage = 4096;

struct Buffer {
  unsigned char* begin;
  std::size_t bytes;
};

void fill(Buffer& buffer, Random& random, bool pages, Live& live) {
  buffer.bytes = random.between(5 * kMiB, 25 * kMiB);
  buffer.begin = static_cast<unsigned char*>(make(buffer.bytes));
  live.add(buffer.bytes);
  if (!pages) return;
  for (std::size_t at = kPage; at + kPage < buffer.bytes; at += kPage)
    buffer.begin[at] = static_cast<unsigned char>(at / kPage);
}

void empty(Buffer& buffer, bool pages, Live& live) {
  if (buffer.begin == nullptr) return;
  if (pages) {
    for (std::size_t at = kPage; at + kPage < buffer.bytes; at += kPage)
      if (buffer.begin[at] != static_cast<unsigned char>(at / kPage)) fail("an object was overwritten");
  }
  drop(buffer.begin, buffer.bytes);
  live.subtract(buffer.bytes);
  buffer.begin = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const char* touch = arguments.text("touch", "ends");
  const auto window = arguments.integer("window", 20, 1, 4096);
  const double shrink = common.waiting(arguments.number("shrink", 0, 0, 3600));
  arguments.check();
  if (shrink > 0 && common.threads != 1) usage("--shrink");
  const bool pages = std::strcmp(touch, "pages") == 0;
  if (!pages && std::strcmp(touch, "ends") != 0) usage("--touch");

  Report report("malloc-large", common.threads);
  const std::uint64_t steps = common.scaled(pages ? 100 : 200000) / common.threads;
  const std::uint64_t before = exact_resident_bytes();
  double stopped_s = 0;
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    Live live;
    auto* buffers = static_cast<Buffer*>(std::calloc(window, sizeof(Buffer)));
    if (buffers == nullptr) fail("calloc returned NULL");
    for (std::uint64_t i = 0; i < window; i++) fill(buffers[i], random, pages, live);
    for (std::uint64_t i = 0; i < steps; i++) {
      Buffer& buffer = buffers[random.below(window)];
      empty(buffer, pages, live);
      fill(buffer, random, pages, live);
    }
    if (shrink > 0) {
      stopped_s = now_s();
      report.phase("worked");
      for (std::uint64_t i = 0; i < window / 2; i++) empty(buffers[i], pages, live);
      light_activity(shrink, random);
      report.phase("shrunk");
      const std::uint64_t held = exact_resident_bytes() - before;
      report.extra("resident_over_live", static_cast<double>(held) / static_cast<double>(live.now));
      report.extra("resident_shrunk_mib", mib(held));
    }
    for (std::uint64_t i = 0; i < window; i++) empty(buffers[i], pages, live);
    std::free(buffers);
    return live.most;
  };
  const double began_s = now_s();
  run_timed(report, common.threads, body);
  if (shrink > 0) report.timed(began_s, stopped_s);
  report.operations = (window + steps) * common.threads;
  return report.print();
}
