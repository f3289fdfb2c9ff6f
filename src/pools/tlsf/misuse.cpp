// SPDX-License-Identifier: MIT
#include "pools/tlsf/misuse.h"

using namespace brimful::tlsf;

void brimful_tlsf_set_misuse(brimful_tlsf* pool, brimful_tlsf_misuse* hook) {
  pool->setup.misuse = hook;
  pool->guard = guard_of(*pool);
}
namespace brimful::tlsf {
const char* fault_of(const Pool&, const void*) { return nullptr; }
void report(Pool& pool, const char* what, const void* pointer) {
  if (pool.setup.misuse == nullptr) __builtin_trap();
  pool.setup.misuse(&pool, what, pointer);
}
}  // namespace brimful::tlsf
