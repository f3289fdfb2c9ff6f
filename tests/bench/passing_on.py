# SPDX-License-Identifier: MIT
"""The smallest allocator there is, for tests that need one that is not glibc: it passes all on."""

ALLOCATOR = """
#include <stddef.h>
void* __libc_malloc(size_t); void __libc_free(void*);
void* __libc_calloc(size_t, size_t); void* __libc_realloc(void*, size_t);
void* malloc(size_t n) { return __libc_malloc(n); }
void free(void* p) { __libc_free(p); }
void* calloc(size_t n, size_t m) { return __libc_calloc(n, m); }
void* realloc(void* p, size_t n) { return __libc_realloc(p, n); }
"""
