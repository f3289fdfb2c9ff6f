// SPDX-License-Identifier: MIT
//
// A thread of the library's own. Everything about it that could disturb the program is decided here: it takes no signal,
// nobody joins it, and its stack is small.
#pragma once

#include <cstddef>
#include <cstdint>

// Weak: glibc 2.32 brought it.
extern "C" {
extern __attribute__((weak)) char __libc_single_threaded;
}

namespace brimful::os {

// Starts a thread that runs `body`, with the name `name` (15 letters at most). 0, or the error. pthread_create() may
// allocate: the caller holds no lock and is in no slow path, and whoever called us holds no lock of the C library: see code_of(). It runs where
// the process's first thread may, and as no real-time thread, whatever the caller is. errno is kept.
int start_thread(void* (*body)(void*), const char* name);

// Keeps the signals of others away from this thread for its life: no handler runs but for a fault of the code inside
// (SIGSEGV, SIGTRAP, a filter's SIGSYS …, which would end the process if they were held back) and for the C library's own.
// Two system calls. errno is kept.
class SignalsHeldBack {
 public:
  SignalsHeldBack();
  ~SignalsHeldBack();
  SignalsHeldBack(const SignalsHeldBack&) = delete;
  SignalsHeldBack& operator=(const SignalsHeldBack&) = delete;

 private:
  std::uint64_t mask_before_;
};

// Sleeps; signals end it early. errno is kept.
void sleep_ms(std::uint64_t ms);

// A page of memory that is filled with zeros in the child of any fork (Linux 4.14), also of those that call no handlers,
// but not in that of vfork(). nullptr: there is none. errno is kept.
void* map_wiped_on_fork();

// The C library knows that there is no second thread: it says otherwise before it starts one. It often does not know any more when others have ended.
inline bool is_single_threaded() { return &__libc_single_threaded != nullptr && __libc_single_threaded != 0; }

// How many threads the process has at this moment, as the kernel says, our own ones among them; 0: it does not say (no
// /proc). One system call. errno is kept.
std::uint32_t thread_count();

// What a return address says about who called us.
enum class Code : std::uint8_t {
  kLibc,     // the C library or the dynamic linker: it may hold locks that pthread_create() takes
  kOther,    // somebody else, who holds none of those
  kUnknown,  // a static program, or glibc before 2.35, which has no way to ask without a lock
};
Code code_of(const void* address);

// The number of this process.
std::int64_t process_id();

}  // namespace brimful::os
