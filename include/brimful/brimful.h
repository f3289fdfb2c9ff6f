/* SPDX-License-Identifier: MIT
 *
 * brimful: a general-purpose memory allocator for Linux. Programs need none of this: libbrimful.so replaces malloc
 * and its family by being preloaded or linked. These names are for those who want brimful beside another malloc.
 *
 * Every function is thread-safe. Blocks may be freed by any thread. Errors: NULL and errno ENOMEM unless said
 * otherwise. A pointer that is not a live block's (freed twice, interior, foreign) ends the process with one line on
 * stderr and abort(), or what the option misuse says (brimful/misuse.h). Cost: O(1) up to 32 KiB (20 instructions for malloc and 30 for free on a hit), else
 * O(log free runs) plus the system calls for memory that was never touched.
 */
#ifndef BRIMFUL_BRIMFUL_H
#define BRIMFUL_BRIMFUL_H

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

#pragma GCC visibility push(default)

/* At least `bytes` bytes, aligned to 16. 0 bytes give a block of their own. */
void* brimful_malloc(size_t bytes) __attribute__((malloc, alloc_size(1)));

/* Gives a block back. NULL: nothing happens. errno is kept. */
void brimful_free(void* pointer);

/* count * bytes zeroed bytes; an overflow of the product is ENOMEM. */
void* brimful_calloc(size_t count, size_t bytes) __attribute__((malloc, alloc_size(1, 2)));

/* Resizes a block, in place where possible. NULL pointer: malloc. 0 bytes: frees, returns NULL (as glibc). On failure
 * the block is unchanged. */
void* brimful_realloc(void* pointer, size_t bytes) __attribute__((alloc_size(2)));
void* brimful_reallocarray(void* pointer, size_t count, size_t bytes) __attribute__((alloc_size(2, 3)));

/* `alignment`: a power of two (else EINVAL), of any size; `bytes`: any. */
void* brimful_aligned_alloc(size_t alignment, size_t bytes) __attribute__((malloc, alloc_size(2)));

/* As aligned_alloc; an alignment that is no power of two is rounded up to one. */
void* brimful_memalign(size_t alignment, size_t bytes) __attribute__((malloc, alloc_size(2)));

/* Returns 0, EINVAL (alignment is no power of two or below sizeof(void*)) or ENOMEM. errno and, on failure, *result
 * are kept. */
int brimful_posix_memalign(void** result, size_t alignment, size_t bytes);

/* Bytes that may be used; constant for the block's life. NULL: 0. */
size_t brimful_usable_size(const void* pointer);

/* C23. A size of another size class is reported as misuse. */
void brimful_free_sized(void* pointer, size_t bytes);
void brimful_free_aligned_sized(void* pointer, size_t alignment, size_t bytes);

/* "0.1.0" */
const char* brimful_version(void);

/* Statistics. docs/guide/statistics.md explains the numbers. */

/* Every lock of the allocator is one of these kinds. */
enum brimful_lock {
  BRIMFUL_LOCK_HEAP,      /* one: address space, large blocks, slabs made and given back */
  BRIMFUL_LOCK_CENTRAL,   /* one for each size class: memory that passes between threads */
  BRIMFUL_LOCK_CONTEXT,   /* one for each context, a CPU's or a thread's */
  BRIMFUL_LOCK_USER_HEAP, /* one for each heap of brimful/heap.h that there was at once, and one for their list */
};

/* What happened to one lock, or to all of a kind, since the process began; a forked child goes on from its parent's
 * numbers. Later versions may add members at the end. */
struct brimful_lock_stats {
  size_t size;           /* set by the caller: sizeof(struct brimful_lock_stats) */
  size_t object_bytes;   /* the size class, of the lock of one class; else 0 */
  uint64_t locks;        /* how many locks the numbers are the sum of */
  uint64_t acquisitions; /* times taken; those of fork, which takes every lock there is, are not counted */
  uint64_t contended;    /* of those: the lock was held, and the thread waited, spinning or asleep */
  uint64_t sleeps;       /* times a waiting thread went to sleep in the kernel */
  uint64_t wait_ns;      /* time from the failed attempt until the lock was taken, nanoseconds */
  uint64_t busy;         /* attempts that would not wait and found the lock held; they are no acquisitions */
};

/* Fills *into with the numbers of a kind of locks. With BRIMFUL_LOCK_CENTRAL, object_bytes chooses the class that serves
 * objects of that many bytes, and 0 the sum over all classes; with the other kinds it must be 0. Members that this
 * library does not know are set to 0. To visit every class:
 *
 *   struct brimful_lock_stats s = {.size = sizeof s};
 *   for (size_t n = 1; brimful_get_lock_stats(BRIMFUL_LOCK_CENTRAL, n, &s) == 0; n = s.object_bytes + 1) ...
 *
 * Returns 0; EINVAL for an unknown kind, for object_bytes above the largest class (32 KiB), or when into->size is less
 * than that of the structure's first version. Takes no lock, so it answers while others hold them, and from signal
 * handlers; errno is kept. Cost: O(1), for a sum O(classes), O(contexts) or O(heaps). */
