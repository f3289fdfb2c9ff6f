// SPDX-License-Identifier: MIT
//
// os/thread.h on Linux.
#include "os/thread.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/calls.h"
#include "os/errno_guard.h"

// Weak: glibc 2.35 brought it.
extern "C" {
__attribute__((weak)) int _dl_find_object(void* address, dl_find_object* result) noexcept;
}

namespace brimful::os {
namespace {

// With room for the thread-local storage of the program's libraries, which lies on it. Only what is used is resident.
constexpr std::size_t kStackBytes = std::size_t{256} << 10;

// All but 32 and 33, by which the C library speaks to its threads: setuid() would wait for this one for ever.
constexpr std::uint64_t kSignals = ~(std::uint64_t{3} << 31);

constexpr std::uint64_t bit_of(int signal) { return std::uint64_t{1} << (signal - 1); }
constexpr std::uint64_t kFaults =
    bit_of(SIGSEGV) | bit_of(SIGBUS) | bit_of(SIGFPE) | bit_of(SIGILL) | bit_of(SIGTRAP) | bit_of(SIGSYS);

// `how`: SIG_SETMASK or SIG_BLOCK.
void change_signals(int how, const std::uint64_t* mask, std::uint64_t* old) {
  syscall(SYS_rt_sigprocmask, how, mask, old, sizeof *mask);
}

// Room for 4096 CPUs.
constexpr std::size_t kMaskWords = 64;

struct Start {
  void* (*body)(void*);
  const char* name;
};
constinit Start start = {};

// A thread inherits what its creator was given for its own work: a CPU set apart, or real-time priority.
void shed_privileges() {
  const long policy = syscall(SYS_sched_getscheduler, 0);
  if (policy == SCHED_FIFO || policy == SCHED_RR) {
    const sched_param parameter = {};
    syscall(SYS_sched_setscheduler, 0, SCHED_OTHER, &parameter);
  }
  std::uint64_t cpus[kMaskWords];
  const long bytes = syscall(SYS_sched_getaffinity, process_id(), sizeof cpus, cpus);
  if (bytes > 0) syscall(SYS_sched_setaffinity, 0, bytes, cpus);
}

void* run(void*) {
  syscall(SYS_prctl, PR_SET_NAME, start.name, 0, 0, 0);
  shed_privileges();
  return start.body(nullptr);
}

// The object that is mapped around the address. Takes no lock. nullptr: none, or nobody knows.
const void* object_around(const void* address) {
  dl_find_object object = {};
  return _dl_find_object(const_cast<void*>(address), &object) == 0 ? object.dlfo_map_start : nullptr;
}

}  // namespace

int start_thread(void* (*body)(void*), const char* name) {
  const ErrnoGuard guard;
  start = {body, name};
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error != 0) return error;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  std::uint64_t old = 0;
  change_signals(SIG_SETMASK, &kSignals, &old);  // the new thread inherits the mask
  pthread_t thread = {};
  error = pthread_create(&thread, &attributes, run, nullptr);
  change_signals(SIG_SETMASK, &old, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

SignalsHeldBack::SignalsHeldBack() : mask_before_(0) {
  const ErrnoGuard guard;
  constexpr std::uint64_t kHeldBack = kSignals & ~kFaults;
  change_signals(SIG_BLOCK, &kHeldBack, &mask_before_);
}

SignalsHeldBack::~SignalsHeldBack() {
  const ErrnoGuard guard;
  change_signals(SIG_SETMASK, &mask_before_, nullptr);
}

void sleep_ms(std::uint64_t ms) {
  const ErrnoGuard guard;
  const timespec wait = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
  syscall(SYS_nanosleep, &wait, nullptr);
}

void* map_wiped_on_fork() {
  const ErrnoGuard guard;
  constexpr int kWipeOnFork = 18;  // MADV_WIPEONFORK
  void* page = calls.map(0, page_bytes(), Access::kReadWrite);
  if (page == nullptr) return nullptr;
  if (syscall(SYS_madvise, page, page_bytes(), kWipeOnFork) == 0) return page;
  calls.unmap(reinterpret_cast<std::uintptr_t>(page), page_bytes());
  return nullptr;
}

std::uint32_t thread_count() {
  const ErrnoGuard guard;
  struct stat folder = {};
  if (syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/task", &folder, 0) != 0 || folder.st_nlink < 3) return 0;
  return static_cast<std::uint32_t>(folder.st_nlink - 2);  // `.` and `..`
}

Code code_of(const void* address) {
  if (&_dl_find_object == nullptr) return Code::kUnknown;
  const void* libc = object_around(reinterpret_cast<const void*>(&gnu_get_libc_version));
  const void* linker = object_around(reinterpret_cast<const void*>(getauxval(AT_BASE)));
  if (libc == nullptr || linker == nullptr) return Code::kUnknown;  // a static program has no dynamic linker
  const void* caller = object_around(address);
  const void* own = object_around(reinterpret_cast<const void*>(&thread_count));
  // Of what we call ourselves it is not known who called us. Linked into the program, we can't be told apart from it; then
  // only the C library's calloc() comes by here unseen, which it never calls with such a lock held.
  const bool is_own = caller == own && own != object_around(reinterpret_cast<const void*>(getauxval(AT_ENTRY)));
  return caller == libc || caller == linker || is_own ? Code::kLibc : Code::kOther;
}

std::int64_t process_id() { return syscall(SYS_getpid); }

}  // namespace brimful::os
