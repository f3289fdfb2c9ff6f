// SPDX-License-Identifier: MIT
//
// calloc: zeroed objects of all sizes replace one another; each is looked at whole, then filled with other bytes.
//
// Written for this bench; the reason is that no known benchmark looks. Memory that comes from the kernel is zero
// already, memory that was freed is not, and an allocator that tells them apart saves the clearing. One that tells them
// apart wrongly (e.g. because an emulator ignores MADV_DONTNEED) hands out old content: then this program fails.
// Five bands of sizes, from 16 bytes to 1 MiB; a band is the rarer, the larger its objects, so that each gets about the
// same number of bytes.
//
//   --live N (slots, default 2048)
#include "live.h"

using namespace workload;

namespace {

struct Band {
  std::size_t least, most;
  std::uint32_t upto;  // of 65536 picks, those below this and not below the band before
};
constexpr Band kBands[] = {
    {16, 128, 57000}, {129, 1024, 64000}, {1025, 8192, 65300}, {8193, 65536, 65505}, {65537, 1U << 20, 65536}};

struct Slot {
  unsigned char* object;
  std::size_t bytes;
};

std::size_t size_of(Random& random) {
  const std::uint32_t pick = random.below(65536);
  const Band* band = kBands;
  while (pick >= band->upto) band++;
  return random.between(band->least, band->most);
}

void expect_zero(const unsigned char* object, std::size_t bytes) {
  std::uint64_t seen = 0;
  std::size_t at = 0;
  for (; at + sizeof seen <= bytes; at += sizeof seen) {
    std::uint64_t word = 0;
    std::memcpy(&word, object + at, sizeof word);
    seen |= word;
  }
  for (; at < bytes; at++) seen |= object[at];
  if (seen != 0) fail("calloc returned memory that is not zero");
}

void fill(Slot& slot, std::size_t bytes, Live& live) {
  // Both ways of asking for it: one object of so many bytes, or so many objects of some bytes.
  const std::size_t each = bytes % 8 == 0 ? 8 : 1;
  slot.object = static_cast<unsigned char*>(std::calloc(bytes / each, each));
  if (slot.object == nullptr) fail("calloc returned NULL");
  slot.bytes = bytes;
  live.add(bytes);
  expect_zero(slot.object, bytes);
  std::memset(slot.object, 0xA5, bytes);
  stamp(slot.object, bytes);
}

void empty(Slot& slot, Live& live) {
  if (slot.object == nullptr) return;
  drop(slot.object, slot.bytes);
  live.subtract(slot.bytes);
  slot.object = nullptr;
}

// A product that does not fit into a size must fail, not wrap around.
void expect_overflow_to_fail() {
  volatile std::size_t many = SIZE_MAX / 2;
  void* object = std::calloc(many, 3);
  if (object != nullptr) fail("calloc returned an object for a product that overflows");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto slots = arguments.integer("live", 2048, 1, 1U << 24);
  arguments.check();

  Report report("calloc", common.threads);
  expect_overflow_to_fail();
  const std::uint64_t steps = (common.scaled(1e6) + common.threads - 1) / common.threads;
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    Live live;
    auto* table = static_cast<Slot*>(std::calloc(slots, sizeof(Slot)));
    if (table == nullptr) fail("calloc returned NULL");
    for (std::uint64_t i = 0; i < steps; i++) {
      Slot& slot = table[random.below(slots)];
      empty(slot, live);
      fill(slot, size_of(random), live);
    }
    for (std::uint64_t i = 0; i < slots; i++) empty(table[i], live);
    std::free(table);
    return live.most;
  };
  run_timed(report, common.threads, body);
  report.operations = steps * common.threads;
  return report.print();
}
