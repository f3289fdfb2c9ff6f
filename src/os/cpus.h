// SPDX-License-Identifier: MIT
//
// CPU ids, restartable sequences and expedited barriers of this kernel.
//
// Sources: rseq(2) and include/uapi/linux/rseq.h of Linux 6.3 (field mm_cid), glibc manual "Restartable Sequences",
// membarrier(2). The kernel owns every field of struct rseq but rseq_cs; brimful writes rseq_cs alone.
#pragma once

#include <cstdint>

namespace brimful::os {

// One more than the greatest CPU id this kernel can ever show, online or not; 0 when it can't be known.
std::uint32_t possible_cpus();

// The calling thread's registered rseq area.
struct RseqArea {
  std::uint32_t* cpu_id = nullptr;  // negative as signed: this thread is not registered
  std::uint32_t* mm_cid = nullptr;  // nullptr before Linux 6.3
  std::uint64_t* rseq_cs = nullptr;
};

enum class RseqOwner { kNone, kLibc, kBrimful };

// How this process gets at rseq; constant after the first call.
RseqOwner rseq_owner();

// The calling thread's area; all nullptr when the thread is not registered (no rseq, seccomp, a vfork child of an old
// kernel). Registers our own area where libc has not registered one. One system call at most.
RseqArea rseq_area();

// Registers the process for expedited rseq barriers; needed again in the child of a fork. false before Linux 5.10.
bool register_rseq_barrier();

// Aborts every restartable section that runs, on any CPU, in any thread of this process.
bool rseq_barrier();

}  // namespace brimful::os
