// SPDX-License-Identifier: MIT
//
// Depth-first exploration with replay; see explorer.h.
#include "explorer.h"

#include <bit>
#include <memory>

namespace brimful::model {
namespace {

constexpr size_t kLongestRun = 5000;

uint64_t mix(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9E3779B97F4A7C15u + (hash << 6) + (hash >> 2);
  hash *= 0xBF58476D1CE4E5B9u;
  return hash ^ (hash >> 29);
}

// The states that were seen: a table of their hashes with open addressing, because the set is asked once a state, and a
// list node for each would cost more than the step that led there.
class Seen {
 public:
  // Whether it is new.
  bool insert(uint64_t hash) {
    if (hash == 0) hash = 1;  // 0: an empty place
    if (2 * (count_ + 1) > places_.size()) grow();
    if (!place(hash)) return false;
    ++count_;
    return true;
  }
  [[nodiscard]] size_t size() const { return count_; }

 private:
  bool place(uint64_t hash) {
    const size_t mask = places_.size() - 1;
    size_t at = hash & mask;
    while (places_[at] != 0) {
      if (places_[at] == hash) return false;
      at = (at + 1) & mask;
    }
    places_[at] = hash;
    return true;
  }
  void grow() {
    std::vector<uint64_t> before(places_.size() * 2);
    before.swap(places_);
    for (const uint64_t hash : before) {
      if (hash != 0) place(hash);
    }
  }

  std::vector<uint64_t> places_ = std::vector<uint64_t>(1024);
  size_t count_ = 0;
};

// What the explorer can do next.
struct Choice {
  enum class What : uint8_t { kStep, kFlush, kRun } what;
  uint8_t thread;
  uint8_t context;  // kRun
};

class Run {
 public:
  explicit Run(const std::function<World*()>& make) : world_(make()) {
    for (Thread& thread : world_->threads) tasks_.push_back(world_->run(thread));
    for (Task<void>& task : tasks_) task.start();
  }

  World& world() { return *world_; }

  std::vector<Choice> choices() {
    std::vector<Choice> found;
    for (const Thread& thread : world_->threads) {
      if (thread.running && !tasks_[thread.index].is_done() && is_next_private(thread)) {
        return {{Choice::What::kStep, static_cast<uint8_t>(thread.index), 0}};
      }
    }
    for (Thread& thread : world_->threads) {
      const auto index = static_cast<uint8_t>(thread.index);
      if (!thread.buffer.empty()) found.push_back({Choice::What::kFlush, index, 0});
      if (tasks_[index].is_done()) continue;
      if (thread.running) {
        if (is_enabled(thread)) found.push_back({Choice::What::kStep, index, 0});
        continue;
      }
      for (uint64_t left = thread.allowed; left != 0; left &= left - 1) {
        const auto context = static_cast<uint8_t>(std::countr_zero(left));
        const Thread* holder = holder_of(context);
        if (holder != nullptr && is_enabled(*holder) && world_->preemptions_left == 0) continue;
        found.push_back({Choice::What::kRun, index, context});
      }
    }
    return found;
  }

  bool is_finished() const {
    for (const Task<void>& task : tasks_) {
      if (!task.is_done()) return false;
    }
    for (const Thread& thread : world_->threads) {
      if (!thread.buffer.empty()) return false;
    }
    return true;
  }

  // Does it; adds its description to `text` if there is one. The invariant is not looked at: a step that is done again on
  // the way to another choice was found good before.
  void perform(const Choice& choice, std::string* text = nullptr) {
    Thread& thread = world_->threads[choice.thread];
    if (text != nullptr) *text += "  thread " + std::to_string(choice.thread) + ": ";
    switch (choice.what) {
      case Choice::What::kFlush:
        if (text != nullptr) *text += "its store to " + world_->name_of(thread.buffer.front().first) + " lands";
        flush_one(thread);
        break;
      case Choice::What::kRun: {
        Thread* holder = holder_of(choice.context);
        if (holder != nullptr) {
          if (is_enabled(*holder)) --world_->preemptions_left;  // one that waits leaves its CPU by itself
          preempt(*holder);
        }
        thread.context = choice.context;
        thread.running = true;
        if (text != nullptr) *text += "runs in context " + std::to_string(choice.context);
        break;
      }
      case Choice::What::kStep:
        step(thread, text);
        break;
    }
    if (text != nullptr) *text += '\n';
  }

