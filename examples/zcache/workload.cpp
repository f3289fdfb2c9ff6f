// SPDX-License-Identifier: MIT
#include "workload.h"

#include <algorithm>
#include <cstring>
#include <ctime>

#include "progress.h"
#include "resident.h"

namespace zcache {
namespace {

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9E3779B97F4A7C15);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EB;
    return mixed ^ (mixed >> 31);
  }
  std::size_t below(std::size_t limit) { return next() % limit; }
  bool happens(double percent) { return static_cast<double>(next() >> 11) * 0x1p-53 * 100 < percent; }

 private:
  std::uint64_t state_;
};

// How long calls of one kind took; of very many calls the last ones.
class Stopwatch {
 public:
  explicit Stopwatch(std::size_t most_calls) : ns_(std::clamp<std::size_t>(most_calls, 1, kMostKept)) {}

  template <typename Call>
  auto time(Call&& call) {
    const std::uint64_t began = now_ns();
    const auto result = call();
    ns_[calls_++ % ns_.size()] = static_cast<std::uint32_t>(std::min<std::uint64_t>(now_ns() - began, UINT32_MAX));
    return result;
  }

  Times times() {
    Times result;
    if (calls_ == 0) return result;
    const std::size_t kept = std::min(calls_, ns_.size());
    std::uint32_t* end = ns_.data() + kept;
    std::sort(ns_.data(), end);
    double sum = 0;
    for (const std::uint32_t* i = ns_.data(); i != end; ++i) sum += *i;
    result.calls = calls_;
    result.mean = sum / static_cast<double>(kept);
    result.median = ns_[kept / 2];
    result.p99 = ns_[kept - 1 - kept / 100];
    result.most = *(end - 1);
    return result;
  }

 private:
  Table<std::uint32_t> ns_;  // not malloc's: it would be weighed with the values
  std::size_t calls_ = 0;

  static constexpr std::size_t kMostKept = std::size_t{1} << 22;
};

std::unique_ptr<ValueMemory> make_memory(const Options& options) {
  if (!options.handles) return make_malloc_memory();
  return make_handle_memory({options.piece, options.waste_percent, options.moves});
}

// Keys are 0 … pieces - 1; what each has is a number of a piece, which need not be its own.
class Workload {
 public:
  Workload(const Options& options, const Corpus& corpus)
      : options_(options),
        corpus_(corpus),
        changes_(static_cast<std::size_t>(options.churn * static_cast<double>(corpus.pieces()))),
        random_(options.seed),
        codec_(make_codec(options.codec, options.level, options.piece)),
        memory_(make_memory(options)),
        cache_({corpus.pieces(), options.piece, options.limit == 0 ? ~std::size_t{0} : options.limit}, *codec_,
               *memory_),
        piece_of_(corpus.pieces()),
        value_(options.piece),
        puts_(corpus.pieces() + changes_),
        gets_(corpus.pieces() + changes_),
        erases_(corpus.pieces() + changes_) {
    outcome_.weights.reserve(3);
  }

  Outcome run() {
    before_ = resident();
    load();
    weigh("loaded");
    churn();
    weigh("churned");
    thin();
    weigh("thinned");
    verify();
    outcome_.put = puts_.times();
    outcome_.get = gets_.times();
    outcome_.erase = erases_.times();
    return outcome_;
  }

 private:
  static constexpr std::uint32_t kErased = 0;  // piece_of_: a piece's number + 1

  void put(std::size_t key, std::size_t piece) {
    const bool done = puts_.time([&] { return cache_.put(key, corpus_[piece]); });
    piece_of_[key] = done ? static_cast<std::uint32_t>(piece + 1) : kErased;
    if (!done) ++outcome_.refused;
  }

  void erase(std::size_t key) {
    erases_.time([&] { return cache_.erase(key); });
    piece_of_[key] = kErased;
  }

  // Reads and compares. A value that was put may have been evicted, if there is a limit.
  void get(std::size_t key) {
    std::size_t bytes = 0;
    const Got got = gets_.time([&] { return cache_.get(key, {value_.data(), value_.size()}, &bytes); });
    if (got == Got::kAbsent && (piece_of_[key] == kErased || cache_.use().evicted != 0)) return;
    if (got == Got::kFound && piece_of_[key] != kErased) {
      const Bytes expected = corpus_[piece_of_[key] - 1];
      if (bytes == expected.size() && std::memcmp(value_.data(), expected.data(), bytes) == 0) return;
    }
    ++outcome_.wrong;
  }

  void load() {
    Progress progress("loading", corpus_.pieces());
    for (std::size_t i = 0; i < corpus_.pieces(); ++i) {
      progress.tick(i);
      put(i, i);
    }
  }

  void churn() {
    Progress progress("churning", changes_);
    for (std::size_t i = 0; i < changes_; ++i) {
      progress.tick(i);
      const std::size_t key = random_.below(corpus_.pieces());
      if (random_.happens(options_.erase_percent)) {
        erase(key);
      } else {
        put(key, random_.below(corpus_.pieces()));
      }
      get(random_.below(corpus_.pieces()));
    }
  }

  void thin() {
    Progress progress("thinning", corpus_.pieces());
    const auto left = static_cast<std::size_t>(options_.thin_percent / 100 * static_cast<double>(corpus_.pieces()));
    while (cache_.use().keys > left) {
      progress.tick(corpus_.pieces() - cache_.use().keys);
      erase(random_.below(corpus_.pieces()));
    }
  }

  void verify() {
    Progress progress("checking", corpus_.pieces());
    for (std::size_t i = 0; i < corpus_.pieces(); ++i) {
      progress.tick(i);
      get(i);
    }
  }

  std::size_t growth(std::size_t now) const { return now > before_.bytes ? now - before_.bytes : 0; }

  void weigh(const char* state) {
    const Resident now = resident();
    outcome_.weights.push_back(
        {state, cache_.use(), memory_->use(), growth(now.bytes), now.lazy_free, growth(now.bytes)});
    if (options_.settle <= 0) return;
    settle();
    outcome_.weights.back().settled = growth(resident().bytes);
  }

  // Allocators that give memory back late do so in calls: a few values are put again as they are, 200 a second.
  void settle() {
    Progress progress("settling", 0);
    const std::uint64_t end = now_ns() + static_cast<std::uint64_t>(options_.settle * 1e9);
    while (now_ns() < end) {
      progress.tick(0);
      const std::size_t key = random_.below(corpus_.pieces());
      if (piece_of_[key] != kErased) cache_.put(key, corpus_[piece_of_[key] - 1]);
      const timespec pause{0, 5'000'000};
      nanosleep(&pause, nullptr);
    }
  }

  const Options& options_;
  const Corpus& corpus_;
  std::size_t changes_;
  Random random_;
  std::unique_ptr<Codec> codec_;
  std::unique_ptr<ValueMemory> memory_;
  Cache cache_;
  Table<std::uint32_t> piece_of_;
  Table<std::byte> value_;
  Stopwatch puts_;
  Stopwatch gets_;
  Stopwatch erases_;
  Resident before_;
  Outcome outcome_;
};

}  // namespace

Outcome run(const Options& options, const Corpus& corpus) { return Workload(options, corpus).run(); }

}  // namespace zcache
