// SPDX-License-Identifier: MIT
//
// The heap of a process or a core, as it was at one look: windows, slabs, blocks, free granules, metadata.
//
//   arena chunks, granule table, hugepage records   read as wholes: 10 GiB of heap are a few hundred calls
//   the same once more, where it is not held        what differs by then is marked as moving
//
// The process runs on while it is read. A header that makes no sense (it became another slab's between two reads) is left
// out and counted as moving, and so is one whose words changed from the first look to the second. Figures are those of
// the first look, so at rest they are exact, and otherwise one knows how much of them was in motion.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heap/guarded.h"
#include "heap/layout.h"
#include "memory/anatomy.h"
#include "memory/mapping.h"

namespace brimful::observer::heap {

inline constexpr unsigned kGranuleShift = 16;
inline constexpr std::uint64_t kGranuleBytes = std::uint64_t{1} << kGranuleShift;
inline constexpr unsigned kHugepageShift = 21;
inline constexpr std::uint64_t kHugepageBytes = std::uint64_t{1} << kHugepageShift;
inline constexpr std::uint32_t kGroupObjects = 64;

// A piece of memory, copied.
struct Copy {
  std::uint64_t start = 0;
  std::vector<std::byte> bytes;
};

using memory::Range;

struct SizeClass {
  std::uint32_t bytes;
  std::uint32_t groups;
  std::uint32_t granules;
};

struct Slab {
  std::uint64_t start;
  std::uint64_t end;  // of its granules
  std::uint64_t header;
  std::uint32_t object_bytes;
  std::uint32_t groups;
  std::uint32_t owner;
  std::uint32_t last_owner;
  std::uint8_t size_class;
  bool is_moving;
  const std::byte* words;    // 1: freed by the owner; in the model's copy, as the next two
  const std::byte* offered;  // 1: malloc may take it
  const std::byte* remote;   // 1: freed by another

  [[nodiscard]] std::uint32_t count() const { return groups * kGroupObjects; }
  [[nodiscard]] std::uint64_t object(std::uint64_t index) const { return start + index * object_bytes; }
};

struct Block {
  std::uint64_t start;
  std::uint64_t usable_end;
  std::uint64_t end;   // of what it holds
  std::uint32_t heap;  // number of the program's heap that it is of; 0: none
  bool is_huge;        // a mapping of its own
  bool is_live;        // else it was freed and waits for the next request
};

struct HugepageRecord {
  std::uint32_t free;  // one bit for each of 32 granules, as all of these
  std::uint32_t dirty;
  std::uint32_t committed;
  std::uint32_t used_once;
  bool is_used;
};

struct Window {
  Range range;
  std::uint64_t first_hugepage;  // number of its record
  std::uint64_t seen_end;        // behind it nothing was ever used
};

// One where nothing moves: the process is held, or it is a core.
enum class Looks : std::uint8_t { kOne, kTwo };

class Model {
 public:
  // Reads it all, once for each model. false: error() says why in one line.
  bool read(memory::Anatomy& anatomy, const memory::Read& read, Looks looks);

  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const std::vector<SizeClass>& classes() const { return classes_; }
  [[nodiscard]] const std::vector<Window>& windows() const { return windows_; }
  [[nodiscard]] const std::vector<Slab>& slabs() const { return slabs_; }     // by address
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }  // by address
  [[nodiscard]] const GuardedObjects& guarded() const { return guarded_; }
  [[nodiscard]] const std::vector<Range>& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<Range>& metadata_in_windows() const { return metadata_in_windows_; }
  [[nodiscard]] const HugepageRecord* hugepage(std::uint64_t address) const;
  // Granules that changed hands between the two looks.
  [[nodiscard]] std::uint64_t moving_granules() const { return moving_granules_; }

  // Whom addresses in magazines are with: free, but their slabs don't know yet. Sorted by address.
  struct Kept {
    std::uint64_t address;
    std::uint32_t context;
  };
  [[nodiscard]] const std::vector<Kept>& kept() const { return kept_; }

  [[nodiscard]] const Slab* slab_at(std::uint64_t address) const;
  [[nodiscard]] const Block* block_at(std::uint64_t address) const;
  // A word for each group: the objects that live, neither in its words nor in a magazine.
  void live_words(const Slab& slab, std::vector<std::uint64_t>& live) const;
  [[nodiscard]] const Layout& layout() const { return *layout_; }

  static std::uint64_t word(const std::byte* words, std::uint32_t group);

 private:
  struct Raw {
    std::vector<std::uint64_t> table;
    std::vector<Copy> chunks;  // by address
    std::vector<std::byte> records;
  };

  bool read_classes();
  bool read_windows();
  bool read_raw(Raw& into);
  bool read_chunks(Raw& into);
  bool read_live_map();
  // error() says that the heap is damaged; false.
  bool make_no_sense();
  // What headers say of slabs and blocks that can't be so: they are damaged, or were being written.
  void leave_out_nonsense();
  void find_slabs(std::uint64_t n);
  bool add_slab(const std::byte* header, std::uint64_t address);
  bool read_magazines();
  bool read_huge();
  void compare(const Raw& second);
  bool word_at(std::uint64_t address, std::uint64_t& value) const;
  static const std::byte* piece(const Raw& raw, std::uint64_t address, std::size_t bytes);

  const memory::Read* read_ = nullptr;
  std::optional<Layout> layout_;
  std::string error_;
  Raw raw_;
  std::uint64_t span_ = 0;
  std::vector<SizeClass> classes_;
  std::vector<Window> windows_;
  std::vector<Slab> slabs_;
  std::vector<Block> blocks_;
  GuardedObjects guarded_;
  std::vector<Range> metadata_;
  std::vector<Range> metadata_in_windows_;
  std::vector<Kept> kept_;
  std::uint64_t moving_granules_ = 0;
};

}  // namespace brimful::observer::heap
