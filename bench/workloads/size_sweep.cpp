// SPDX-License-Identifier: MIT
//
// size-sweep: malloc and free of one size, as often as it takes to tell the cost of a pair; the size is swept.
//
// Imitates the measurement behind the charts of time against size in two course reports of National Cheng Kung
// University (2023) and in the benchmark of an implementation of TLSF: pairs for sizes from 64 bytes in steps of 64 up
// to 16 KiB. Here the sweep goes on to 64 MiB. The curve shows where an allocator changes its method: steps at the ends
// of size classes, and a cliff where the fast path ends or the kernel is asked each time.
//
// A pair alone is the best case, the object is always the one just freed. With --live N, the object freed is the one
// made N pairs ago.
//
//   --size BYTES (1 … 1 GiB; default 64)  --live OBJECTS (1 … 65536; default 1)
// extra: ns_per_pair.
#include "workload.h"

using namespace workload;

namespace {

// Pairs at --scale 1: fewer for sizes where a kernel call or a page fault is a part of each.
double pairs_for(std::uint64_t size) {
  if (size <= 32768) return 2e7;
  if (size <= (1U << 20)) return 2e6;
  return 1e5;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto size = arguments.integer("size", 64, 1, std::uint64_t{1} << 30);
  const auto live = arguments.integer("live", 1, 1, 65536);
  arguments.check();

  Report report("size-sweep", common.threads);
  const std::uint64_t rounds = common.scaled(pairs_for(size) / static_cast<double>(live * common.threads));
  const auto body = [&](unsigned) {
    auto** ring = static_cast<void**>(std::calloc(live, sizeof(void*)));
    if (ring == nullptr) fail("calloc returned NULL");
    for (std::uint64_t round = 0; round < rounds; round++) {
      for (std::uint64_t i = 0; i < live; i++) {
        drop(ring[i], size);
        ring[i] = make(size);
      }
    }
    for (std::uint64_t i = 0; i < live; i++) drop(ring[i], size);
    std::free(ring);
  };
  report.start();
  const double begin = now_s();
  run_threads(common.threads, body);
  const double spent = now_s() - begin;
  report.stop();
  report.operations = rounds * live * common.threads;
  report.peak_live_bytes = live * size * common.threads;
  report.extra("ns_per_pair", spent * 1e9 / static_cast<double>(rounds * live));
  return report.print();
}
