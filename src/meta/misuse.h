// SPDX-License-Identifier: MIT
//
// What bad input gets. One line that names the fault, the call, the pointer and, where known, the object; with
// `report:stack`, and of objects whose history is known always, the stacks of this call, of the allocation and of the first
// free. Then the option `misuse` decides:
//
//   abort   the process ends by abort(), before the call returns
//   warn    the report is counted, the call does nothing, and the program goes on. The first reports are printed, then one a
//           second, which says how many were not
//   hook    the program's function is asked for one of these two, or for silence (include/brimful/misuse.h)
//
// So every function here RETURNS when the program shall go on, and whoever calls one must have changed nothing, or go on to
// a heap that is right. Nothing here allocates; no lock is taken, but for the one word that keeps reports apart, which is
// waited for by the clock. Any moment: also below locks, and in signal handlers.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/compiler.h"
#include "base/line.h"
#include "meta/header.h"
#include "os/stack_text.h"

namespace brimful::meta {

struct SampleStack;

// As include/brimful/misuse.h has them.
enum class Misuse : std::uint8_t {
  kDoubleFree,
  kInteriorPointer,
  kMisalignedPointer,
  kForeignPointer,
  kWrongSize,
  kUseAfterFree,
  kBufferOverflow,
  kBufferUnderflow,
  kUseAfterDestroy,
  kForeignHeap,
};
inline constexpr std::size_t kMisuseKinds = 10;
// As a report begins, and for statistics. In place: a table of pointers would be one more page that each start writes to.
extern const char kMisuseNames[kMisuseKinds][20];

// Who allocated an object, and who freed it: of samples and guarded objects. Offsets of stacks are from `record` on.
struct History {
  const void* record = nullptr;
  const SampleStack* allocation = nullptr;  // nullptr: not known
  const SampleStack* release = nullptr;     // nullptr: not freed, or not known
};

struct Report {
  Misuse kind;
  const char* call;          // the function's name; of an access what it is: "write to", "read from"
  std::uint64_t address;     // that it was given
  std::uint64_t object = 0;  // its start; 0: not known
  std::size_t bytes = 0;     // of the object, where that is known
  History history = {};
};

// "double free: free(0x…): ", to be gone on with.
Line begin_line(const Report& report);

// Says and counts it, and returns when the program shall go on.
BRIMFUL_COLD void tell(const Report& report, const Line& line);

// The same for a fault, whose stack is `now`: false, when the process shall end, which is left to the caller.
[[nodiscard]] BRIMFUL_COLD bool tell_fault(const Report& report, const Line& line, const os::StackWords& now);

// Object `index` of the slab was free already when `call` got it.
BRIMFUL_COLD void report_double_free(const char* call, const Slab& slab, std::uint64_t index,
                                     const History& history = {});

// `pointer` is not the start of a live block. `call` is the function's name. `owner` is the slab or block whose memory
// holds the pointer, or nullptr; `was_used`: the pointer lies in the heap, where memory was handed out at some time.
BRIMFUL_COLD void report_bad_pointer(const char* call, std::uint64_t pointer, bool was_used, const Header* owner,
                                     const History& history = {});

// free_sized() or sized delete with a size of another class.
BRIMFUL_COLD void report_wrong_size(std::uint64_t pointer, std::size_t claimed, std::size_t usable);

// The program wrote behind the end of the object of `usable` bytes, `offset` bytes from there on, before free() got it.
BRIMFUL_COLD void report_overflow(std::uint64_t object, std::size_t usable, std::size_t offset);

// The program wrote to byte `offset` of the object while it was free, as was seen when malloc was to hand it out again.
BRIMFUL_COLD void report_written_when_free(std::uint64_t object, std::size_t usable, std::size_t offset);

// `pointer` is a block of a heap that was destroyed.
BRIMFUL_COLD void report_destroyed(const char* call, std::uint64_t pointer);

// `handle` is no heap: of one that was destroyed, or never of any.
BRIMFUL_COLD void report_bad_heap(const char* call, std::uint64_t handle, bool was_heap);

// What the program's hook says. Without one: kAbort.
enum class Decision : std::uint8_t { kAbort, kWarn, kIgnore };
using MisuseHook = Decision (*)(const Report& report, const char* line);
void set_misuse_hook(MisuseHook hook);

// Reports of each kind so far, those that were not printed included.
extern std::atomic<std::uint64_t> misuse_counts[kMisuseKinds];
inline std::uint64_t misuse_count(Misuse kind) {
  return misuse_counts[static_cast<std::size_t>(kind)].load(std::memory_order_relaxed);  // relaxed: a count for readers
}
std::uint64_t misuse_count();

}  // namespace brimful::meta
