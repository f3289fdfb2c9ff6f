/* SPDX-License-Identifier: MIT
 *
 * A pointer that only the kernel has: what an event loop gave epoll to remember.
 */
#include <sys/epoll.h>

#include "plant.h"

__attribute__((noinline)) static void plant(void) {
  int ends[2];
  const int events = epoll_create1(EPOLL_CLOEXEC);
  if (events < 0 || pipe(ends) != 0) abort();
  struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = malloc(136)}};
  note(event.data.ptr, KEPT);
  if (epoll_ctl(events, EPOLL_CTL_ADD, ends[0], &event) != 0) abort();
  note(malloc(136), LOST);
}

int main(int argc, char** argv) {
  at_depth(plant);
  scrub();
  return finish(argc, argv);
}
