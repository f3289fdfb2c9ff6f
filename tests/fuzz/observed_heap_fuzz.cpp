// SPDX-License-Identifier: MIT
//
// The observer at a process that lies: the heap is this program's own, small and of all kinds of blocks, and the input says which of the
// words that are read are other ones. So all that lies behind is reached, and each number that the observer believes is wrong
// once: offsets of the table of names, sizes, pointers that go round in circles, counts, addresses outside of everything.
//
// A process whose heap is damaged is the very one that is looked at; the observer may say that it can't, and may not crash,
// hang, or eat all memory.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "brimful/brimful.h"
#include "brimful/heap.h"
#include "heap/model.h"
#include "input.h"
#include "inspect/address.h"
#include "inspect/picture.h"
#include "leaks/findings.h"
#include "memory/process.h"
#include "memory/target.h"
#include "meta/sample_record.h"
#include "slots/sampling.h"
#include "stacks/origins.h"
#include "stats/counters.h"
#include "stats/options.h"

extern "C" const char brimful_anatomy[];

namespace brimful::fuzz {
namespace {

namespace observer = brimful::observer;
using observer::memory::Mapping;

constexpr std::uint64_t kPage = 4096;

std::vector<void*> blocks;
// A part of the last of them.
constexpr std::uint64_t kUntouchedBytes = std::uint64_t{33} << 20;
std::uint64_t untouched = 0;

// Where lies may lead: into the heap, the table of names, the control block of samples.
std::uint64_t some_address(Input& input) {
  const std::uint64_t offset = input.number(2);
  switch (input.byte() % 4) {
    case 0:
      return reinterpret_cast<std::uint64_t>(brimful_anatomy) + offset % 16384;
    case 1:
      return reinterpret_cast<std::uint64_t>(&meta::sample_control) + offset % 256;
    default:
      return reinterpret_cast<std::uint64_t>(blocks[input.below(blocks.size())]) + offset - 32768;
  }
}

struct Lie {
  std::uint64_t read;    // number of the read
  std::uint64_t offset;  // in it, modulo its length
  std::uint64_t value;
  unsigned bytes;
};

class LyingTarget : public observer::memory::Target {
 public:
  explicit LyingTarget(Input& input) {
    std::uint64_t read = 0;
    for (std::size_t left = input.below(12); left > 0; --left) {
      read += input.below(256) < 200 ? input.below(24) : input.number(2) % 4096;
      Lie lie = {read, input.number(2), 0, 1U << input.below(4)};
      switch (input.byte() % 4) {
        case 0:
          lie.value = input.number(8);
          break;
        case 1:
          lie.value = input.number(1);
          break;
        case 2:
          lie.value = std::uint64_t{1} << input.below(64);
          break;
        default:
          lie.value = some_address(input);
      }
      lies_.push_back(lie);
    }
  }

  bool open() {
    mappings_ = known_mappings();
    return anatomy_.find(mappings_, reader()) || fail(anatomy_.error());
  }

  bool read(std::uint64_t address, void* into, std::size_t bytes) override {
    if (address - untouched < kUntouchedBytes) return false;  // which a core does not hold
    const std::uint64_t number = reads_++;
    const iovec to = {into, bytes};
    const iovec from = {reinterpret_cast<void*>(address), bytes};
    if (bytes != 0 && process_vm_readv(getpid(), &to, 1, &from, 1, 0) != static_cast<ssize_t>(bytes)) return false;
    for (; next_ < lies_.size() && lies_[next_].read <= number; ++next_) {
      const Lie& lie = lies_[next_];
      if (bytes < lie.bytes) continue;
      std::memcpy(static_cast<char*>(into) + lie.offset % (bytes - lie.bytes + 1) / lie.bytes * lie.bytes, &lie.value,
                  lie.bytes);
    }
    return true;
  }
  bool read_held(std::uint64_t address, void* into, std::size_t bytes) override { return read(address, into, bytes); }
  bool mappings(std::vector<Mapping>& into) override {
    into = mappings_;
    return true;
  }
  std::string maps() override { return ""; }
  [[nodiscard]] std::string root() const override { return "/"; }
  std::vector<std::uint64_t> kernel_words() override { return {}; }
  std::vector<observer::memory::ThreadState> threads() override { return {}; }
  [[nodiscard]] pid_t pid() const override { return 0; }
  [[nodiscard]] std::string program() const override { return "liar"; }
  [[nodiscard]] std::string name() const override { return "liar"; }