int brimful_get_lock_stats(enum brimful_lock which, size_t object_bytes, struct brimful_lock_stats* into);

/* Where the resident memory is. Bytes; the sum of live, slab_free, run_free and metadata is resident, which is what the
 * kernel counts for the heap's mappings in /proc/self/smaps. Later versions may add members at the end. */
struct brimful_memory_stats {
  size_t size;            /* set by the caller: sizeof(struct brimful_memory_stats) */
  size_t class_size;      /* set by the caller: sizeof(struct brimful_class_memory) */
  uint64_t resident;      /* of the heap */
  uint64_t live;          /* of those: live blocks, at the sizes that they have */
  uint64_t not_requested; /* of live: more than was asked for. An estimate from the requests that slow paths served */
  uint64_t slab_free;     /* free objects between live ones, and what is left at the ends of slabs and blocks */
  uint64_t run_free;      /* freed and not given back to the system yet */
  uint64_t metadata;      /* headers, contexts and tables */
  uint64_t classes;       /* entries of the array that were filled, or would be if it were long enough */
};

/* The same for one size class, or for all blocks above the largest class. */
struct brimful_class_memory {
  uint64_t object_bytes; /* the size class; 0: blocks above 32 KiB */
  uint64_t slabs;        /* or blocks */
  uint64_t live_objects;
  uint64_t resident;  /* bytes of its slabs or blocks */
  uint64_t live;      /* bytes of those that hold live objects */
  uint64_t requests;  /* that slow paths served; most requests take none, so this is a sample */
  uint64_t requested; /* bytes that those asked for */
  uint64_t granted;   /* bytes that those got */
};

/* Fills *into, and up to `room` entries of `classes` (NULL when room is 0), one for each size class, smallest first, and the
 * last for larger blocks. Ullage, the share of memory that holds nothing, is 1 - live / resident.
 *
 * Returns 0; EINVAL when into->size, or with room into->class_size, is less than that of the structures' first version;
 * EDEADLK from a signal handler that interrupted this thread in the allocator. errno is kept. Cost: the kernel is asked
 * about every page and the words of every slab are read, under the heap's lock: about 5 ms for a GiB. */
int brimful_get_memory_stats(struct brimful_memory_stats* into, struct brimful_class_memory* classes, size_t room);

enum brimful_format {
  BRIMFUL_FORMAT_TEXT, /* tables */
  BRIMFUL_FORMAT_JSON, /* one line */
};

/* Writes all statistics to a file descriptor: bytes, live and free objects of each size class, where the resident
 * memory is (as brimful_get_memory_stats, and at its cost), locks, events of slow
 * paths. Allocates nothing and writes all of it by one write(2) where the system takes that much. Takes the heap's lock
 * while it counts, O(64-KiB granules in use). Returns 0; EINVAL for an unknown format; ENOMEM; EDEADLK from a signal
 * handler that interrupted this thread in the allocator; or write(2)'s error. errno is kept. */
int brimful_print_stats(int descriptor, enum brimful_format format);

/* Numbers and switches by name. Names and types are those of jemalloc's mallctl(3) where it has such a thing, so that
 * what reads one reads the other; "brimful.<option>" (int64_t) are our own options. docs/guide/monitoring.md lists all of them.
 * mallctl() itself is there as well.
 *
 * The numbers of "stats." are those of the last epoch, and belong together: writing any uint64_t to "epoch" takes them anew.
 * The first read does so by itself. Where that takes more than 0.5 ms (heaps above about 1 GiB), it is done at most so often that some
 * 2 % of a processor's time go into it; reading "epoch" says whether there are new ones.
 *
 *   size_t live;
 *   size_t size = sizeof live;
 *   uint64_t epoch = 1;
 *   brimful_set("epoch", &epoch, sizeof epoch);
 *   brimful_get("stats.allocated", &live, &size);
 *
 * brimful_get: `value` gets *size bytes, which must be the size of the type; NULL asks for that size, which is then in *size.
 * Texts are const char*, and stay valid.
 * brimful_set: `value` has `size` bytes; NULL and 0 for what takes none ("arena.0.purge").
 *
 * Both return 0, or: ENOENT, no such name, or nothing true can be said here; EINVAL, the size is not that of the type (*size is, then), or
 * the value is out of range; EPERM, it can't be read, or written; EFAULT, "prof.dump" can't write its file, and errno says
 * why; EDEADLK, from a signal handler that interrupted this thread in the allocator (so not async-signal-safe). errno is
 * kept otherwise. They allocate nothing and may be called by any thread, also in the child of a fork. Cost: 0.2 us; for "epoch"
 * O(64-KiB granules in use) under the heap's lock; "arena.0.purge" as malloc_trim(). */
int brimful_get(const char* name, void* value, size_t* size);
int brimful_set(const char* name, const void* value, size_t size);

/* With on_exhaustion:hook, called when the reserved address space is used up, with the size of the request in bytes:
 * nonzero lets the heap reserve more, zero makes the request fail. It runs under the heap's lock: it must not allocate.
 * NULL removes it. */
void brimful_set_exhaustion_hook(int (*hook)(size_t bytes));

#pragma GCC visibility pop

#if defined(__cplusplus)
}
#endif

#endif
