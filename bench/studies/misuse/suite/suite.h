// SPDX-License-Identifier: MIT
//
// What the programs of the misuse suite share. A case is one fault, with objects of one size, from one thread or two; it
// is a process of its own, because what an allocator draws at random is drawn when it starts. The process runs
// under any allocator, knows nothing of it, and proves by itself what became of its fault:
//
//   at(pointer)     prints "fault 0x…" right before the faulty access or call
//   passed()        prints "passed": the fault was not stopped where it happened
//   silent("…")     ends: a live object was changed, given out twice, a secret was read …; nobody stopped it
//   harmless("…")   ends: the fault did nothing to anybody
//
// Between passed() and the end stand only right calls: they give an allocator the chances that a real program would
// give it to notice (the object is freed, others are allocated and freed). Whoever reads the output tells the outcome from these
// lines and from how the process ended: by a signal before "passed" it was stopped at the fault, after it later.
//
// Nothing here may use memory of the allocator for its own books, which a fault may damage: books are static, and
// printing is write(2).
#ifndef BRIMFUL_TESTS_MISUSE_SUITE_SUITE_H_
#define BRIMFUL_TESTS_MISUSE_SUITE_SUITE_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct Case {
  size_t size;     // bytes of each object
  bool two;        // a second thread takes part: frees or accesses, as the fault says
  unsigned param;  // of the fault, as in "by so many bytes"
};

enum Sizes { kAllSizes, kOneSize };
enum Threads { kOneThread, kBoth, kTwoThreads };

struct Fault {
  const char* name;
  const char* kind;  // the row of the matrix
  void (*commit)(const struct Case*);
  unsigned param;
  enum Sizes sizes;
  enum Threads threads;
};

// One table for each file of faults; each ends with a fault without name.
extern const struct Fault kDoubleFrees[], kUsesAfterFree[], kBounds[], kContents[], kWrongPointers[], kWrongSizes[],
    kMetadata[], kRight[];

// --- what is said -------------------------------------------------------------------------------

void at(const volatile void* pointer);
void passed(void);
_Noreturn void silent(const char* what);
_Noreturn void harmless(const char* what);
_Noreturn void broken(const char* what);  // the case itself can't be made: neither good nor bad

// --- memory -------------------------------------------------------------------------------------

// The compiler may not know where a pointer comes from, or it removes or warns of the fault.
static inline void* hide(volatile void* pointer) {
  __asm__ volatile("" : "+r"(pointer) : : "memory");
  return (void*)pointer;
}

// malloc that must work.
char* allocate(size_t size);

// Every 8 bytes hold the value; sizes are multiples of it.
void fill(void* object, size_t size, uint64_t value);
bool is_filled(const void* object, size_t size, uint64_t value);
bool holds(const void* object, size_t size, uint64_t value);  // in any of its words

// What belongs to whom, in place of anything that a program would keep secret.
#define kSecret UINT64_C(0x5ec2e7da7a5ec2e7)
#define kOther UINT64_C(0x07e207e207e207e2)
#define kSmashed 0x41

// Objects of one size that live at the same time.
enum { kMostObjects = 4096 };
struct Herd {
  size_t size;
  int count;
  char* objects[kMostObjects];
};

// As many as say something about how memory of this size is used again, and take less than 100 ms.
int many(size_t size);
int some(size_t size);
void grow(struct Herd* herd, size_t size, int count);  // each filled with value_of() of its place
// The same, every other one by the second thread, if there is one: what it freed it may keep for itself.
void grow_by_both(const struct Case* c, struct Herd* herd, size_t size, int count);
uint64_t value_of(int place);
// The first that lost its contents, or -1; `except` is not looked at.
int changed(const struct Herd* herd, int except);
void release(struct Herd* herd, int except);

// --- the second thread --------------------------------------------------------------------------

// A thread that lives as long as the process, on another processor if there is one: what it frees may stay in its own books.
void start_second_thread(void);
// Runs the function there when the case has two threads, else here; returns when it has ended.
void by_second(const struct Case* c, void (*function)(void*), void* passed);
void free_it(void* object);  // to be passed to by_second

// --- proving harm -------------------------------------------------------------------------------

// A range that belongs to somebody: no object may be given out from it.
void belongs(const volatile void* start, size_t size);
// Allocates many objects of the size, by both threads. Ends by silent() if two share memory or one lies in what belongs to
// somebody.
void look_for_overlaps(const struct Case* c, size_t size);

#endif  // BRIMFUL_TESTS_MISUSE_SUITE_SUITE_H_
