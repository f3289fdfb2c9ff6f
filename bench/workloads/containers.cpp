// SPDX-License-Identifier: MIT
//
// containers: words are counted in an unordered_map, indexed in a map of vectors, and joined to lines of text.
//
// Written for this bench, after what most C++ programs spend their mallocs on: the standard containers with strings
// in them (J. Lakos and others, "On Quantifying Memory-Allocation Strategies", WG21 P0089, 2016, measure the same
// kinds). Nodes of several sizes, strings too long for the small-string buffer, vectors that double, tables that are
// rehashed; frequent words come back often, rare ones hardly ever. All through operator new and delete.
//
// The result is compared with a model that keeps the same facts in plain arrays.
//
//   --words N (different words, 100 … 1000000; default 40000)
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "live.h"

using namespace workload;

namespace {

thread_local Live live;

// operator new, counted.
template <class T>
struct Counted {
  using value_type = T;
  Counted() = default;
  template <class U>
  Counted(const Counted<U>&) {}  // NOLINT(google-explicit-constructor): what an allocator must offer
  T* allocate(std::size_t count) {
    live.add(count * sizeof(T));
    return static_cast<T*>(::operator new(count * sizeof(T)));
  }
  void deallocate(T* object, std::size_t count) {
    live.subtract(count * sizeof(T));
    ::operator delete(object);
  }
  friend bool operator==(const Counted&, const Counted&) { return true; }
};

using String = std::basic_string<char, std::char_traits<char>, Counted<char>>;
using Places = std::vector<std::uint32_t, Counted<std::uint32_t>>;
struct Hash {
  std::size_t operator()(const String& text) const {
    return std::hash<std::string_view>()(std::string_view(text.data(), text.size()));
  }
};
using Counter = std::unordered_map<String, std::uint32_t, Hash, std::equal_to<String>,
                                   Counted<std::pair<const String, std::uint32_t>>>;
using Index = std::map<String, Places, std::less<String>, Counted<std::pair<const String, Places>>>;

// The text of a word: its number in base 26, then letters that follow from it, 4 to 35 in all.
String word(std::uint32_t id) {
  String text;
  for (std::uint32_t rest = id, i = 0; i < 4; i++, rest /= 26) text += static_cast<char>('a' + rest % 26);
  Random random(id);
  for (std::uint32_t more = random.below(32); more > 0; more--) text += static_cast<char>('a' + random.below(26));
  return text;
}

// What the containers must hold in the end, by the word's number.
struct Model {
  std::uint32_t times;    // counted
  std::uint32_t indexed;  // places in the index now
  std::uint64_t sum;      // of these places
};

class Work {
 public:
  Work(std::uint32_t words, std::uint64_t seed) : random_(seed), words_(words) {
    model_ = static_cast<Model*>(std::calloc(words, sizeof(Model)));
    if (model_ == nullptr) fail("calloc returned NULL");
    live.add(words * sizeof(Model));
  }
  ~Work() {
    std::free(model_);
    live.subtract(words_ * sizeof(Model));
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  void run(std::uint64_t steps) {
    String line;
    for (std::uint64_t i = 0; i < steps; i++) {
      const std::uint32_t id = pick();
      const String text = word(id);
      counter_[text]++;
      model_[id].times++;
      index_[text].push_back(static_cast<std::uint32_t>(i));
      model_[id].indexed++;
      model_[id].sum += static_cast<std::uint32_t>(i);
      if (i % 2 == 0) forget(pick());
      extend(line, text);
    }
  }

  void verify() const {
    std::uint64_t counted = 0;
    std::uint64_t indexed = 0;
    for (std::uint32_t id = 0; id < words_; id++) {
      const Model& expected = model_[id];
      const String text = word(id);
      const auto count = counter_.find(text);
      if ((count == counter_.end() ? 0 : count->second) != expected.times) fail("containers: a count is wrong");
      const auto places = index_.find(text);
      if ((places == index_.end() ? 0 : places->second.size()) != expected.indexed) fail("containers: places are lost");
      std::uint64_t sum = 0;
      if (places != index_.end())
        for (const std::uint32_t place : places->second) sum += place;
      if (sum != expected.sum) fail("containers: places are wrong");
      counted += expected.times != 0;
      indexed += expected.indexed != 0;
    }
    if (counted != counter_.size() || indexed != index_.size()) fail("containers: there are words that never were");
    if (letters_ != kept_) fail("containers: letters were lost");
  }

 private:
  // Small numbers are the frequent ones: the product of two uniform numbers.
  std::uint32_t pick() { return static_cast<std::uint32_t>(random_.unit() * random_.unit() * words_); }

  void forget(std::uint32_t id) {
    index_.erase(word(id));
    model_[id].indexed = 0;
    model_[id].sum = 0;
  }

  // Joins words to a line; a full one is cut into its words again and the letters are counted.
  void extend(String& line, const String& text) {
    line = line.empty() ? text : line + ' ' + text;
    letters_ += text.size();
    kept_ += text.size();
    if (line.size() < 160) return;
    kept_ -= line.size();
    for (std::size_t at = 0; at <= line.size();) {
      const std::size_t end = line.find(' ', at);
      const String piece = line.substr(at, end == String::npos ? end : end - at);
      kept_ += piece.size() + 1;
      at += piece.size() + 1;
    }
    kept_--;
    line.clear();
  }

  Random random_;
  std::uint32_t words_;
  Model* model_;
  Counter counter_;
  Index index_;
  std::uint64_t letters_ = 0;
  std::uint64_t kept_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto words = static_cast<std::uint32_t>(arguments.integer("words", 40000, 100, 1000000));
  arguments.check();

  Report report("containers", common.threads);
  const std::uint64_t steps = (common.scaled(4e5) + common.threads - 1) / common.threads;
  const auto body = [&](unsigned index) {
    {
      Work work(words, common.seed * 4099 + index);
      work.run(steps);
      work.verify();
    }
    if (live.now != 0) fail("containers: memory was leaked");
    return live.most;
  };
  run_timed(report, common.threads, body);
  report.operations = steps * common.threads;
  return report.print();
}
