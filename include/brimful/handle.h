/* SPDX-License-Identifier: MIT
 *
 * Handle pool: objects that may be moved. zsmalloc's design (Gupta and Minchan Kim, Linux mm/zsmalloc.c) in user
 * space: a handle instead of a pointer, size classes 16 bytes apart, runs of pages as long as waste least, groups of
 * runs by fullness, and compaction, which moves objects into the fullest runs and gives pages back. What it is for:
 * many objects of odd sizes that live long and are looked at seldom, such as a cache of compressed data.
 *
 * A handle becomes a pointer only between brimful_handle_map() and brimful_handle_unmap(); a mapped object never
 * moves. Any thread may call anything at any time. Locks: one for each size class, one for the pool's two tables; map
 * and unmap take none unless compaction is moving that object, and wait for one copy then. Part of libbrimful-pools.a;
 * needs no operating system. errno is never touched.
 *
 * What an object costs beside its bytes: up to 15 bytes of slot (above 4096 bytes: up to 1/32), 4 bytes in its run,
 * 8 in the table of handles, which keeps its greatest length. See docs/design/0022-handle-pool.md.
 */
#ifndef BRIMFUL_HANDLE_H
#define BRIMFUL_HANDLE_H

#include <brimful/pool_host.h>

#if defined(__cplusplus)
extern "C" {
#endif

typedef struct brimful_handle_pool brimful_handle_pool;

/* Names one object of one pool. Never 0. A handle that was freed stays wrong for as long as the pool lives: no number
 * is given out twice. One of another pool is foreign, unless 131071 pools were created between the two. */
typedef uint64_t brimful_handle;

#define BRIMFUL_HANDLE_MOST_OBJECTS 134217728 /* live in one pool, 2^27 */
#define BRIMFUL_HANDLE_MOST_READERS 4092      /* of one object at once */

enum brimful_handle_result {
  BRIMFUL_HANDLE_OK = 0,
  BRIMFUL_HANDLE_STALE,     /* was freed */
  BRIMFUL_HANDLE_FOREIGN,   /* this pool never gave it out */
  BRIMFUL_HANDLE_MAPPED,    /* is mapped in a way that forbids the call */
  BRIMFUL_HANDLE_UNMAPPED,  /* is not mapped */
  BRIMFUL_HANDLE_TOO_LARGE, /* above the pool's maximum */
  BRIMFUL_HANDLE_NO_MEMORY, /* the host gave no pages, or the pool's limit is reached */
  BRIMFUL_HANDLE_INVALID,   /* an argument makes no sense */
};

/* A sentence for messages; static. */
const char* brimful_handle_result_text(enum brimful_handle_result result);

struct brimful_handle_options {
  size_t size;                          /* set by the caller: sizeof(struct brimful_handle_options) */
  const struct brimful_pool_host* host; /* copied */
  size_t most_object_bytes;             /* the largest object, 16 ... 65536; 0: 4096 */
  size_t most_bytes;                    /* pages the pool may hold, in bytes; 0: no limit */
};

/* Takes about 200 bytes for each of the (at most 256, or with larger objects 384) classes. NULL: the options make no
 * sense, most_bytes is below that, or the host gives no pages. */
brimful_handle_pool* brimful_handle_pool_create(const struct brimful_handle_options* options);

/* Gives every page back, whatever is live or mapped. NULL: nothing happens. No other thread may be inside a call. */
void brimful_handle_pool_destroy(brimful_handle_pool* pool);

/* An object of `bytes` bytes (1 ... most_object_bytes; content: any). Into *handle; unchanged on failure: TOO_LARGE,
 * NO_MEMORY, INVALID (0 bytes). O(1), and one get_pages() for a new run, another when a table grows. One class's lock
 * at a time, for constant time; every 16th call the tables'. No lock is held while the host looks for a run's pages. */
enum brimful_handle_result brimful_handle_alloc(brimful_handle_pool* pool, size_t bytes, brimful_handle* handle);

/* What the caller will do with the bytes. Many reads may be mapped at once; writing excludes everything else. */
enum brimful_handle_mode { BRIMFUL_HANDLE_READ = 1, BRIMFUL_HANDLE_WRITE = 2, BRIMFUL_HANDLE_BOTH = 3 };

/* The object's address, aligned to 16, good until the unmap; contiguous. What was written before an unmap is seen after
 * the map. MAPPED: somebody else's mapping excludes this one, or there are BRIMFUL_HANDLE_MOST_READERS (nothing waits).
 * *pointer is unchanged on failure. O(1), one compare-exchange; while the object is being moved, waits for its class's
 * lock: the time of a copy. */
enum brimful_handle_result brimful_handle_map(brimful_handle_pool* pool, brimful_handle handle,
                                              enum brimful_handle_mode mode, void** pointer);

/* Ends one mapping; of several readers' no matter whose. UNMAPPED: there is none. O(1), one compare-exchange. */
enum brimful_handle_result brimful_handle_unmap(brimful_handle_pool* pool, brimful_handle handle);

/* Gives the object back; MAPPED while it is mapped. An empty run goes back to the host at once, outside of every lock.
 * Of several calls that race with the same handle one succeeds. O(1), one class's lock. */
enum brimful_handle_result brimful_handle_free(brimful_handle_pool* pool, brimful_handle handle);

/* Bytes that were asked for, into *bytes; unchanged on failure. O(1), one class's lock. */
enum brimful_handle_result brimful_handle_size(brimful_handle_pool* pool, brimful_handle handle, size_t* bytes);

/* One bounded step of compaction: moves at most `most_moves` unmapped objects (0: no bound), from the emptiest runs of
 * a class to its fullest, and when that can empty no run any more, from a class's emptiest run to slots at most 1/12
 * larger. Gives the runs that become empty back to the host; returns their bytes. *more, unless NULL: 0 when the step
 * ended a sweep through all classes; a loop on it ends, whatever is mapped. A run of which something is mapped is left
 * alone until the next sweep. Any thread, at the same time as anything: others wait for one object's copy at most,
 * under the lock of its class, or of two. Source: Minchan Kim's zs_compact() in Linux mm/zsmalloc.c. */
size_t brimful_handle_compact(brimful_handle_pool* pool, size_t most_moves, int* more);

struct brimful_handle_stats {
  size_t size;           /* set by the caller: sizeof(struct brimful_handle_stats) */
  size_t class_size;     /* set by the caller: sizeof(struct brimful_handle_class_stats), when classes are asked for */
  size_t objects;        /* live */
  size_t live_bytes;     /* what was asked for in live objects */
  size_t held_bytes;     /* pages held for objects */
  size_t metadata_bytes; /* pages held for handles and the pool itself */
  uint64_t moved;        /* objects moved by compaction so far */
  uint64_t given_bytes;  /* given back by compaction so far */
  size_t classes;        /* how many classes the pool has */
  struct brimful_pool_lock_stats locks; /* all of the pool's, summed */
};

/* One size class. Fullness groups are tenths: group[0] is 0, because empty runs are given back at once; group[i] is
 * runs with ((i - 1) * 10, i * 10] % of their objects live, group[10] those of them that are not full, group[11] full
 * ones. */
struct brimful_handle_class_stats {
  size_t object_bytes;
  size_t run_bytes;   /* pages of one run */
  size_t run_objects; /* objects of one run */
  size_t runs;
  size_t objects;     /* live */
  size_t group[12];   /* runs by fullness */
  size_t compactable; /* runs that moves inside the class could give back now, if nothing were mapped */
  struct brimful_pool_lock_stats lock;
};

/* Fills *into, and the first `count` of `classes` unless that is NULL. Takes one lock after the other: each class is
 * of one moment, the whole is not. O(classes). INVALID: a size field is wrong. */
enum brimful_handle_result brimful_handle_get_stats(brimful_handle_pool* pool, struct brimful_handle_stats* into,
                                                    struct brimful_handle_class_stats* classes, size_t count);

/* How many objects are mapped at this moment, in any mode. No lock. O(handles there have been at once). */
size_t brimful_handle_count_mapped(const brimful_handle_pool* pool);

/* Looks at every invariant, one class's lock at a time: O(objects). NULL, or the name of the first that is broken and
 * in *where, unless that is NULL, the address that breaks it. No call may be in progress elsewhere. */
const char* brimful_handle_check(brimful_handle_pool* pool, const void** where);

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_HANDLE_H */
