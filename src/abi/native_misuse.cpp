// SPDX-License-Identifier: MIT
//
// include/brimful/misuse.h. The hook runs inside a slow path, as far as this thread's calls know: so what it allocates comes from the
// signal handlers' reserve, and no lock that this thread may hold is taken again.
#include <atomic>

#include "brimful/misuse.h"
#include "meta/misuse.h"
#include "slots/thread.h"

namespace {

using brimful::meta::Decision;
using brimful::meta::Misuse;
using MisuseHook = brimful_misuse_answer (*)(const brimful_misuse*);

static_assert(static_cast<int>(Misuse::kDoubleFree) == BRIMFUL_MISUSE_DOUBLE_FREE &&
              static_cast<int>(Misuse::kWrongSize) == BRIMFUL_MISUSE_WRONG_SIZE &&
              static_cast<int>(Misuse::kBufferUnderflow) == BRIMFUL_MISUSE_BUFFER_UNDERFLOW &&
              static_cast<int>(Misuse::kForeignHeap) == BRIMFUL_MISUSE_FOREIGN_HEAP);

constinit std::atomic<MisuseHook> misuse_hook{nullptr};

Decision call_misuse_hook(const brimful::meta::Report& report, const char* line) {
  const MisuseHook hook =
      misuse_hook.load(std::memory_order_acquire);  // pairs with: brimful_set_misuse_hook() (its data)
  if (hook == nullptr) return Decision::kAbort;
  brimful::slots::ThreadState& thread = brimful::slots::thread_state;
  if (thread.is_in_hook) return Decision::kWarn;
  const brimful::slots::SlowScope scope;
  thread.is_in_hook = true;
  const brimful_misuse misuse = {sizeof misuse,
                                 static_cast<brimful_misuse_kind>(report.kind),
                                 report.call,
                                 reinterpret_cast<const void*>(report.address),
                                 reinterpret_cast<const void*>(report.object),
                                 report.bytes,
                                 line};
  const brimful_misuse_answer answer = hook(&misuse);
  thread.is_in_hook = false;
  return answer == BRIMFUL_MISUSE_WARN     ? Decision::kWarn
         : answer == BRIMFUL_MISUSE_IGNORE ? Decision::kIgnore
                                           : Decision::kAbort;
}

}  // namespace

extern "C" void brimful_set_misuse_hook(MisuseHook hook) {
  misuse_hook.store(hook, std::memory_order_release);  // pairs with: call_misuse_hook() (its data)
  brimful::meta::set_misuse_hook(call_misuse_hook);
}