  uint64_t hash() const {
    // Four chains, because each step of one waits for the step before it.
    std::array<uint64_t, 4> chains = {1, 2, 3, 4};
    static_assert(kCells % chains.size() == 0 && kGhosts % chains.size() == 0);
    const auto add_all = [&](const auto& words) {
      for (size_t i = 0; i < words.size(); i += chains.size()) {
        for (size_t k = 0; k < chains.size(); ++k) chains[k] = mix(chains[k], words[i + k]);
      }
    };
    add_all(world_->cells);
    add_all(world_->ghosts);
    uint64_t hash = world_->preemptions_left;
    for (const uint64_t chain : chains) hash = mix(hash, chain);
    for (const Thread& thread : world_->threads) {
      hash = mix(hash, thread.history);
      hash = mix(hash, static_cast<uint64_t>(thread.context) << 3 | thread.running << 2 | thread.in_section << 1 |
                           static_cast<uint64_t>(thread.aborted));
      for (const auto& [cell, value] : thread.buffer) hash = mix(mix(hash, cell + 1), value);
    }
    return hash;
  }

 private:
  Thread* holder_of(unsigned context) {
    for (Thread& thread : world_->threads) {
      // A thread that has ended leaves its CPU.
      if (thread.running && thread.context == context && !tasks_[thread.index].is_done()) return &thread;
    }
    return nullptr;
  }

  bool is_next_private(const Thread& thread) const {
    const Operation& operation = *thread.operation;
    if (operation.kind == Kind::kBegin) return world_->is_undisturbed(thread);
    if (operation.kind != Kind::kLoad && operation.kind != Kind::kStore) return false;
    return world_->is_private(operation.cell, thread);
  }

  bool is_enabled(const Thread& thread) const {
    const Operation& operation = *thread.operation;
    if (thread.in_section && thread.aborted) return true;
    if (operation.kind == Kind::kLock) return world_->cells[operation.cell] == 0;
    if (operation.kind == Kind::kAwait) return operation.code() != 0;
    return true;
  }

  void flush_one(Thread& thread) {
    world_->cells[thread.buffer.front().first] = thread.buffer.front().second;
    thread.buffer.erase(thread.buffer.begin());
  }

  void flush_all(Thread& thread) {
    while (!thread.buffer.empty()) flush_one(thread);
  }

  void preempt(Thread& thread) {
    flush_all(thread);  // the kernel's own barriers
    thread.running = false;
    if (thread.in_section) thread.aborted = true;
  }

  uint64_t execute(Thread& thread, const Operation& operation) {
    uint64_t& cell = world_->cells[operation.cell];
    switch (operation.kind) {
      case Kind::kLoad:
        for (auto entry = thread.buffer.rbegin(); entry != thread.buffer.rend(); ++entry) {
          if (entry->first == operation.cell) return entry->second;
        }
        return cell;
      case Kind::kStore:
        if (world_->is_private(operation.cell, thread)) {
          cell = operation.value;
        } else {
          thread.buffer.emplace_back(operation.cell, operation.value);
        }
        return 0;
      case Kind::kBarrier:
        for (Thread& other : world_->threads) {
          flush_all(other);
          if (other.in_section) other.aborted = true;
        }
        return 0;
      case Kind::kAwait:
        return operation.code();
      case Kind::kBegin:
        thread.in_section = true;
        thread.aborted = false;
        return thread.context;
      default:
        break;
    }
    flush_all(thread);
    const uint64_t before = cell;
    switch (operation.kind) {
      case Kind::kOr:
        cell |= operation.value;
        break;
      case Kind::kAnd:
        cell &= operation.value;
        break;
      case Kind::kAdd:
        cell += operation.value;
        break;
      case Kind::kExchange:
        cell = operation.value;
        break;
      case Kind::kCompareExchange:
        if (before == operation.expected) cell = operation.value;
        break;
      case Kind::kLock:
        cell = 1;
        break;
      case Kind::kAtomic:
        return operation.code();
      default:
        break;
    }
    return before;
  }

