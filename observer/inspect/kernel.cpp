// SPDX-License-Identifier: MIT
//
// inspect/kernel.h.
#include "inspect/kernel.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>

#include "memory/resident.h"

namespace brimful::observer::inspect {
namespace {

// The heap's memory, in order and joined.
std::vector<heap::Range> ranges_of(const heap::Model& model) {
  std::vector<heap::Range> ranges = model.metadata();
  for (const heap::Window& window : model.windows()) ranges.push_back(window.range);
  for (const heap::Block& block : model.blocks()) {
    if (block.is_huge) ranges.push_back({block.start, block.end});
  }
  for (const heap::Guarded& object : model.guarded().objects) {
    ranges.push_back({object.page, object.page + model.guarded().page_bytes});
  }
  for (heap::Range& range : ranges) {
    range.start = range.start / memory::kPageBytes * memory::kPageBytes;
    range.end = (range.end + memory::kPageBytes - 1) / memory::kPageBytes * memory::kPageBytes;
  }
  std::sort(ranges.begin(), ranges.end(), [](const heap::Range& a, const heap::Range& b) { return a.start < b.start; });
  std::vector<heap::Range> joined;
  for (const heap::Range& range : ranges) {
    if (!joined.empty() && range.start <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

}  // namespace

nlohmann::json compare_with_kernel(const heap::Model& model, pid_t pid, std::uint64_t resident) {
  const std::vector<heap::Range> ranges = ranges_of(model);
  const memory::PageMap pages(pid);
  std::uint64_t whole = 0;
  std::uint64_t shared = 0;
  heap::Range mapping;
  std::uint64_t ours = 0;
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps");
  for (std::string line; std::getline(file, line);) {
    unsigned long long from = 0;
    unsigned long long to = 0;
    unsigned long long kilobytes = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &from, &to) == 2) {
      mapping = {from, to};
      ours = 0;
      for (const heap::Range& range : ranges) {
        const std::uint64_t begin = std::max(range.start, mapping.start);
        const std::uint64_t end = std::min(range.end, mapping.end);
        if (begin < end) ours += end - begin;
      }
    } else if (ours != 0 && std::sscanf(line.c_str(), "Rss: %llu kB", &kilobytes) == 1) {
      if (ours == mapping.end - mapping.start) {
        whole += kilobytes * 1024;
        continue;
      }
      for (const heap::Range& range : ranges) {
        const std::uint64_t begin = std::max(range.start, mapping.start);
        const std::uint64_t end = std::min(range.end, mapping.end);
        if (begin < end) shared += pages.look(begin, end).bytes(begin, end);
      }
    }
  }
  return {{"kernel", whole + shared},
          {"of_whole_mappings", whole},
          {"difference", static_cast<std::int64_t>(resident) - static_cast<std::int64_t>(whole + shared)}};
}

}  // namespace brimful::observer::inspect
