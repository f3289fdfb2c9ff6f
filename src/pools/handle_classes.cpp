// SPDX-License-Identifier: MIT
//
// Handle pool: the shapes of runs, chosen by the compiler, and the proof that they waste little. In a file of their own
// because that takes it some seconds.
#include "pools/handle_classes.h"

namespace brimful::pools::handle {
namespace {

constexpr std::size_t run_bytes_limit(std::size_t slot_bytes, std::size_t page_bytes) {
  const bool fine = slot_bytes <= kFineBytes;
  const std::size_t bytes = fine ? 65536 : 131072;
  const std::size_t pages = page_bytes * (fine ? 4 : 8);
  return pages > bytes ? pages : bytes;
}

// What a run costs beside its slots' bytes, in millionths of these.
constexpr std::uint64_t waste_millionths(const RunShape& shape, std::size_t slot_bytes, std::size_t page_bytes) {
  const std::uint64_t used = std::uint64_t{shape.slots} * slot_bytes;
  return (shape.pages * page_bytes + kRunRecordBytes - used) * 1000000 / used;
}

constexpr RunShape make_shape(std::size_t slot_bytes, std::size_t page_bytes) {
  constexpr std::uint64_t kMillionthsPerPage = 1400;  // of 4096 bytes; see docs/design/0022
  RunShape best;
  std::uint64_t least_cost = ~std::uint64_t{0};
  for (std::size_t pages = 1; pages * page_bytes <= run_bytes_limit(slot_bytes, page_bytes); ++pages) {
    const std::size_t bytes = pages * page_bytes;
    const std::size_t alone = bytes / slot_bytes;
    for (const bool embedded : {false, true}) {
      const std::size_t slots = !embedded                      ? bytes / (slot_bytes + kReferenceBytes)
                                : alone <= kEmbeddedReferences ? alone
                                                               : kEmbeddedReferences;
      if (slots == 0 || slots > std::size_t{1} << slot_bits_for(page_bytes)) continue;
      const RunShape shape{static_cast<std::uint16_t>(pages), static_cast<std::uint16_t>(slots), embedded};
      const std::uint64_t cost =
          waste_millionths(shape, slot_bytes, page_bytes) + kMillionthsPerPage * (bytes / kLeastPageBytes);
      if (cost >= least_cost) continue;
      least_cost = cost;
      best = shape;
    }
  }
  return best;
}

constexpr Shapes make_shapes(std::size_t page_bytes) {
  Shapes shapes{};
  for (unsigned i = 0; i < kMostClasses; ++i) shapes[i] = make_shape(slot_bytes_of(i), page_bytes);
  return shapes;
}

constexpr Shapes kShapes4 = make_shapes(4096);
constexpr Shapes kShapes8 = make_shapes(8192);
constexpr Shapes kShapes16 = make_shapes(16384);
constexpr Shapes kShapes32 = make_shapes(32768);
constexpr Shapes kShapes64 = make_shapes(65536);

constexpr const Shapes& table_for(std::size_t page_bytes) {
  switch (page_bytes) {
    case 4096:
      return kShapes4;
    case 8192:
      return kShapes8;
    case 16384:
      return kShapes16;
    case 32768:
      return kShapes32;
    default:
      return kShapes64;
  }
}

// Whether each class of `from` … `to` bytes wastes at most `most_millionths` of its slots (rest, references, record).
constexpr bool wastes_at_most(std::size_t page_bytes, std::size_t from, std::size_t to, std::uint64_t most_millionths) {
  for (unsigned i = class_of(from); i <= class_of(to); ++i) {
    if (waste_millionths(table_for(page_bytes)[i], slot_bytes_of(i), page_bytes) > most_millionths) return false;
  }
  return true;
}
static_assert(wastes_at_most(4096, 16, 64, 275000) && wastes_at_most(4096, 65, 256, 54500));
static_assert(wastes_at_most(4096, 257, 1024, 21300) && wastes_at_most(4096, 1025, 4096, 67900));
static_assert(wastes_at_most(4096, 4097, 65536, 36400) && wastes_at_most(16384, 16, 65536, 256000));
static_assert(wastes_at_most(65536, 65, 65536, 124000));

constexpr bool shapes_hold(std::size_t page_bytes) {
  for (unsigned i = 0; i < kMostClasses; ++i) {
    const std::size_t bytes = slot_bytes_of(i);
    if (bytes % kUnitBytes != 0 || class_of(bytes) != i) return false;
    if (i > 0 && class_of(slot_bytes_of(i - 1) + 1) != i) return false;
    const RunShape& shape = table_for(page_bytes)[i];
    if (shape.slots == 0 || shape.slots > 1U << slot_bits_for(page_bytes)) return false;
  }
  return slot_bytes_of(kMostClasses - 1) == kMostObjectBytes;
}
static_assert(shapes_hold(4096) && shapes_hold(8192) && shapes_hold(16384) && shapes_hold(32768) && shapes_hold(65536));

}  // namespace

const Shapes& shapes_for(std::size_t page_bytes) { return table_for(page_bytes); }

}  // namespace brimful::pools::handle
