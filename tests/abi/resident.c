// SPDX-License-Identifier: MIT
//
// brimful_get_memory_stats against /proc/self/smaps: in heaps of many shapes, what it calls resident is within 1 % of
// what the kernel counts for the heap's mappings, and its parts are what the program did.
//
// The heap's mappings have no name on all kernels, so what is summed is every anonymous mapping without one but the zero
// data of programs and libraries. A mapping of the heap may come to lie right behind zero data (of a static-pie program,
// where the layout leaves a hole before the vdso; one start in some dozens), and the kernel makes one mapping of both:
// part_zero_data takes them apart. libc has a few pages of its own: kOthers allows for them. Threads run on stacks in our
// data for the same reason.
#include "check.h"

#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#pragma weak brimful_get_memory_stats
#include "brimful/brimful.h"

// Pages of ours that were read and never written are the kernel's page of zeros: mincore() counts them, smaps doesn't.
enum { kOthers = 48 << 10, kZeros = 8 << 10, kOwn = 128 << 10, kMost = 1 << 19, kThreads = 4, kObjects = 64 };

static char text[1 << 16];
static void* blocks[kMost];
static size_t count;

// Next line of the file into `line`; 0 at its end. Reads by itself: stdio would allocate.
static int next_line(int file, char* line, size_t room) {
  static size_t at, end;
  size_t length = 0;
  for (;;) {
    if (at == end) {
      ssize_t got = read(file, text, sizeof text);
      at = 0;
      end = got > 0 ? (size_t)got : 0;
      if (got <= 0) return 0;
    }
    char c = text[at++];
    if (c == '\n') break;
    if (length + 1 < room) line[length++] = c;
  }
  line[length] = '\0';
  return 1;
}

// Where zero data lie that are mapped by themselves.
static struct { uintptr_t start, end; } zero_data[kObjects];
static int zero_count;

// Gives the zero data of an object a flag of their own, which means nothing but that they are a mapping of their own.
static int part_zero_data(struct dl_phdr_info* object, size_t size, void* unused) {
  (void)size, (void)unused;
  const uintptr_t mask = (uintptr_t)getpagesize() - 1;
  for (int i = 0; i < object->dlpi_phnum && zero_count < kObjects; ++i) {
    const ElfW(Phdr)* segment = &object->dlpi_phdr[i];
    uintptr_t begin = object->dlpi_addr + segment->p_vaddr;
    uintptr_t start = (begin + segment->p_filesz + mask) & ~mask;
    uintptr_t end = (begin + segment->p_memsz + mask) & ~mask;
    if (segment->p_type != PT_LOAD || start >= end) continue;
    CHECK_EQ(madvise((void*)start, end - start, MADV_DONTDUMP), 0);
    zero_data[zero_count].start = start;
    zero_data[zero_count++].end = end;
  }
  return 0;
}

static int is_zero_data(uintptr_t at) {
  for (int i = 0; i < zero_count; ++i) {
    if (at >= zero_data[i].start && at < zero_data[i].end) return 1;
  }
  return 0;
}

// Rss of the anonymous mappings that no name and no file claims, bytes.
static uint64_t kernel_says(void) {
  if (zero_count == 0) dl_iterate_phdr(part_zero_data, NULL);
  int file = open("/proc/self/smaps", O_RDONLY);
  char line[512];
  uint64_t sum = 0;
  int ours = 0;
  while (next_line(file, line, sizeof line)) {
    unsigned long start, end, inode, kib;
    char access[8];
    int at = 0;
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu %n", &start, &end, access, &inode, &at) == 4) {
      const char* name = line + at;
      int unnamed = inode == 0 && (*name == '\0' || strncmp(name, "[anon:brimful", 13) == 0);
      ours = unnamed && !is_zero_data(start);
    } else if (ours && sscanf(line, "Rss: %lu kB", &kib) == 1) {
      sum += kib << 10;
    }
  }
  close(file);
  return sum;
}

static struct brimful_class_memory classes[100];

static struct brimful_memory_stats stats_now(void) {
  struct brimful_memory_stats stats = {.size = sizeof stats, .class_size = sizeof classes[0]};
  CHECK_EQ(brimful_get_memory_stats(&stats, classes, sizeof classes / sizeof classes[0]), 0);
  return stats;
}

