/* SPDX-License-Identifier: MIT
 *
 * Offsets shared by the assembly and the C++ of the allocator. Plain macros because an assembler reads them; the
 * structures they describe static_assert every one of them (meta/header.h, meta/block.h, slots/context.h).
 */
#pragma once

/* struct Header: what a granule's table entry points at. */
#define BRIMFUL_HEADER_START 0
#define BRIMFUL_HEADER_MULTIPLIER 8
#define BRIMFUL_HEADER_BYTES 16
#define BRIMFUL_HEADER_OWNER 24
#define BRIMFUL_HEADER_LAST_OWNER 28
#define BRIMFUL_HEADER_COUNTDOWN 32
#define BRIMFUL_HEADER_CLASS 37
#define BRIMFUL_HEADER_GROUPS 38
#define BRIMFUL_HEADER_BATCH 58
#define BRIMFUL_HEADER_LEAST 59
#define BRIMFUL_HEADER_OPENED 60
#define BRIMFUL_HEADER_WORDS 64
#define BRIMFUL_MAX_OBJECTS 4096   /* in a slab: 64 groups of 64 */
#define BRIMFUL_OFFERED_BEHIND 512 /* 64 words of 8 bytes */
#define BRIMFUL_HEADER_OFFERED 576

/* struct Run: a large block's header. */
#define BRIMFUL_RUN_STAMP 72
#define BRIMFUL_RUN_DIRTY 84
#define BRIMFUL_RUN_STACK 86

/* Owners that free() knows: meta/header.h. */
#define BRIMFUL_OWNER_HAS_REMOTE 0x40000000
#define BRIMFUL_OWNER_DETACHED 0xFFFFFFF0
#define BRIMFUL_OWNER_SHARED 0xFFFFFFF2
#define BRIMFUL_OWNER_LIVE 0xFFFFFFF5
#define BRIMFUL_OWNER_CACHED 0xFFFFFFF6

/* struct brimful_hot_globals. */
#define BRIMFUL_HOT_TABLE 0
#define BRIMFUL_HOT_MASK 8
#define BRIMFUL_HOT_ALIGNED_SMALL 16
#define BRIMFUL_HOT_ALIGNED_MOST 24
#define BRIMFUL_HOT_PAGE 32 /* where pages have more than one size */

/* The fraction bits of the exact-division product: see meta/header.h. */
#define BRIMFUL_DIVISION_SHIFT 16

/* struct Block: tables for malloc, one base register reaches them all. Class numbers are stored doubled. */
#define BRIMFUL_SMALL_MAX 1024
#define BRIMFUL_MEDIUM_MAX 32768
#define BRIMFUL_MEDIUM_SHIFT 7
#define BRIMFUL_COARSE_ABOVE 5120 /* bytes; above it lie the coarse classes: classes/size_classes.h */
#define BRIMFUL_BLOCK_SMALL 0
#define BRIMFUL_BLOCK_MEDIUM 1032
#define BRIMFUL_BLOCK_SIZES 1296
#define BRIMFUL_BLOCK_LIMITS 1872
#define BRIMFUL_BLOCK_CONTEXTS 1944

/* struct Context: 72 slots {word pointer, base}, how many objects each magazine holds, the id …, queues, magazines. */
#define BRIMFUL_CLASSES 72
#define BRIMFUL_CONTEXT_COUNTS 1152
#define BRIMFUL_CONTEXT_ACTIVE_ID 1440
#define BRIMFUL_CONTEXT_LOCK 1448
#define BRIMFUL_CONTEXT_HEARTBEAT 1496
#define BRIMFUL_CONTEXT_UNTIL_LOOK 1500
#define BRIMFUL_BEATS_OF_A_GROUP 8 /* taken off the heartbeat by a group, by an object of a coarse class 1 */
#define BRIMFUL_CONTEXT_QUEUES 1600
#define BRIMFUL_CONTEXT_RUN_STACKS 5824
#define BRIMFUL_CONTEXT_SAMPLES 6912
#define BRIMFUL_CONTEXT_FILTERS 8128
#define BRIMFUL_CONTEXT_MAGAZINES 12736

/* A magazine: room for 32 addresses, 256 bytes, and a filter of 512 bits. */
#define BRIMFUL_MAGAZINE_SHIFT 8
#define BRIMFUL_FILTER_FACTOR 0x9E3779B1 /* 2^32 divided by the golden ratio: Knuth, vol. 3, 6.4 */
#define BRIMFUL_FILTER_SHIFT 23

/* struct ClassQueue: 32 bytes. */
#define BRIMFUL_QUEUE_CURRENT 0
#define BRIMFUL_QUEUE_SCAN 24

/* A stack of freed large blocks of one length (pages/run_stacks.h): 64 bytes; number 0, which holds none, counts frees. */
#define BRIMFUL_RUN_STACK_SHIFT 6
#define BRIMFUL_RUN_STACK_MOST 16 /* granules */
#define BRIMFUL_RUN_STACK_LIMIT 4
#define BRIMFUL_RUN_STACK_RUNS 8
#define BRIMFUL_RUN_STACKS_UNTIL_LOOK 8
#define BRIMFUL_RUN_STACKS_NOW 16
#define BRIMFUL_RUN_STACKS_UNTIL_SAMPLE 32
#define BRIMFUL_PAGE_SHIFT 12 /* of x86-64 */

/* Stands before each abort handler, and the kernel is told it: rseq(2), RSEQ_SIG of the C library's bits/rseq.h. */
#if defined(__aarch64__)
#define BRIMFUL_RSEQ_SIGNATURE 0xD428BC00
#else
#define BRIMFUL_RSEQ_SIGNATURE 0x53053053
#endif

/* Programs' addresses have so many bits, less the tag of top-byte-ignore; with the widest pages of ARMv8.2. */
#define BRIMFUL_ADDRESS_BITS 52

/*
 * struct ThreadArea. Where an address takes two instructions to make, and two words can be loaded by one, the addresses
 * that the fast paths need stand beside the thread's own two words.
 */
#if defined(__aarch64__) && !defined(BRIMFUL_ARCH_GENERIC)
#define BRIMFUL_THREAD_TABLES 1
#else
#define BRIMFUL_THREAD_TABLES 0
#endif
#define BRIMFUL_THREAD_ID 0
#define BRIMFUL_THREAD_CS 8
#define BRIMFUL_THREAD_BLOCK 16
#define BRIMFUL_THREAD_CONTEXTS 24
#define BRIMFUL_THREAD_SIZES 32
#define BRIMFUL_THREAD_SECTION 40 /* malloc's */
#define BRIMFUL_THREAD_HOT 48
#define BRIMFUL_THREAD_FREE_SECTION 56
