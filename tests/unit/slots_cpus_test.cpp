// SPDX-License-Identifier: MIT
//
// Contexts and the CPUs a process may really use: not more contexts than threads can run at once, whatever the machine
// has, and nothing stays with a CPU that was taken away. In the per-CPU front end, on the kernel the tests run on.
#include <gtest/gtest.h>

#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "alone.h"
#include "arch/sequences.h"
#include "brimful/brimful.h"
#include "os/calls.h"
#include "os/cpus.h"
#include "slots/front_end.h"
#include "slots/thread.h"

namespace brimful {
namespace {

const testing::Configured per_cpu_mode(__FILE__, "front_end:percpu");

constexpr unsigned kThreads = 12;

unsigned count_contexts() {
  unsigned count = 0;
  for (Context* c = slots::all_contexts(); c != nullptr; c = c->next_all) ++count;
  return count;
}

// Contexts that hold slabs, or objects of others.
unsigned count_holding_contexts() {
  unsigned count = 0;
  for (Context* c = slots::all_contexts(); c != nullptr; c = c->next_all) {
    const sync::MutexLock guard(c->lock);
    bool holds = c->inbox.load() != nullptr;
    for (const ClassQueue& queue : c->queues) holds = holds || queue.current != nullptr || !queue.partial.empty();
    for (const std::uint32_t kept : c->counts) holds = holds || kept != 0;
    if (holds) ++count;
  }
  return count;
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

// Of the calling thread, and of those that it starts.
void allow(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  ASSERT_EQ(sched_setaffinity(0, sizeof set, &set), 0) << strerror(errno);
}

void churn(unsigned operations, unsigned seed) {
  void* held[64] = {};
  for (unsigned i = 0; i < operations; ++i) {
    void*& object = held[(i * 7 + seed) % 64];
    brimful_free(object);
    object = brimful_malloc(16 + (i * 37 + seed) % 3000);
    ASSERT_NE(object, nullptr);
    memset(object, static_cast<int>(i), 16);
  }
  for (void* object : held) brimful_free(object);
}

void churn_in_threads(unsigned operations) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < kThreads; ++t) threads.emplace_back(churn, operations, t);
  for (std::thread& thread : threads) thread.join();
}

class CpuContexts : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!arch::kRestartable || os::rseq_owner() == os::RseqOwner::kNone) {
      GTEST_SKIP() << "no restartable sequences in this build, or from this kernel";
    }
    before_ = allowed_cpus();
  }
  void TearDown() override {
    if (!before_.empty()) allow(before_);
  }
  std::vector<int> before_;
};

TEST_F(CpuContexts, AreNotMoreThanCpusHoweverManyThreadsThereAre) {
  churn_in_threads(20000);
  EXPECT_TRUE(slots::is_per_cpu());
  EXPECT_GE(count_contexts(), 1U);
  EXPECT_LE(count_contexts(), before_.size());
}

TEST_F(CpuContexts, AreOneUnderAnAffinityOfOneCpu) {
  allow({before_.back()});
  churn_in_threads(20000);
  EXPECT_EQ(count_contexts(), 1U);
}

TEST_F(CpuContexts, LoseTheirMemoryWhenTheAffinityIsNarrowedWhileRunning) {
  if (before_.size() < 2) GTEST_SKIP() << "one CPU only";
  churn_in_threads(20000);
  allow({before_.front()});
  const std::uint64_t end = os::calls.now_ms() + 10000;
  while (count_holding_contexts() > 1 && os::calls.now_ms() < end) {
    churn(1000, 1);
    usleep(10000);
  }
  EXPECT_LE(count_holding_contexts(), 1U);
  allow(before_);
  churn_in_threads(20000);
  EXPECT_LE(count_contexts(), before_.size());
}

TEST_F(CpuContexts, AreMadeForIdsThatTheListOfCpusDoesNotName) {
  brimful_free(brimful_malloc(16));
  const std::uint32_t bits = os::cpu_mask_bits();
  if (bits <= os::possible_cpus()) GTEST_SKIP() << "this kernel's masks have no room beyond its list";
  const arch::ThreadArea mine = arch::brimful_thread;
  std::uint32_t id = bits - 1;  // as if the kernel had moved the thread to such a CPU in the middle of a fast path
  arch::brimful_thread.context_id = &id;
  void* object = brimful_malloc(100);
  EXPECT_NE(object, nullptr);
  EXPECT_NE(slots::context_of(id), nullptr);
  brimful_free(object);
  arch::brimful_thread = mine;
}

}  // namespace
}  // namespace brimful
