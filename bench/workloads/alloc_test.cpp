// SPDX-License-Identifier: MIT
//
// alloc-test: slots that are picked by an 80/20 law; a picked slot is freed if it is full, else filled with an object
// whose size follows p(size) ~ 1/size; every cache line of an object is written once and read once.
//
// Imitates alloc-test of the node-dcpp project, as its authors describe it ("Testing Memory Allocators: ptmalloc2 vs
// tcmalloc vs hoard vs jemalloc While Trying to Simulate Real-World Loads", ithare.com, 2018): neither sizes nor
// lifetimes of real programs are uniform. Small objects are the many (each power of two is as likely as the next), and
// 20 % of the slots get 80 % of the picks, again and again within these (Pareto's law), so that most objects die young
// and some live nearly for ever. And the program reads what it wrote, so the allocator pays for bad locality.
//
// The law comes from J. Gray and others, "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994: place =
// N * u^(log 0.2 / log 0.8). A table of quantiles spares the power function in the timed loop.
//
//   --size BYTES (bound of the sizes, rounded down to a power of two, 16 … 256 MiB; default 8192)
//   --slots N (for each thread, default 32768)
#include <bit>
#include <cmath>

#include "live.h"

using namespace workload;

namespace {

constexpr unsigned kQuantiles = 4096;
constexpr std::size_t kLine = 64;
constexpr unsigned kLeastBits = 3;

struct Slot {
  unsigned char* object;
  std::size_t bytes;
};

// Where the i-th of kQuantiles equally likely ranges of slots begins.
struct Pareto {
  explicit Pareto(std::uint64_t slots) {
    const double power = std::log(0.2) / std::log(0.8);
    for (unsigned i = 0; i <= kQuantiles; i++) {
      begin[i] =
          static_cast<std::uint32_t>(static_cast<double>(slots) * std::pow(static_cast<double>(i) / kQuantiles, power));
    }
  }
  std::uint32_t pick(Random& random) const {
    const std::uint32_t quantile = random.below(kQuantiles);
    const std::uint32_t least = begin[quantile];
    const std::uint32_t width = begin[quantile + 1] - least;
    return width == 0 ? least : least + random.below(width);
  }
  std::uint32_t begin[kQuantiles + 1];
};

// Each power of two below `bits` is equally likely, and within it each size: the density falls as 1/size.
std::size_t size_of(Random& random, unsigned bits) {
  const std::size_t base = std::size_t{1} << (kLeastBits + random.below(bits - kLeastBits));
  return base + random.below(base);
}

void write_lines(const Slot& slot) {
  for (std::size_t at = kLine; at + kLine <= slot.bytes; at += kLine)
    slot.object[at] = static_cast<unsigned char>(at / kLine);
}

void read_lines(const Slot& slot) {
  unsigned wrong = 0;
  for (std::size_t at = kLine; at + kLine <= slot.bytes; at += kLine)
    wrong |= slot.object[at] ^ static_cast<unsigned char>(at / kLine);
  if (wrong != 0) fail("an object was overwritten");
}

void empty(Slot& slot, Live& live) {
  if (slot.object == nullptr) return;
  read_lines(slot);
  drop(slot.object, slot.bytes);
  live.subtract(slot.bytes);
  slot.object = nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto bound = arguments.integer("size", 8192, 16, std::uint64_t{1} << 28);
  const auto slots = arguments.integer("slots", 32768, 1, 1U << 26);
  arguments.check();

  Report report("alloc-test", common.threads);
  const unsigned bits = static_cast<unsigned>(std::bit_width(bound)) - 1;
  const Pareto law(slots);
  const std::uint64_t steps = common.scaled(5e6) / common.threads;
  const auto body = [&](unsigned index) {
    Random random(common.seed * 4099 + index);
    auto* table = static_cast<Slot*>(std::calloc(slots, sizeof(Slot)));
    if (table == nullptr) fail("calloc returned NULL");
    Live live;
    live.add(slots * sizeof(Slot));
    for (std::uint64_t i = 0; i < steps; i++) {
      Slot& slot = table[law.pick(random)];
      if (slot.object != nullptr) {
        empty(slot, live);
      } else {
        slot.bytes = size_of(random, bits);
        slot.object = static_cast<unsigned char*>(make(slot.bytes));
        write_lines(slot);
        live.add(slot.bytes);
      }
    }
    for (std::uint64_t i = 0; i < slots; i++) empty(table[i], live);
    std::free(table);
    return live.most;
  };
  run_timed(report, common.threads, body);
  report.operations = steps * common.threads;
  return report.print();
}
