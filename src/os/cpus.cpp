// SPDX-License-Identifier: MIT
//
// os/cpus.h on Linux.
#include "os/cpus.h"

#include <linux/rseq.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>

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
constexpr std::size_t kMmCidOffset = 24;
constexpr std::uint32_t kSignature = 0x53053053;
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
  if (kernel_writes_mm_cid()) area.mm_cid = reinterpret_cast<std::uint32_t*>(base + kMmCidOffset);
  return area;
}

bool libc_registers() { return &__rseq_size != nullptr && __rseq_size != 0; }

}  // namespace

std::uint32_t possible_cpus() {
  char text[256];
  if (read_small_file("/sys/devices/system/cpu/possible", text, sizeof text) <= 0) return 0;
  std::uint32_t last = 0;  // the list is ordered ("0-3,8-11"): its last number is the greatest
  std::uint32_t number = 0;
  for (const char* c = text; *c != '\0'; ++c) {
    if (*c >= '0' && *c <= '9') {
      number = number * 10 + static_cast<std::uint32_t>(*c - '0');
      last = number;
    } else {
      number = 0;
    }
  }
  return last + 1;
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
    if (syscall(SYS_rseq, &own_area, sizeof own_area, 0, kSignature) != 0) return RseqArea();
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
