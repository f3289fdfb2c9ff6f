// SPDX-License-Identifier: MIT
//
// aligned: objects at addresses that are multiples of 16 bytes to 64 KiB, by aligned_alloc and posix_memalign in turns.
//
// Written for this bench: vector registers (16 to 64 bytes), cache lines and their pairs (64, 128), pages for direct
// input and output (4 KiB), and stacks and buffers of databases (up to 64 KiB) ask for it, and no known benchmark does.
// Many allocators serve it by asking for more and cutting, which costs memory (see resident against live bytes), or
// on a path that was never made fast. Each alignment is as likely as the next; sizes are 1 byte to 4 alignments.
//
//   --slots N (default 2048)  --alignment BYTES (0 for all, or one power of two, 16 … 65536; default 0)
#include <bit>

#include "live.h"

using namespace workload;

namespace {

constexpr unsigned kLeastBits = 4;
constexpr unsigned kMostBits = 16;

struct Slot {
  void* object;
  std::size_t bytes;
};

void* make_aligned(std::size_t alignment, std::size_t* bytes, bool posix) {
  void* object = nullptr;
  if (posix) {
    if (posix_memalign(&object, alignment, *bytes) != 0) fail("posix_memalign failed");
  } else {
    *bytes = (*bytes + alignment - 1) & ~(alignment - 1);  // aligned_alloc wants a multiple
    object = std::aligned_alloc(alignment, *bytes);
    if (object == nullptr) fail("aligned_alloc returned NULL");
  }
  if (reinterpret_cast<std::uintptr_t>(object) % alignment != 0) fail("an object is not aligned");
  stamp(object, *bytes);
  return object;
}

void empty(Slot& slot, Live& live) {
  if (slot.object == nullptr) return;
  drop(slot.object, slot.bytes);
  live.subtract(slot.bytes);
  slot.object = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto slots = arguments.integer("slots", 2048, 1, 1U << 24);
  const auto only = arguments.integer("alignment", 0, 0, std::uint64_t{1} << kMostBits);
  arguments.check();
  if (only != 0 && (!std::has_single_bit(only) || only < std::uint64_t{1} << kLeastBits)) usage("--alignment");

  Report report("aligned", common.threads);
  const std::uint64_t steps = (common.scaled(2e6) + common.threads - 1) / common.threads;
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    Live live;
    auto* table = static_cast<Slot*>(std::calloc(slots, sizeof(Slot)));
    if (table == nullptr) fail("calloc returned NULL");
    for (std::uint64_t i = 0; i < steps; i++) {
      Slot& slot = table[random.below(slots)];
      if (slot.object != nullptr) {
        empty(slot, live);
        continue;
      }
      const std::size_t any = std::size_t{1} << random.between(kLeastBits, kMostBits);
      const std::size_t alignment = only != 0 ? only : any;
      slot.bytes = random.between(1, 4 * alignment);
      slot.object = make_aligned(alignment, &slot.bytes, i % 2 == 0);
      live.add(slot.bytes);
    }
    for (std::uint64_t i = 0; i < slots; i++) empty(table[i], live);
    std::free(table);
    return live.most;
  };
  run_timed(report, common.threads, body);
  report.operations = steps * common.threads;
  return report.print();
}