static struct brimful_memory_stats reconcile(const char* shape) {
  // Once more when khugepaged has filled hugepages meanwhile.
  struct brimful_memory_stats stats = stats_now();
  uint64_t kernel = kernel_says();
  for (int i = 0; i < 5 && stats_now().resident != stats.resident; ++i) {
    stats = stats_now();
    kernel = kernel_says();
  }
  uint64_t least = kernel > kOthers ? kernel - kOthers : 0;
  CHECK_MSG(stats.resident <= kernel + kernel / 100 + kZeros + kOwn && stats.resident >= least - least / 100,
            "%s: %lu resident, the kernel says %lu", shape, stats.resident, kernel);
  CHECK_EQ(stats.live + stats.slab_free + stats.run_free + stats.metadata, stats.resident);
  CHECK_LE(stats.not_requested, stats.live);
  uint64_t live = 0, resident = 0;
  for (uint64_t i = 0; i < stats.classes; ++i) {
    CHECK_LE(classes[i].live, classes[i].resident);
    CHECK_LE(classes[i].live, classes[i].object_bytes ? classes[i].object_bytes * classes[i].live_objects : INT64_MAX);
    CHECK_LE(classes[i].requested, classes[i].granted);
    live += classes[i].live;
    resident += classes[i].resident;
  }
  CHECK_EQ(live, stats.live);
  CHECK_EQ(resident, stats.live + stats.slab_free);
  return stats;
}

static void grow(size_t number, size_t least, size_t most) {
  static uint64_t state = 88172645463325252;
  for (size_t i = 0; i < number && count < kMost; ++i) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // Marsaglia's xorshift
    size_t bytes = least + state % (most - least + 1);
    blocks[count] = malloc(bytes);
    if (blocks[count] == NULL) return;
    memset(blocks[count++], 1, bytes);
  }
}

// Frees every block whose number is no multiple of `step`; 0: all.
static void thin_out(size_t step) {
  size_t kept = 0;
  for (size_t i = 0; i < count; ++i) {
    if (step != 0 && i % step == 0) {
      blocks[kept++] = blocks[i];
    } else {
      free(blocks[i]);
    }
  }
  count = kept;
}

static void a_fresh_heap_reconciles(void) { reconcile("fresh"); }

static void a_heap_of_small_objects_is_nearly_all_live(void) {
  grow(300000, 16, 256);
  struct brimful_memory_stats stats = reconcile("small");
  CHECK_GE(stats.live, (stats.live + stats.slab_free) / 10 * 9);
  // Free is the rest of the hugepages that were being filled: one for each kind of memory. How much of them came at once
  // depends on where the kernel put the heap.
  CHECK_LE(stats.run_free, 3 * (2 << 20));
  thin_out(0);
}

static void a_fragmented_heap_is_mostly_ullage(void) {
  grow(300000, 16, 512);
  struct brimful_memory_stats full = reconcile("before");
  thin_out(10);
  struct brimful_memory_stats stats = reconcile("fragmented");
  CHECK_LE(stats.live, full.live / 8);
  CHECK_GE(stats.slab_free, full.live / 2);
  CHECK_LE(stats.metadata, stats.resident / 20);
  malloc_trim(0);
  reconcile("fragmented and trimmed");
  thin_out(0);
}

static void a_purged_heap_keeps_little(void) {
  grow(100000, 16, 2048);
  thin_out(0);
  uint64_t before = stats_now().resident;
  malloc_trim(0);
  struct brimful_memory_stats stats = reconcile("purged");
  CHECK_LE(stats.resident, before / 4);
  CHECK_EQ(stats.run_free, 0);
}

static void large_blocks_count_what_was_touched(void) {
  struct brimful_memory_stats before = stats_now();
  enum { kBytes = 8 << 20 };
  char* block = (char*)malloc(kBytes);
  keep(block);
  struct brimful_memory_stats reserved = stats_now();
  CHECK_LE(reserved.resident, before.resident + (64 << 10));
  memset(block, 1, kBytes / 2);
  struct brimful_memory_stats stats = reconcile("large");
  CHECK_GE(stats.live, before.live + kBytes / 2);
  CHECK_LE(stats.live, before.live + kBytes / 2 + (64 << 10));
  free(block);
  stats = reconcile("large, freed");
  CHECK_LE(stats.live, before.live + (64 << 10));
  grow(300, 33000, 400000);
  thin_out(3);
  reconcile("large, many");
  thin_out(0);
}

static void huge_blocks_reconcile(void) {
  size_t bytes = (size_t)5 << 30;
  char* block = (char*)malloc(bytes);
  if (block == NULL) SKIP("no address space for 5 GiB");
  struct brimful_memory_stats before = stats_now();
  memset(block + bytes / 2, 1, 16 << 20);
  struct brimful_memory_stats stats = reconcile("huge");
  CHECK_EQ(stats.live - before.live, 16 << 20);
  free(block);
  reconcile("huge, freed");
}

