// SPDX-License-Identifier: MIT
//
// The whole allocator when the system refuses. For EVERY n, a process of its own, in which nothing was allocated yet,
// runs a scripted mix of calls while the n-th call to the system (of one kind, or of any) fails, once or from then on. Kinds
// that only an option brings are failed under that option.
// Each request must give NULL and ENOMEM, or a good block; no live block may be damaged; and when the system gives again,
// the same script runs without a failure and the count of live objects returns to where it was.
#include <gtest/gtest.h>

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "alloc/allocate.h"
#include "brimful/brimful.h"
#include "fake_os.h"
#include "stats/snapshot.h"

namespace brimful {
namespace {

using testing::Call;
using testing::FakeOs;

struct Filled {
  unsigned char* start;
  std::size_t bytes;
  unsigned char value;

  void fill() const {
    // The ends, and one byte per page: all of a large block would cost more than it shows.
    for (std::size_t i = 0; i < bytes; i += 4096) start[i] = value;
    if (bytes > 0) start[bytes - 1] = value;
  }
  [[nodiscard]] bool is_intact(std::size_t upto) const {
    for (std::size_t i = 0; i < upto; i += 4096) {
      if (start[i] != value) return false;
    }
    return upto < bytes || bytes == 0 || start[bytes - 1] == value;
  }
};

std::size_t some_bytes(std::mt19937_64& random) {
  switch (random() % 16) {
    case 0:
      return 32769 + random() % 600000;
    case 1:
      return (1 << 20) + random() % (3 << 20);
    case 2:
      return (9 << 20) + random() % (4 << 20);  // above 1/8 of the reserve: a mapping of its own
    case 3:
    case 4:
    case 5:
      return random() % 32769;
    default:
      return random() % 1025;
  }
}

// Blocks that have to move when they grow: by moving their pages, and as mappings of their own.
void grow_large_blocks() {
  constexpr std::size_t kMiB = 1 << 20;
  for (const auto& [from, to] : {std::pair(2 * kMiB, 5 * kMiB), std::pair(10 * kMiB, 13 * kMiB)}) {
    Filled block = {static_cast<unsigned char*>(brimful_malloc(from)), from, 7};
    void* neighbour = brimful_malloc(from);
    if (block.start != nullptr) {
      block.fill();
      void* moved = brimful_realloc(block.start, to);
      if (moved != nullptr) block.start = static_cast<unsigned char*>(moved);
      EXPECT_TRUE(block.is_intact(from));
      brimful_free(block.start);
    }
    brimful_free(neighbour);
  }
}

// Runs the mix and frees all it made. Returns how many requests got NULL.
int requests() {
  grow_large_blocks();
  std::mt19937_64 random(11);
  std::vector<Filled> live;
  int refused = 0;
  const auto check_refusal = [&refused](int error) {
    EXPECT_EQ(error, ENOMEM);
    ++refused;
  };
  for (int step = 0; step < 150; ++step) {
    const std::size_t bytes = some_bytes(random);
    const std::uint64_t choice = random() % 10;
    const std::size_t alignment = std::size_t{16} << random() % 18;
    const std::uint64_t picked = random();
    if (choice < 6 || live.empty()) {
      errno = 0;
      void* result = choice < 3   ? brimful_malloc(bytes)
                     : choice < 5 ? brimful_calloc(1, bytes)
                                  : brimful_aligned_alloc(alignment, bytes);
      if (result == nullptr) {
        check_refusal(errno);
        continue;
      }
      EXPECT_EQ(errno, 0) << "a call that succeeds leaves errno alone";
      const Filled block = {static_cast<unsigned char*>(result), bytes, static_cast<unsigned char>(1 + step % 255)};
      EXPECT_GE(brimful_usable_size(result), bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(result) % (choice == 5 ? alignment : 16), 0U);
      if (choice == 3 || choice == 4) {
        for (std::size_t i = 0; i < bytes; i += 509) EXPECT_EQ(block.start[i], 0) << i;
      }
      block.fill();
      live.push_back(block);
    } else if (choice < 8) {
      Filled& block = live[picked % live.size()];
      errno = 0;
      void* result = brimful_realloc(block.start, bytes + 1);
      if (result == nullptr) {
        check_refusal(errno);
        EXPECT_TRUE(block.is_intact(block.bytes)) << "the old block is still whole";
        continue;
      }
      const std::size_t kept = std::min(block.bytes, bytes + 1);
      block.start = static_cast<unsigned char*>(result);
      block.bytes = std::max(kept, std::size_t{1});
      EXPECT_TRUE(block.is_intact(kept < block.bytes ? 0 : kept - 1));
      block.bytes = bytes + 1;
      block.fill();
    } else {
      std::swap(live[picked % live.size()], live.back());
      EXPECT_TRUE(live.back().is_intact(live.back().bytes));
      brimful_free(live.back().start);
      live.pop_back();
    }
    if (step == 75) alloc::trim();
  }
  for (const Filled& block : live) {
    EXPECT_TRUE(block.is_intact(block.bytes));
    errno = 4711;
    brimful_free(block.start);
    EXPECT_EQ(errno, 4711);
  }
  return refused;
}

std::uint64_t live_objects() {
  alloc::trim();  // frees that wait for their owner count as live
  stats::Snapshot snapshot;
  stats::take_snapshot(snapshot);
  std::uint64_t live = snapshot.large_blocks + snapshot.huge_blocks;
  for (const stats::ClassUse& use : snapshot.classes) live += use.live;
  return live;
}

// Runs `body` in a process of its own; its failures are printed there and fail this test.
template <class Body>
void in_fresh_process(const char* conf, Body body) {
  std::fflush(nullptr);
  // Not by fork(): its handlers would start the allocator in this process, and no child would be fresh.
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, nullptr));
  ASSERT_GE(child, 0);
  if (child == 0) {
    setenv("BRIMFUL_CONF", (std::string("reserve:64M,") + conf).c_str(), 1);
    body();
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
}

// One kind of call, or any when there is none, and the options.
struct Case {
  std::optional<Call> kind;
  const char* conf = "";
  const char* suffix = "";
  std::size_t step = 1;  // not every n where a refusal is but an answer
};

class EveryCall : public ::testing::TestWithParam<Case> {
 protected:
  // How many there are when nothing fails, told by the exit status of a pipe.
  static std::size_t count() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    in_fresh_process(GetParam().conf, [&ends] {
      FakeOs os;
      EXPECT_EQ(requests(), 0);
      const std::optional<Call> kind = GetParam().kind;
      const std::size_t n = kind ? os.count(*kind) : os.total() - os.count(Call::kUnmap) - os.count(Call::kIsResident);
      EXPECT_EQ(write(ends[1], &n, sizeof n), static_cast<ssize_t>(sizeof n));
    });
    std::size_t n = 0;
    EXPECT_EQ(read(ends[0], &n, sizeof n), static_cast<ssize_t>(sizeof n));
    close(ends[0]);
    close(ends[1]);
    return n;
  }