 private:
  // The table of names, and the blocks' addresses as the one root.
  static std::vector<Mapping> find_mappings() {
    const auto page = [](const void* at) { return reinterpret_cast<std::uint64_t>(at) / kPage * kPage; };
    Mapping table;
    table.start = page(brimful_anatomy);
    table.end = table.start + 4 * kPage;
    table.is_readable = true;
    table.path = "/libbrimful.so";
    Mapping roots;
    roots.start = page(blocks.data());
    roots.end = roots.start + kPage;
    roots.is_readable = roots.is_writable = true;
    std::vector<Mapping> found = {table, roots};
    // Where the heap is. Not all of this process: a sanitizer's own memory is terabytes.
    for (Mapping& mapping : observer::memory::mappings_of(getpid())) {
      const auto holds = [&](const void* block) {
        const auto address = reinterpret_cast<std::uint64_t>(block);
        return mapping.start <= address && address < mapping.end;
      };
      if (std::any_of(blocks.begin(), blocks.end(), holds)) found.push_back(std::move(mapping));
    }
    std::sort(found.begin(), found.end(), [](const Mapping& a, const Mapping& b) { return a.start < b.start; });
    return found;
  }
  static const std::vector<Mapping>& known_mappings() {
    static const std::vector<Mapping> known = find_mappings();
    return known;
  }

  std::vector<Mapping> mappings_;
  std::vector<Lie> lies_;
  std::size_t next_ = 0;
  std::uint64_t reads_ = 0;
};

void inspect(LyingTarget& target, Input& input) {
  observer::heap::Model model;
  const observer::heap::Looks looks = input.flag() ? observer::heap::Looks::kOne : observer::heap::Looks::kTwo;
  if (!model.read(target.anatomy(), target.reader(), looks)) return;
  std::vector<Mapping> mappings;
  target.mappings(mappings);
  if (input.flag()) {
    observer::inspect::picture(model, 0, {}).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  } else {
    observer::inspect::describe(model, mappings, target.reader(), some_address(input));
  }
}

void find_leaks(LyingTarget& target) {
  observer::leaks::Report report;
  std::string error;
  const observer::leaks::Suppressions none;
  if (!observer::leaks::find_leaks(target, {}, none, report, &error)) return;
  observer::leaks::text_of(report, {});
  observer::leaks::json_of(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void name_samples(LyingTarget& target, Input& input) {
  observer::stacks::Origins origins;
  origins.read(target);
  static_cast<void>(origins.of(some_address(input)));
  static_cast<void>(origins.allocation(input.number(1)));
  static_cast<void>(origins.release(input.number(1)));
}

void count(LyingTarget& target) {
  const observer::stats::Reader reader(target.anatomy(), target.reader());
  nlohmann::json into = nlohmann::json::object();
  observer::stats::Counters counters;
  observer::stats::Options options;
  counters.read_names(reader);
  options.read_table(reader);
  counters.look(reader, into);
  into["options"] = options.values(reader);
  into["options_set"] = options.changed(reader);
  into.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace
}  // namespace brimful::fuzz

// A heap with everything in it.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  using brimful::fuzz::blocks;
  setenv("BRIMFUL_CONF", "prof:4096,guards:100,background_thread:0,reserve:256M", 1);
  brimful_heap* const heap = brimful_heap_create(0);
  for (std::size_t n = 0; n < 400; ++n) {
    blocks.push_back(n % 7 == 0 ? brimful_heap_malloc(heap, 8 + n) : brimful_malloc(n % 5 == 0 ? 16 + n * 40 : 8 + n));
  }
  for (std::size_t n = 0; n < 4; ++n) blocks.push_back(brimful_malloc((n + 1) * 100000));
  blocks.push_back(brimful_malloc(brimful::fuzz::kUntouchedBytes + 65536));  // with a mapping of its own
  brimful::fuzz::untouched = reinterpret_cast<std::uint64_t>(blocks.back()) + 65536;
  for (std::size_t n = 0; n < blocks.size(); n += 3) brimful_free(blocks[n]);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using brimful::fuzz::Input;
  Input input(data, size);
  const std::uint8_t which = input.byte();
  brimful::fuzz::LyingTarget target(input);
  if (!target.open()) return 0;
  switch (which % 5) {
    case 0:
      brimful::fuzz::find_leaks(target);
      break;
    case 1:
      brimful::fuzz::name_samples(target, input);
      break;
    case 2:
      brimful::fuzz::count(target);
      break;
    default:
      brimful::fuzz::inspect(target, input);
  }
  return 0;
}