static void hugepages_reconcile(void) {
  size_t bytes = 16 << 20;
  char* block = (char*)aligned_alloc(2 << 20, bytes);
  madvise(block, bytes, MADV_HUGEPAGE);
  for (size_t i = 0; i < bytes; i += 2 << 20) block[i] = 1;
  reconcile("hugepages");
  free(block);
}

static char stacks[kThreads][256 << 10] __attribute__((aligned(65536)));
static void* handed[kThreads][4096];
static pthread_barrier_t barrier;

static void* work(void* number) {
  size_t own = (size_t)(uintptr_t)number;
  for (size_t i = 0; i < 4096; ++i) memset(handed[own][i] = malloc(16 + i), 1, 16 + i);
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < 4096; i += 2) free(handed[(own + 1) % kThreads][i]);  // another's, through magazines
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  for (size_t i = 1; i < 4096; i += 2) free(handed[own][i]);
  return NULL;
}

static void heaps_of_threads_reconcile(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&barrier, NULL, kThreads + 1);
  for (size_t i = 0; i < kThreads; ++i) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stacks[i], sizeof stacks[i]);
    CHECK_EQ(pthread_create(&threads[i], &attributes, work, (void*)(uintptr_t)i), 0);
    pthread_attr_destroy(&attributes);
  }
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  reconcile("threads");
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  reconcile("threads, gone");
}

static void a_forked_childs_heap_reconciles(void) {
  grow(50000, 16, 512);
  pid_t child = fork();
  if (child == 0) {
    thin_out(3);
    reconcile("child");
    _exit(check_failures == 0 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK_EQ(status, 0);
  thin_out(0);
}

static void requests_of_one_size_show_what_is_not_asked_for(void) {
  grow(20000, 1040, 1040);  // of class 1152: 112 of it nobody asked for
  struct brimful_memory_stats stats = reconcile("one size");
  uint64_t expected = count * 112;
  CHECK_GE(stats.not_requested, expected / 2);
  for (uint64_t i = 0; i < stats.classes; ++i) {
    if (classes[i].object_bytes != 1152) continue;
    CHECK_GE(classes[i].live_objects + 8, count);  // a guarded object is of no class
    CHECK_GE(classes[i].requests, 1);
    CHECK_LE(classes[i].requested, classes[i].requests * 1152);
  }
  thin_out(0);
}

static void wrong_arguments_are_refused(void) {
  struct brimful_memory_stats stats = {.size = 8};
  errno = 4711;
  CHECK_EQ(brimful_get_memory_stats(&stats, NULL, 0), EINVAL);
  stats.size = sizeof stats;
  stats.class_size = 8;
  CHECK_EQ(brimful_get_memory_stats(&stats, NULL, 0), 0);
  stats.class_size = 8;
  CHECK_EQ(brimful_get_memory_stats(&stats, classes, 1), EINVAL);
  CHECK_EQ(errno, 4711);
}

static void a_short_array_gets_its_first_entries_only(void) {
  struct brimful_memory_stats stats = {.size = sizeof stats, .class_size = sizeof classes[0]};
  memset(classes, 0x5a, sizeof classes);
  CHECK_EQ(brimful_get_memory_stats(&stats, classes, 2), 0);
  CHECK_EQ(classes[0].object_bytes, 16);
  CHECK_EQ(classes[1].object_bytes, 32);
  CHECK_EQ(classes[2].object_bytes, 0x5a5a5a5a5a5a5a5aU);
  CHECK_GE(stats.classes, 3);
}

int main(void) {
  begin(120);
  if (brimful_get_memory_stats == NULL) {
    say("skip  the allocator has no such call");
    CHECK(!is_brimful());
    return finish();
  }
  RUN(a_fresh_heap_reconciles);
  RUN(a_heap_of_small_objects_is_nearly_all_live);
  RUN(a_fragmented_heap_is_mostly_ullage);
  RUN(a_purged_heap_keeps_little);
  RUN(large_blocks_count_what_was_touched);
  RUN(huge_blocks_reconcile);
  RUN(hugepages_reconcile);
  RUN(heaps_of_threads_reconcile);
  RUN(a_forked_childs_heap_reconciles);
  RUN(requests_of_one_size_show_what_is_not_asked_for);
  RUN(wrong_arguments_are_refused);
  RUN(a_short_array_gets_its_first_entries_only);
  return finish();
}
