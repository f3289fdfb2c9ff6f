// SPDX-License-Identifier: MIT
//
// os/cpus.h on Linux.
#include "os/cpus.h"

#include <linux/rseq.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

#include "arch/layout.h"
#include "base/compiler.h"
#include "os/errno_guard.h"
#include "os/small_file.h"

// glibc >= 2.35 says where its rseq area lies, from the thread pointer; size 0 when it did not register one.
extern "C" {
__attribute__((weak)) extern const std::ptrdiff_t __rseq_offset;
__attribute__((weak)) extern const unsigned int __rseq_size;
}

namespace brimful::os {
namespace {

constexpr unsigned long kAuxRseqFeatureSize = 27;  // AT_RSEQ_FEATURE_SIZE
constexpr std::size_t kNodeIdOffset = 20;
constexpr std::size_t kMmCidOffset = 24;
constexpr int kBarrier = 1 << 7;          // MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ
constexpr int kRegisterBarrier = 1 << 8;  // MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ

// Our own area, for threads that libc did not register. Sized as the first ABI: the kernel accepts that for ever, and
// mm_cid lies inside.
struct alignas(32) OwnArea {
  char bytes[32];
};
BRIMFUL_TLS OwnArea own_area = {};
BRIMFUL_TLS bool own_area_registered = false;

char* thread_pointer() { return static_cast<char*>(__builtin_thread_pointer()); }

bool kernel_writes_mm_cid() { return getauxval(kAuxRseqFeatureSize) >= kMmCidOffset + sizeof(std::uint32_t); }

RseqArea describe(char* base) {
  RseqArea area;
  area.cpu_id = reinterpret_cast<std::uint32_t*>(base + offsetof(struct rseq, cpu_id));
  if (static_cast<std::int32_t>(*area.cpu_id) < 0) return RseqArea();
  area.rseq_cs = reinterpret_cast<std::uint64_t*>(base + offsetof(struct rseq, rseq_cs));
  if (kernel_writes_mm_cid()) {
    area.mm_cid = reinterpret_cast<std::uint32_t*>(base + kMmCidOffset);
    area.node_id = reinterpret_cast<std::uint32_t*>(base + kNodeIdOffset);  // in the kernel a release before
  }
  return area;
}

bool libc_registers() { return &__rseq_size != nullptr && __rseq_size != 0; }

}  // namespace

std::uint32_t count_cpu_ids(const char* list) {
  constexpr std::uint32_t kMost = 1U << 20;  // keeps the number from overflowing
  std::uint32_t greatest = 0;
  std::uint32_t number = 0;
  bool has_digit = false;
  for (const char* c = list;; ++c) {
    if (*c >= '0' && *c <= '9') {
      number = number * 10 + static_cast<std::uint32_t>(*c - '0');
      has_digit = true;
      if (number >= kMost) return 0;
      continue;
    }
    if (!has_digit) return 0;
    if (number > greatest) greatest = number;
    if (*c == '\0' || *c == '\n') return greatest + 1;
    if (*c != '-' && *c != ',') return 0;
    number = 0;
    has_digit = false;
  }
}

std::uint32_t possible_cpus() {
  char text[256];
  const long length = read_small_file("/sys/devices/system/cpu/possible", text, sizeof text);
  // A list that does not fit may end in the middle of a number.
  return length <= 0 || length == sizeof text - 1 ? 0 : count_cpu_ids(text);
}

std::uint32_t cpu_mask_bits() {
  const ErrnoGuard guard;
  unsigned long mask[8192 / (8 * sizeof(unsigned long))];
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof mask, mask);
  return bytes > 0 ? static_cast<std::uint32_t>(bytes) * 8 : 0;
}

std::uint32_t cpu_ids(std::uint32_t possible, std::uint32_t mask_bits, std::uint32_t most) {
  if (mask_bits == 0 || mask_bits > most) return possible;
  return possible <= most && possible > mask_bits ? possible : mask_bits;
}

RseqOwner rseq_owner() {
  static constinit int known = -1;
  if (known < 0) {
    if (libc_registers()) {
      known = static_cast<int>(RseqOwner::kLibc);
    } else {
      known = static_cast<int>(rseq_area().cpu_id != nullptr ? RseqOwner::kBrimful : RseqOwner::kNone);
    }
  }
  return static_cast<RseqOwner>(known);
}

RseqArea rseq_area() {
  const ErrnoGuard guard;
  if (libc_registers()) return describe(thread_pointer() + __rseq_offset);
  if (!own_area_registered) {
    if (syscall(SYS_rseq, &own_area, sizeof own_area, 0, BRIMFUL_RSEQ_SIGNATURE) != 0) return RseqArea();
    own_area_registered = true;
  }
  return describe(own_area.bytes);
}

bool register_rseq_barrier() {
  const ErrnoGuard guard;
  return syscall(SYS_membarrier, kRegisterBarrier, 0, 0) == 0;
}

bool rseq_barrier() {
  const ErrnoGuard guard;
  return syscall(SYS_membarrier, kBarrier, 0, 0) == 0;
}

}  // namespace brimful::os
