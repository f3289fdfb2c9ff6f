// SPDX-License-Identifier: MIT
//
// Every reader of a file of /proc, /sys or a control group, but for /proc/self/maps (stack_text_fuzz.cpp): the first byte chooses the
// reader, the second how much a read gives, the rest are the files in the order in which they are opened, with a zero between two.
#include <cstring>

#include "oracle.h"
#include "os/calls.h"
#include "os/cgroup.h"
#include "os/clock.h"
#include "os/cpus.h"
#include "os/environment.h"
#include "stats/coverage.h"
#include "system_calls.h"

namespace brimful::fuzz {
namespace {

constexpr std::uint32_t kWholeStall = 100 * 100;  // hundredths of a percent

void read_group() {
  os::MemoryGroup group = {};
  os::find_memory_group(group, os::CgroupPlaces());
  expect(group.mount_length < sizeof group.folder && std::memchr(group.folder, '\0', sizeof group.folder) != nullptr,
         "the path of a group ends");
  const os::GroupLimits limits = os::group_limits(group);
  expect(group.mount_length != 0 || (limits.most == os::kNoLimit && limits.high == os::kNoLimit),
         "without a group there is no limit");
  os::group_refusals(group);
  expect(os::memory_stall(group) <= kWholeStall, "tasks stall for at most all of the time");
}

void read_one(std::uint8_t which, std::uint64_t address_space, Script& script) {
  switch (which % 6) {
    case 0:
      return read_group();
    case 1:
      expect(os::possible_cpus() <= 1U << 20, "there are at most a million processors");
      return;
    case 2:
      script.set_address_space(address_space);
      expect(address_space == 0 || os::address_space_left() <= address_space, "no more is left than there is");
      return;
    case 3:
      os::process_age_ms();
      return;
    case 4:
      os::linux_calls().hugepage_mode();
      return;
    default:
      stats::Coverage coverage = {};
      stats::read_coverage(coverage);
  }
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  brimful::fuzz::Input input(data, size);
  const std::uint8_t which = input.byte();
  const std::uint8_t read_bytes = input.byte();
  const std::uint64_t address_space = which % 6 == 2 ? input.number(6) : 0;
  brimful::fuzz::Script script;
  script.set_read_bytes(read_bytes == 255 ? 0 : read_bytes < 128 ? ~std::size_t{0} : read_bytes - 127U);
  while (!input.is_empty()) script.add_file(input.text_until('\0'));
  brimful::fuzz::read_one(which, address_space, script);
  return 0;
}
