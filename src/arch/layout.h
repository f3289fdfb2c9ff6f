/* SPDX-License-Identifier: MIT
 *
 * Offsets shared by the assembly and the C++ of the allocator. Plain macros because an assembler reads them; the
 * structures they describe static_assert every one of them (meta/header.h, meta/block.h, slots/context.h).
 */
#pragma once

/* struct Header: what a granule's table entry points at. */
#define BRIMFUL_HEADER_START 0
#define BRIMFUL_HEADER_MULTIPLIER 8
#define BRIMFUL_HEADER_COUNT 16
#define BRIMFUL_HEADER_OWNER 24
#define BRIMFUL_HEADER_COUNTDOWN 32
#define BRIMFUL_HEADER_CLASS 37
#define BRIMFUL_HEADER_GROUPS 38
#define BRIMFUL_HEADER_BATCH 58
#define BRIMFUL_HEADER_LEAST 59
#define BRIMFUL_HEADER_WORDS 64
#define BRIMFUL_MAX_OBJECTS 4096   /* in a slab: 64 groups of 64 */
#define BRIMFUL_OFFERED_BEHIND 512 /* 64 words of 8 bytes */
#define BRIMFUL_HEADER_OFFERED 576

/* struct brimful_hot_globals. */
#define BRIMFUL_HOT_TABLE 0
#define BRIMFUL_HOT_MASK 8

/* The fraction bits of the exact-division product: see meta/header.h. */
#define BRIMFUL_DIVISION_SHIFT 16

/* struct Block: tables for malloc, one base register reaches them all. Class numbers are stored doubled. */
#define BRIMFUL_SMALL_MAX 1024
#define BRIMFUL_MEDIUM_MAX 32768
#define BRIMFUL_MEDIUM_SHIFT 7
#define BRIMFUL_BLOCK_SMALL 0
#define BRIMFUL_BLOCK_MEDIUM 1032
#define BRIMFUL_BLOCK_SIZES 1296
#define BRIMFUL_BLOCK_CONTEXTS 1872

/* struct Context: 72 slots {word pointer, base}, then the pending entries {key, mask}, then the id. */
#define BRIMFUL_CLASSES 72
#define BRIMFUL_CONTEXT_PENDING 1152
#define BRIMFUL_CONTEXT_ACTIVE_ID 1408
#define BRIMFUL_CONTEXT_LOCK 1416
#define BRIMFUL_CONTEXT_HEARTBEAT 1464
#define BRIMFUL_CONTEXT_QUEUES 1536

/* struct ClassQueue: 32 bytes. */
#define BRIMFUL_QUEUE_CURRENT 0
#define BRIMFUL_QUEUE_SCAN 24
