// SPDX-License-Identifier: MIT
//
// A trace summary, and the file that `make run` gives to the C++ compiler.
//
// It reads an allocation trace in ltrace's or mtrace's manner, one event a line
//     malloc(64) = 0x5581e0      calloc(10, 8) = 0x5581f0      realloc(0x5581e0, 128) = 0x558200
//     free(0x558200)
// replays it, and prints calls, live bytes and peak by size class, lifetimes, and what was never freed.
//
// What it imitates: today's application C++ as a compiler meets it. Ranges, std::regex, std::variant
// with visit, ordered and hashed maps, algorithms over tuples and string streams: the instantiations are
// what costs the compiler its time and memory, and they are all used, none is there for show.
//
//   g++ -std=c++20 -O2 -o heavy heavy.cpp && ./heavy < trace.txt

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdint>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <ranges>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

namespace {

struct Malloc {
  std::uint64_t size, result;
};
struct Calloc {
  std::uint64_t count, size, result;
};
struct Realloc {
  std::uint64_t old, size, result;
};
struct Free {
  std::uint64_t pointer;
};
using Event = std::variant<Malloc, Calloc, Realloc, Free>;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};

std::uint64_t number(const std::ssub_match& match) {
  const std::string text = match.str();
  const bool is_hex = text.starts_with("0x");
  std::uint64_t value = 0;
  const char* const begin = text.data() + (is_hex ? 2 : 0);
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value, is_hex ? 16 : 10);
  if (error != std::errc{} || end != text.data() + text.size()) throw std::invalid_argument("no number: " + text);
  return value;
}

// Turns one line into an event; lines that are none (comments, other calls) give nothing.
class Parser {
 public:
  std::optional<Event> parse(const std::string& line) const {
    std::smatch m;
    for (const auto& [pattern, make] : rules_) {
      if (std::regex_search(line, m, pattern)) return make(m);
    }
    return std::nullopt;
  }

 private:
  using Rule = std::pair<std::regex, std::function<Event(const std::smatch&)>>;

  static std::regex call(std::string_view name, std::string_view arguments, bool has_result) {
    std::ostringstream out;
    out << "\\b" << name << "\\(" << arguments << "\\)" << (has_result ? "\\s*=\\s*(0x[0-9a-f]+)" : "");
    return std::regex(out.str(), std::regex::ECMAScript | std::regex::icase | std::regex::optimize);
  }

  std::vector<Rule> rules_{
      {call("malloc", "(\\d+)", true),
       [](const std::smatch& m) -> Event {
         return Malloc{number(m[1]), number(m[2])};
       }},
      {call("calloc", "(\\d+),\\s*(\\d+)", true),
       [](const std::smatch& m) -> Event {
         return Calloc{number(m[1]), number(m[2]), number(m[3])};
       }},
      {call("realloc", "(0x[0-9a-f]+|0),\\s*(\\d+)", true),
       [](const std::smatch& m) -> Event {
         return Realloc{number(m[1]), number(m[2]), number(m[3])};
       }},
      {call("free", "(0x[0-9a-f]+)", false), [](const std::smatch& m) -> Event { return Free{number(m[1])}; }},
  };
};

struct Block {
  std::uint64_t size, born;
  auto operator<=>(const Block&) const = default;
};

struct ClassFigures {
  std::uint64_t calls = 0, live = 0, peak = 0;
  std::vector<std::uint64_t> lifetimes;
};

// The replay: which blocks are live, and what happened in each class of sizes.
class Heap {
 public:
  void apply(const Event& event) {
    ++clock_;
    std::visit(Overloaded{[&](const Malloc& e) { grow(e.result, e.size); },
                          [&](const Calloc& e) { grow(e.result, e.count * e.size); },
                          [&](const Realloc& e) {
                            if (e.old != 0) shrink(e.old);
                            grow(e.result, e.size);
                          },
                          [&](const Free& e) { shrink(e.pointer); }},
               event);
  }

  const std::map<std::uint64_t, ClassFigures>& classes() const { return classes_; }
  const std::multiset<std::uint64_t>& unknown() const { return unknown_; }

  // Live blocks, the largest first and of those the oldest first.
  std::vector<std::pair<std::uint64_t, Block>> leaks() const {
    std::vector<std::pair<std::uint64_t, Block>> result(live_.begin(), live_.end());
    std::ranges::sort(result, [](const auto& a, const auto& b) {
      return std::tuple(b.second.size, a.second.born, a.first) < std::tuple(a.second.size, b.second.born, b.first);
    });
    return result;
  }

 private:
  static std::uint64_t class_of(std::uint64_t size) { return size <= 16 ? 16 : std::bit_ceil(size); }

  void grow(std::uint64_t pointer, std::uint64_t size) {
    live_.insert_or_assign(pointer, Block{size, clock_});
    ClassFigures& figures = classes_[class_of(size)];
    ++figures.calls;
    figures.live += size;
    figures.peak = std::max(figures.peak, figures.live);
  }

  void shrink(std::uint64_t pointer) {
    const auto found = live_.find(pointer);
    if (found == live_.end()) {
      unknown_.insert(pointer);
      return;
    }
    ClassFigures& figures = classes_[class_of(found->second.size)];
    figures.live -= found->second.size;
    figures.lifetimes.push_back(clock_ - found->second.born);
    live_.erase(found);
  }

  std::uint64_t clock_ = 0;
  std::unordered_map<std::uint64_t, Block> live_;
  std::map<std::uint64_t, ClassFigures> classes_;
  std::multiset<std::uint64_t> unknown_;
};

template <std::ranges::random_access_range Range>
std::ranges::range_value_t<Range> quantile(Range values, double q) {
  if (std::ranges::empty(values)) return {};
  const auto at = std::ranges::begin(values) + static_cast<std::ptrdiff_t>(q * double(std::ranges::size(values) - 1));
  std::ranges::nth_element(values, at);
  return *at;
}

void print(const Heap& heap, std::ostream& out) {
  out << std::left << std::setw(12) << "class" << std::right;
  for (std::string_view title : {"calls", "live", "peak", "p50 life", "p99 life"}) out << std::setw(12) << title;
  out << '\n';
  for (const auto& [size, figures] : heap.classes()) {
    out << std::left << std::setw(12) << size << std::right;
    const std::array row{figures.calls, figures.live, figures.peak, quantile(figures.lifetimes, 0.5),
                         quantile(figures.lifetimes, 0.99)};
    std::ranges::for_each(row, [&](std::uint64_t value) { out << std::setw(12) << value; });
    out << '\n';
  }
  const auto leaks = heap.leaks();
  const auto sizes = leaks | std::views::values | std::views::transform(&Block::size);
  out << leaks.size() << " blocks, " << std::accumulate(sizes.begin(), sizes.end(), std::uint64_t{0})
      << " bytes never freed; " << heap.unknown().size() << " frees of unknown pointers\n";
  for (const auto& [pointer, block] : leaks | std::views::take(10)) {
    out << "  0x" << std::hex << pointer << std::dec << ": " << block.size << " bytes since event " << block.born
        << '\n';
  }
}

}  // namespace

int main() {
  const Parser parser;
  Heap heap;
  try {
    for (std::string line; std::getline(std::cin, line);) {
      if (const auto event = parser.parse(line)) heap.apply(*event);
    }
  } catch (const std::exception& error) {
    std::cerr << "heavy: " << error.what() << '\n';
    return 1;
  }
  print(heap, std::cout);
}
