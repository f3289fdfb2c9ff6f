/* SPDX-License-Identifier: MIT
 *
 * TLSF under a lock of yours: the calls of <brimful/tlsf.h> that change or read a pool, each between one lock() and one
 * unlock(), for threads that share a pool. Header only. The lock may be anything: a mutex, a spin lock, masking
 * interrupts. It need not be recursive: no call takes it twice, and neither the resize callback nor the misuse hook, which
 * run under it, may call the pool.
 *
 * The bound of a call is that of the call without a lock, plus the wait; one thread that is in calloc or in a realloc that
 * moves content keeps the others waiting for as long as it copies.
 *
 * Sizes, alignments and errors are those of the calls in <brimful/tlsf.h>.
 */
#ifndef BRIMFUL_TLSF_LOCK_H
#define BRIMFUL_TLSF_LOCK_H

#include <brimful/tlsf.h>

#if defined(__cplusplus)
extern "C" {
#endif

/* Filled in by the caller. `lock` and `unlock` must not be NULL; `context` is handed to both. */
struct brimful_tlsf_locked {
  brimful_tlsf* pool;
  void (*lock)(void* context);
  void (*unlock)(void* context);
  void* context;
};

static inline void* brimful_tlsf_locked_malloc(const struct brimful_tlsf_locked* self, size_t bytes) {
  void* block;
  self->lock(self->context);
  block = brimful_tlsf_malloc(self->pool, bytes);
  self->unlock(self->context);
  return block;
}

static inline void* brimful_tlsf_locked_calloc(const struct brimful_tlsf_locked* self, size_t count, size_t bytes) {
  void* block;
  self->lock(self->context);
  block = brimful_tlsf_calloc(self->pool, count, bytes);
  self->unlock(self->context);
  return block;
}

static inline void* brimful_tlsf_locked_aligned_alloc(const struct brimful_tlsf_locked* self, size_t alignment,
                                                      size_t bytes) {
  void* block;
  self->lock(self->context);
  block = brimful_tlsf_aligned_alloc(self->pool, alignment, bytes);
  self->unlock(self->context);
  return block;
}

static inline void* brimful_tlsf_locked_realloc(const struct brimful_tlsf_locked* self, void* pointer, size_t bytes) {
  void* block;
  self->lock(self->context);
  block = brimful_tlsf_realloc(self->pool, pointer, bytes);
  self->unlock(self->context);
  return block;
}

static inline void brimful_tlsf_locked_free(const struct brimful_tlsf_locked* self, void* pointer) {
  self->lock(self->context);
  brimful_tlsf_free(self->pool, pointer);
  self->unlock(self->context);
}

static inline bool brimful_tlsf_locked_add_region(const struct brimful_tlsf_locked* self, void* memory, size_t bytes) {
  bool added;
  self->lock(self->context);
  added = brimful_tlsf_add_region(self->pool, memory, bytes);
  self->unlock(self->context);
  return added;
}

static inline bool brimful_tlsf_locked_remove_region(const struct brimful_tlsf_locked* self, void* memory) {
  bool removed;
  self->lock(self->context);
  removed = brimful_tlsf_remove_region(self->pool, memory);
  self->unlock(self->context);
  return removed;
}

static inline void brimful_tlsf_locked_reset(const struct brimful_tlsf_locked* self) {
  self->lock(self->context);
  brimful_tlsf_reset(self->pool);
  self->unlock(self->context);
}

static inline void brimful_tlsf_locked_get_stats(const struct brimful_tlsf_locked* self,
                                                 struct brimful_tlsf_stats* into) {
  self->lock(self->context);
  brimful_tlsf_get_stats(self->pool, into);
  self->unlock(self->context);
}

/* O(blocks) under the lock; `visit` must not call the pool. */
static inline void brimful_tlsf_locked_walk(const struct brimful_tlsf_locked* self, brimful_tlsf_visit* visit,
                                            void* context) {
  self->lock(self->context);
  brimful_tlsf_walk(self->pool, visit, context);
  self->unlock(self->context);
}

/* O(blocks) under the lock. */
static inline const char* brimful_tlsf_locked_check(const struct brimful_tlsf_locked* self, const void** where) {
  const char* broken;
  self->lock(self->context);
  broken = brimful_tlsf_check(self->pool, where);
  self->unlock(self->context);
  return broken;
}

#if defined(__cplusplus)
}
#endif

#endif /* BRIMFUL_TLSF_LOCK_H */