  void step(Thread& thread, std::string* text) {
    const Operation& operation = *thread.operation;
    const bool skipped = thread.in_section && thread.aborted;
    thread.result = skipped ? 0 : execute(thread, operation);
    thread.history = mix(mix(thread.history, thread.result), thread.context << 1 | static_cast<unsigned>(skipped));
    if (text != nullptr) *text += skipped ? "its section is aborted" : describe(operation, thread.result);
    thread.leaf.resume();
    if (tasks_[thread.index].is_done()) flush_all(thread);  // whoever runs here next comes after a switch
  }

  std::string describe(const Operation& operation, uint64_t result) const {
    const std::string name = world_->name_of(operation.cell);
    const std::string value = std::to_string(operation.value);
    const std::string found = std::to_string(result);
    switch (operation.kind) {
      case Kind::kLoad:
        return "reads " + name + ": " + found;
      case Kind::kStore:
        return "stores " + value + " to " + name;
      case Kind::kOr:
        return "ors " + value + " into " + name + ", which was " + found;
      case Kind::kAnd:
        return "clears " + std::to_string(~operation.value) + " of " + name + ", which was " + found;
      case Kind::kAdd:
        return "adds " + std::to_string(static_cast<int64_t>(operation.value)) + " to " + name + ", which was " + found;
      case Kind::kExchange:
        return "exchanges " + name + " for " + value + ", which was " + found;
      case Kind::kCompareExchange:
        return std::string(result == operation.expected ? "changes " : "fails to change ") + name + " from " +
               std::to_string(operation.expected) + " to " + value + ", which was " + found;
      case Kind::kLock:
        return "locks " + name;
      case Kind::kBegin:
        return "begins a section in context " + found;
      case Kind::kFence:
        return "fence";
      case Kind::kBarrier:
        return "membarrier";
      default:
        return std::string(operation.label) + ": " + found;
    }
  }

  std::unique_ptr<World> world_;
  std::vector<Task<void>> tasks_;
};

}  // namespace

World::World(unsigned thread_count) : threads(thread_count) {
  for (unsigned i = 0; i < thread_count; ++i) {
    threads[i].index = i;
    threads[i].world = this;
  }
}

uint64_t World::settled(Cell cell) const {
  uint64_t value = cells[cell];
  for (const Thread& thread : threads) {
    for (const auto& [written, stored] : thread.buffer) {
      if (written == cell) value = stored;
    }
  }
  return value;
}

std::array<uint64_t, kCells> World::all_settled() const {
  std::array<uint64_t, kCells> all = cells;
  for (const Thread& thread : threads) {
    for (const auto& [cell, value] : thread.buffer) all[cell] = value;
  }
  return all;
}

Result explore(const std::function<World*()>& make, uint64_t max_states) {
  Result result;
  Seen seen;
  struct Level {
    std::vector<Choice> choices;
    size_t next;
  };
  std::vector<Level> path;
  auto run = std::make_unique<Run>(make);
  ++result.runs;
  const auto trace = [&] {
    Run again(make);
    std::string text;
    for (const Level& level : path) {
      if (level.next > 0) again.perform(level.choices[level.next - 1], &text);
    }
    return text;
  };
  seen.insert(run->hash());
  path.push_back({run->choices(), 0});
  bool stale = false;  // `run` stands deeper than `path` says
  while (!path.empty()) {
    Level& level = path.back();
    if (level.next == level.choices.size()) {
      path.pop_back();
      stale = true;
      continue;
    }
    if (stale) {
      run = std::make_unique<Run>(make);
      ++result.runs;
      for (size_t i = 0; i + 1 < path.size(); ++i) run->perform(path[i].choices[path[i].next - 1]);
      stale = false;
    }
    run->perform(level.choices[level.next++]);
    if (!run->world().stopped) run->world().check_always();
    if (!run->world().fault.empty()) {
      result.fault = run->world().fault;
      result.trace = trace();
      break;
    }
    if (run->world().stopped || !seen.insert(run->hash())) {
      stale = true;
      continue;
    }
    Level next = {run->choices(), 0};
    if (next.choices.empty() || path.size() > kLongestRun) {
      if (run->is_finished()) {
        run->world().check_end();
      } else {
        run->world().fail(next.choices.empty() ? "deadlock" : "a run that does not end");
      }
      if (!run->world().fault.empty()) {
        result.fault = run->world().fault;
        result.trace = trace();
        break;
      }
    }
    path.push_back(std::move(next));
    if (seen.size() >= max_states) break;
  }
  result.states = seen.size();
  result.complete = path.empty();
  return result;
}

}  // namespace brimful::model
