/* SPDX-License-Identifier: MIT
 *
 * Reports of misuse: what a program hears of its own faults with memory, and what follows. The option `misuse` chooses:
 *
 *   misuse:abort   one line on stderr and abort(), before the faulty call returns. The default
 *   misuse:warn    the report is printed and counted, and the program goes on
 *   misuse:hook    a function of the program is asked for one of these two, or for silence
 *
 * A program may choose for itself: int64_t mode = 2; brimful_set("brimful.misuse", &mode, sizeof mode) (0: abort, 1: warn,
 * 2: hook). docs/guide/misuse.md says what the faults are, and what the program gets back from a call that was wrong:
 * free() has done nothing, realloc() returns NULL with errno EINVAL, malloc_usable_size() 0. The heap stays right.
 *
 * Part of libbrimful.so and libbrimful.a.
 */
#ifndef BRIMFUL_MISUSE_H
#define BRIMFUL_MISUSE_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#pragma GCC visibility push(default)

/* Later versions may add kinds. */
enum brimful_misuse_kind {
  BRIMFUL_MISUSE_DOUBLE_FREE,        /* an object that is free, or memory that was given back */
  BRIMFUL_MISUSE_INTERIOR_POINTER,   /* not the start of the object */
  BRIMFUL_MISUSE_MISALIGNED_POINTER, /* not a multiple of 16 */
  BRIMFUL_MISUSE_FOREIGN_POINTER,    /* not from this heap */
  BRIMFUL_MISUSE_WRONG_SIZE,         /* free_sized() or sized delete with a size of another class */
  BRIMFUL_MISUSE_USE_AFTER_FREE,
  BRIMFUL_MISUSE_BUFFER_OVERFLOW,
  BRIMFUL_MISUSE_BUFFER_UNDERFLOW,
  BRIMFUL_MISUSE_USE_AFTER_DESTROY, /* a heap of brimful/heap.h that was destroyed, or a block of one */
  BRIMFUL_MISUSE_FOREIGN_HEAP,      /* a handle that never was a heap's */
};

/* One report. Valid until the hook returns. Later versions may add members at the end. */
struct brimful_misuse {
  size_t size; /* of this structure, in the library's version */
  enum brimful_misuse_kind kind;
  const char* call;    /* the function's name, "free"; of an access "write to", "read from" or "access to" */
  const void* pointer; /* what the call was given, or what was accessed */
  const void* object;  /* start of the object that is meant; NULL: not known */
  size_t object_bytes; /* its size, or its size class; 0: not known */
  const char* message; /* the line that would be printed, without "brimful: " and without end of line */
};

enum brimful_misuse_answer {
  BRIMFUL_MISUSE_ABORT,  /* print the report, and abort() */
  BRIMFUL_MISUSE_WARN,   /* print it as misuse:warn does, and go on */
  BRIMFUL_MISUSE_IGNORE, /* go on without a word; it is counted all the same */
};

/* With misuse:hook, `hook` is called for each report, by the thread whose call is wrong, before anything is printed; of a fault
 * that is found late by the thread that finds it; and of an access that is stopped by a page without access in the handler
 * of SIGSEGV. NULL removes it; without a hook, misuse:hook is misuse:abort. Any other answer than those above is
 * BRIMFUL_MISUSE_ABORT.
 *
 * The hook is in the place of a signal handler that interrupted the allocator. It may call what is async-signal-safe, and also
 * malloc(), free() and their like, which are served from a reserve of some KiB. It must not wait for a lock that a thread may hold while it
 * allocates: the allocator's own locks may be held. It must return: no longjmp(), no C++ exception, no pthread_exit(). A
 * fault of its own is not given to it: that is a warning. Several threads may be in it at once. errno is kept for it.
 *
 * Thread-safe, any moment. Cost: a store. */
void brimful_set_misuse_hook(enum brimful_misuse_answer (*hook)(const struct brimful_misuse* report));

#pragma GCC visibility pop

#if defined(__cplusplus)
}
#endif

#endif
