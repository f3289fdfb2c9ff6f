// SPDX-License-Identifier: MIT
//
// Three threads that allocate, free what others allocated, and end with magazines full; now and then the process forks
// meanwhile, and the child, in which one thread is left, must be able to do the same. In which order threads meet is not the
// input's to say, so a fault may need the input several times over; the oracle holds in every order.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "brimful/brimful.h"
#include "caller.h"

namespace brimful::fuzz {
namespace {

constexpr std::size_t kThreads = 3;
constexpr unsigned kChildSeconds = 20;

// In the child: what this thread held is there, and memory can be had. The other threads' callers are left alone.
void expect_child_works(Caller& caller, Input input) {
  alarm(kChildSeconds);  // a child that hangs is found as well
  caller.oracle().expect_all();
  for (int n = 0; n < 64 && !input.is_empty(); ++n) caller.step(input);
  caller.finish();
}

void fork_once(Caller& caller, Input input) {
  const pid_t child = fork();
  if (child < 0) return;
  if (child == 0) {
    expect_child_works(caller, input);
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child of a fork can allocate");
}

}  // namespace
}  // namespace brimful::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using brimful::fuzz::Caller;
  using brimful::fuzz::Input;
  Input input(data, size);
  const bool forks = input.below(16) == 0;
  brimful::fuzz::Mailbox mailbox;
  Caller own(1, &mailbox);
  std::vector<std::thread> threads;
  const std::size_t share = input.left() / brimful::fuzz::kThreads;
  for (std::size_t n = 1; n < brimful::fuzz::kThreads; ++n) {
    threads.emplace_back([part = input.part(share), n, &mailbox]() mutable {
      Caller caller(static_cast<std::uint8_t>(1 + n * 80), &mailbox);
      while (!part.is_empty()) caller.step(part);
      caller.finish();
    });
  }
  const Input all = input;
  if (forks) {
    for (int n = 0; n < 16 && !input.is_empty(); ++n) own.step(input);
    brimful::fuzz::fork_once(own, all);
  }
  while (!input.is_empty()) own.step(input);
  own.finish();
  for (std::thread& thread : threads) thread.join();
  for (auto& slot : mailbox.slots) {
    const brimful::fuzz::Block* const left = slot.load(std::memory_order_relaxed);  // relaxed: the threads have ended
    if (left == nullptr) continue;
    brimful_free(left->start);
    delete left;
  }
  return 0;
}
