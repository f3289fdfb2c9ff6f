// SPDX-License-Identifier: MIT
//
// CPU ids, restartable sequences and expedited barriers of this kernel.
//
// Sources: rseq(2) and include/uapi/linux/rseq.h of Linux 6.3 (field mm_cid), glibc manual "Restartable Sequences",
// membarrier(2). The kernel owns every field of struct rseq but rseq_cs; brimful writes rseq_cs alone.
#pragma once

#include <cstdint>

namespace brimful::os {

// One more than the greatest CPU id this kernel can ever show, online or not, as /sys says; 0 when it does not say. In a
// container /sys may be missing, or show another machine's list. One file is read.
std::uint32_t possible_cpus();

// One more than the greatest id of a list such as "0-3,8-11"; 0 when the text is no such list.
std::uint32_t count_cpu_ids(const char* list);

// How many CPU ids the kernel's own CPU masks have room for: no id it shows is as great, whatever /sys says. 0 when
// this can't be asked (more than 8192 CPUs, or a filter). One system call.
std::uint32_t cpu_mask_bits();

// How many CPU ids to be ready for, from possible_cpus() and cpu_mask_bits(); more than `most` if that can't be had, 0 if it
// is not known. The greater of the two, because a fast path that met an id beyond them would read a context that is not
// there. But some kernels have masks of one great size for every machine, and some lists name 8192 CPUs that never come:
// where one of them is above `most`, the other is believed.
std::uint32_t cpu_ids(std::uint32_t possible, std::uint32_t mask_bits, std::uint32_t most);

// The calling thread's registered rseq area.
struct RseqArea {
  std::uint32_t* cpu_id = nullptr;   // negative as signed: this thread is not registered
  std::uint32_t* mm_cid = nullptr;   // nullptr before Linux 6.3
  std::uint32_t* node_id = nullptr;  // as mm_cid
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
