// SPDX-License-Identifier: MIT
//
// workloads.h.
#include "workloads.h"

#include <cstdlib>
#include <numeric>

#include "brimful/brimful.h"

namespace brimful::topology {
namespace {

constexpr unsigned kTurn = 32;          // operations of one turn, about
constexpr std::size_t kHeld = 200;      // objects that a CPU keeps
constexpr std::size_t kQueue = 256;     // objects on their way between two CPUs
constexpr unsigned kTurnsOfTask = 20;   // until a task moves
constexpr std::size_t kBurst = 512;     // objects for each CPU
constexpr unsigned kTurnOfPhase = 128;  // operations of a turn of the workload "phases"
constexpr unsigned kTurnsOfPhase = 16;  // turns that fill, then as many that free
// The clock of the simulation: a turn takes this long, 100 ns for an operation and what the program does with it.
constexpr double kTurnMs = kTurn * 100e-6;

// Replaces random objects of a set, which grows to `most` first.
void churn(Program& program, Objects& set, std::size_t most) {
  for (unsigned i = 0; i < kTurn / 2; ++i) {
    if (set.size() < most) {
      set.push_back(program.allocate());
      continue;
    }
    Object& old = set[program.random() % set.size()];
    program.free(old);
    old = program.allocate();
  }
}

void local(Program& program, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    program.round([&program](unsigned cpu) { churn(program, program.held[cpu], kHeld); });
  }
}

// The first half of the CPUs makes what the second half frees: with more nodes than one, pairs lie in different ones.
void pairs(Program& program, unsigned rounds) {
  const unsigned half = (program.machine.cpus() + 1) / 2;
  for (unsigned i = 0; i < rounds; ++i) {
    program.round([&program, half](unsigned cpu) {
      if (cpu < half) {
        auto& queue = program.inbox[std::min(cpu + half, program.machine.cpus() - 1)];
        for (unsigned n = 0; n < kTurn && queue.size() < kQueue; ++n) queue.push_back(program.allocate());
      }
      if (cpu >= half || program.machine.cpus() == 1) {
        auto& queue = program.inbox[cpu];
        for (unsigned n = 0; n < kTurn && !queue.empty(); ++n) {
          program.free(queue.front());
          queue.pop_front();
        }
      }
    });
  }
}

// As larson: a set of objects is worked on by one CPU, then by the next.
void hand_over(Program& program, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    program.round([&program](unsigned cpu) { churn(program, program.held[cpu], kHeld); });
    if (i % kTurnsOfTask == kTurnsOfTask - 1) {
      std::rotate(program.held.begin(), program.held.begin() + 1, program.held.end());
    }
  }
}

// Every CPU sends single objects to CPUs at random, and frees what it got.
void mailbox(Program& program, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    program.round([&program](unsigned cpu) {
      for (unsigned n = 0; n < kTurn / 2; ++n) {
        program.inbox[program.random() % program.machine.cpus()].push_back(program.allocate());
      }
      auto& queue = program.inbox[cpu];
      while (!queue.empty()) {
        program.free(queue.front());
        queue.pop_front();
      }
    });
  }
}

// One CPU allocates for all, all free: neighbours in memory go to different CPUs.
void burst(Program& program, unsigned rounds) {
  const unsigned cpus = program.machine.cpus();
  const unsigned bursts = std::max(1U, rounds * kTurn / 2 / static_cast<unsigned>(kBurst));
  for (unsigned i = 0; i < bursts; ++i) {
    program.machine.run_on(i % cpus);
    for (std::size_t n = 0; n < kBurst * cpus; ++n) program.held[n % cpus].push_back(program.allocate());
    while (!program.held[0].empty()) {
      program.round([&program](unsigned cpu) {
        for (unsigned n = 0; n < kTurn && !program.held[cpu].empty(); ++n) {
          program.free(program.held[cpu].back());
          program.held[cpu].pop_back();
        }
      });
    }
  }
}

// Every CPU fills its memory, then frees all of it: the heap lock's worst, because all want slabs at the same time.
void phases(Program& program, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    const bool fills = i / kTurnsOfPhase % 2 == 0;
    program.round([&program, fills](unsigned cpu) {
      Objects& set = program.held[cpu];
      for (unsigned n = 0; n < kTurnOfPhase && (fills || !set.empty()); ++n) {
        if (fills) {
          set.push_back(program.allocate());
        } else {
          program.free(set.back());
          set.pop_back();
        }
      }
    });
  }
}

// Tasks with objects of their own are moved to other CPUs by the scheduler, all of them now and then.
void migration(Program& program, unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    program.round([&program](unsigned cpu) { churn(program, program.held[cpu], kHeld); });
    if (i % kTurnsOfTask == kTurnsOfTask - 1) {
      std::shuffle(program.held.begin(), program.held.end(), program.random);
    }
  }
}

}  // namespace

const std::array<Workload, 7> kWorkloads = {{
    {"local", "each CPU replaces objects of its own", local},
    {"pairs", "one half of the CPUs allocates, the other frees", pairs},
    {"hand-over", "sets of objects pass to the next CPU every 20 turns (as larson)", hand_over},
    {"mailbox", "single objects to CPUs at random, all to all", mailbox},
    {"burst", "one CPU allocates, all free", burst},
    {"phases", "every CPU allocates 2048 objects, then frees them", phases},
    {"migration", "tasks with live objects move to CPUs at random every 20 turns", migration},
}};

Program::Program(Machine& on, std::uint64_t seed) : machine(on), random(seed), held(on.cpus()), inbox(on.cpus()) {
  order_.resize(on.cpus());
  std::iota(order_.begin(), order_.end(), 0U);
}

// Three of four are small: 16 to 128 bytes; the others up to 1 KiB.
Object Program::allocate() {
  const std::uint64_t choice = random();
  return allocate(16 + (choice % 4 != 0 ? (choice >> 8) % 113 : (choice >> 8) % 1009));
}

Object Program::allocate(std::size_t bytes) {
  Object object = {static_cast<std::uint64_t*>(brimful_malloc(bytes)), static_cast<std::uint32_t>(bytes),
                   next_stamp_++};
  if (object.memory == nullptr) std::abort();
  object.memory[0] = object.stamp;
  object.memory[bytes / sizeof(std::uint64_t) - 1] = object.stamp;
  ++operations_;
  ++live_;
  return object;
}

void Program::free(const Object& object) {
  const std::uint64_t last = object.memory[object.bytes / sizeof(std::uint64_t) - 1];
  sound_ = sound_ && object.memory[0] == object.stamp && last == object.stamp;
  brimful_free(object.memory);
  ++operations_;
  --live_;
}

void Program::free_all() {
  round([this](unsigned cpu) {
    for (const Object& object : held[cpu]) free(object);
    for (const Object& object : inbox[cpu]) free(object);
    held[cpu].clear();
    inbox[cpu].clear();
  });
}

void Program::pass_time() {
  time_ms_ += kTurnMs;
  const auto whole = static_cast<std::uint64_t>(time_ms_);
  machine.pass_ms(whole);
  time_ms_ -= static_cast<double>(whole);
}

}  // namespace brimful::topology