  static void fail_each(std::size_t times) {
    const std::size_t total = count();
    ASSERT_GT(total, 0U);
    for (std::size_t n = 1; n <= total && !HasFailure(); n += GetParam().step) {
      SCOPED_TRACE("call " + std::to_string(n) + " of " + std::to_string(total));
      in_fresh_process(GetParam().conf, [n, times] {
        FakeOs os;
        const std::optional<Call> kind = GetParam().kind;
        kind ? os.fail(*kind, n, times) : os.fail_any(n, times);
        requests();
        EXPECT_GE(os.succeed(), 1U) << "the call to fail did not come";
        EXPECT_EQ(live_objects(), 0U);
        EXPECT_EQ(requests(), 0) << "works as if nothing had happened";
        EXPECT_EQ(live_objects(), 0U);
      });
    }
  }
};

TEST_P(EveryCall, MayFailOnce) { fail_each(1); }

TEST_P(EveryCall, MayFailFromSomeMomentOn) { fail_each(FakeOs::kAlways); }

// What a refusal of one kind may leave undone is the same whatever the options; they bring the others.
constexpr Case kCases[] = {
    {std::nullopt},
    {Call::kMap},
    {Call::kReserve},
    {Call::kCommit},
    {Call::kPurge},
    {Call::kUnmap},
    {Call::kMovePages},
    {Call::kResize},
    {Call::kAdvise},
    {Call::kIsResident, "", "", 50},
    {Call::kMap, "tier:hardened", "_hardened"},
    {Call::kCommit, "tier:hardened", "_hardened"},
    {Call::kMap, "guards:1", "_guards"},
    {Call::kCommit, "guards:1", "_guards"},
    {Call::kSeal, "guards:1", "_guards"},
    {Call::kMap, "prof:4096", "_prof"},
    {Call::kCommit, "prof:4096", "_prof"},
    {Call::kHugetlb, "hugetlb:2M", "_hugetlb"},
    {Call::kAdvise, "populate:all", "_populate"},
    {Call::kAdvise, "thp:always", "_thp"},
};

INSTANTIATE_TEST_SUITE_P(Allocator, EveryCall, ::testing::ValuesIn(kCases), [](const auto& info) {
  return std::string(info.param.kind ? testing::name_of(*info.param.kind) : "any") + info.param.suffix;
});

}  // namespace
}  // namespace brimful
