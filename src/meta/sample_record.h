// SPDX-License-Identifier: MIT
//
// What a sampled block leaves behind for readers: the control block, and one record for each block. Only plain types and
// fixed offsets, because those who read it are other programs (a live process's memory, a core file, the raw file of
// prof_file); docs/design/0031 describes the same in words.
//
//   SampleControl ── records ──▶ slot 0 │ slot 1 │ …      32 KiB of address space each; touched as far as needed
//                                slot: SampleRecord │ copy of the allocation's stack │ copy of the free's stack
//
// A reader copies a record, and takes it only if `sequence` is even and the same before and after. A slot is used again
// for another block once it has been free for long enough; then `number` is another one.
//
// A record stands for more blocks than one: of blocks of u usable bytes one in 1 / (1 - exp(-u / interval_bytes)) is
// sampled, so that is how many it counts for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace brimful::meta {

inline constexpr std::uint64_t kSampleMagic = 0x31504d53464d5242;  // "BRMFSMP1"
// An interval until the program's first request has read the options: so long that nothing is drawn.
inline constexpr std::uint64_t kIntervalUnread = UINT64_MAX;
inline constexpr std::size_t kSampleSlotBytes = 32 << 10;
inline constexpr std::size_t kSampleFrames = 64;
inline constexpr std::size_t kSampleStackBytes = 14 << 10;

enum class SampleState : std::uint32_t { kEmpty, kLive, kFreed };

// Bits of SampleRecord::flags.
inline constexpr std::uint32_t kSampleLarge = 1U << 0;           // a block of its own, above 32 KiB
inline constexpr std::uint32_t kSampleAllocTruncated = 1U << 1;  // the copy ends before the stack does
inline constexpr std::uint32_t kSampleFreeTruncated = 1U << 2;
inline constexpr std::uint32_t kSampleFreeInHandler = 1U << 3;  // by a signal handler inside malloc or free
inline constexpr std::uint32_t kSampleResized = 1U << 4;        // ended or begun by a realloc() that stayed in place

// Registers at the place of capture: inside the library, whose unwind tables lead out to the caller.
enum SampleRegister : std::uint8_t {
  kSampleIp,
  kSampleSp,
  kSampleBp,
  kSampleBx,
  kSampleR12,
  kSampleR13,
  kSampleR14,
  kSampleR15,
  kSampleRegisters,
};

struct SampleStack {
  // On x86-64; elsewhere ip and sp, and bp is the frame pointer.
  std::uint64_t registers[kSampleRegisters];
  std::uint32_t tid;
  std::uint32_t frames;        // return addresses below, got by frame pointers that lead upwards inside the copy
  std::uint32_t stack_bytes;   // that were copied, from registers[kSampleSp] on
  std::uint32_t stack_offset;  // where in the slot
  std::uint64_t addresses[kSampleFrames];
};

struct SampleRecord {
  std::atomic<std::uint32_t> sequence;  // odd while somebody writes
  std::atomic<std::uint32_t> state;     // SampleState
  std::uint64_t number;                 // 1, 2, … in the order of sampling
  std::uint64_t address;
  std::uint64_t requested_bytes;
  std::uint64_t usable_bytes;
  std::uint64_t interval_bytes;  // in force when it was sampled
  std::uint64_t allocated_ns;    // CLOCK_MONOTONIC
  std::uint64_t freed_ns;        // 0: live
  std::uint32_t flags;
  std::uint32_t next;  // the library's own: links of its lists, slot number + 1
  SampleStack allocation;
  SampleStack release;  // valid in state kFreed
};

struct SampleControl {
  std::uint64_t magic;  // kSampleMagic, once records may be read
  std::uint32_t version;
  std::uint32_t record_bytes;  // sizeof(SampleRecord)
  // Average bytes from one sample to the next; 0: off. A tool may write it, with process_vm_writev(2): each context
  // notices in its next slow paths.
  std::atomic<std::uint64_t> interval_bytes{kIntervalUnread};
  std::atomic<std::uint64_t> generation;  // changes of the interval that the library has seen
  std::uint64_t records;                  // address of slot 0; 0: nothing was ever sampled
  std::uint64_t slot_bytes;
  std::uint64_t slots;                // reserved
  std::atomic<std::uint64_t> used;    // slots that were used, from the first
  std::atomic<std::uint64_t> taken;   // samples, in all
  std::atomic<std::uint64_t> freed;   // of these, freed
  std::atomic<std::uint64_t> lost;    // not recorded: no slot or no memory
  std::atomic<std::uint64_t> reused;  // records of freed blocks that others have taken the place of
  // What all samples so far stand for, and of these the freed ones: estimates without bias, whoever looks how often.
  std::atomic<std::uint64_t> allocated_bytes;  // usable
  std::atomic<std::uint64_t> allocated_1024;   // blocks, in 1024ths
  std::atomic<std::uint64_t> freed_bytes;
  std::atomic<std::uint64_t> freed_1024;
};

static_assert(sizeof(SampleRecord) + 2 * kSampleStackBytes <= kSampleSlotBytes);
static_assert(sizeof(std::atomic<std::uint64_t>) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

}  // namespace brimful::meta
