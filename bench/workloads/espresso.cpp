// SPDX-License-Identifier: MIT
//
// espresso: finds small sums of products for random Boolean functions; each product is an object of its own, and each
// step of the recursion makes and drops whole lists of them.
//
// Imitates espresso, the logic minimiser of the Zorn and Grunwald benchmarks (B. Zorn, D. Grunwald, "Empirical
// Measurements of Six Allocation-Intensive C Programs", SIGPLAN Notices 1992). The method is the book's: R. Brayton,
// G. Hachtel, C. McMullen, A. Sangiovanni-Vincentelli, "Logic Minimization Algorithms for VLSI Synthesis", 1984:
// complement and tautology by cofactors along the most binate variable; then expand, irredundant, reduce, until the
// cover shrinks no more. It shows 16-byte objects beside arrays that grow by realloc, with lifetimes that nest like the
// recursion: bursts of mallocs, bursts of frees in another order.
//
// Each result is compared with the function's truth table: every point that must be covered is, and no other.
//
//   --inputs N (variables, 4 … 16; default 14)  --cubes N (products in a function, default 160)
#include <bit>

#include "live.h"

using namespace workload;

namespace {

// A product of literals. Two bits for each variable: 01 the negated one, 10 the plain one, 11 not in it, 00 nothing.
struct Cube {
  std::uint64_t bits;
  bool covered;  // by another cube of its cover, so to be dropped
};

constexpr std::uint64_t kLow = 0x5555555555555555U;

Live live;
unsigned inputs;           // number of variables
std::uint64_t universe;    // the cube without literals
std::uint64_t operations;  // cubes made

// Whether some variable has no value left: the product is nowhere true.
bool is_nothing(std::uint64_t bits) { return ((bits | bits >> 1) & kLow & universe) != (kLow & universe); }
std::uint64_t both_values(unsigned variable) { return std::uint64_t{3} << 2 * variable; }

// A list of cubes that owns them: the sum of the products.
class Cover {
 public:
  Cover() = default;
  Cover(Cover&& other) noexcept : items_(other.items_), count_(other.count_), capacity_(other.capacity_) {
    other.items_ = nullptr;
    other.count_ = other.capacity_ = 0;
  }
  Cover(const Cover&) = delete;
  Cover& operator=(const Cover&) = delete;
  Cover& operator=(Cover&&) = delete;
  ~Cover() {
    for (std::uint32_t i = 0; i < count_; i++) destroy(items_[i]);
    live.subtract(capacity_ * sizeof(Cube*));
    std::free(items_);
  }

  void add(std::uint64_t bits) {
    auto* cube = static_cast<Cube*>(std::malloc(sizeof(Cube)));
    if (cube == nullptr) fail("malloc returned NULL");
    live.add(sizeof(Cube));
    operations++;
    *cube = {bits, false};
    append(cube);
  }
  // Takes all cubes of `other`.
  void take(Cover& other) {
    for (std::uint32_t i = 0; i < other.count_; i++) append(other.items_[i]);
    other.count_ = 0;
  }
  void drop_covered() {
    std::uint32_t kept = 0;
    for (std::uint32_t i = 0; i < count_; i++) {
      if (items_[i]->covered) {
        destroy(items_[i]);
      } else {
        items_[kept++] = items_[i];
      }
    }
    count_ = kept;
  }
  std::uint32_t count() const { return count_; }
  Cube& operator[](std::uint32_t i) const { return *items_[i]; }

 private:
  static void destroy(Cube* cube) {
    live.subtract(sizeof(Cube));
    std::free(cube);
  }
  void append(Cube* cube) {
    if (count_ == capacity_) {
      const std::uint32_t capacity = capacity_ == 0 ? 4 : capacity_ * 2;
      auto** items = static_cast<Cube**>(std::realloc(items_, capacity * sizeof(Cube*)));
      if (items == nullptr) fail("realloc returned NULL");
      live.add((capacity - capacity_) * sizeof(Cube*));
      items_ = items;
      capacity_ = capacity;
    }
    items_[count_++] = cube;
  }

  Cube** items_ = nullptr;
  std::uint32_t count_ = 0;
  std::uint32_t capacity_ = 0;
};

// Adds to `result` what `cover` is inside the product `bits`, as seen from there.
void add_cofactor(Cover& result, const Cover& cover, std::uint64_t bits, const Cube* without = nullptr) {
  for (std::uint32_t i = 0; i < cover.count(); i++) {
    const Cube& cube = cover[i];
    if (&cube == without || cube.covered || is_nothing(cube.bits & bits)) continue;
    result.add((cube.bits | ~bits) & universe);
  }
}

bool has_universe(const Cover& cover) {
  for (std::uint32_t i = 0; i < cover.count(); i++)
    if (cover[i].bits == universe) return true;
  return false;
}

// The variable that the most cubes depend on, preferring those that appear both plain and negated.
// *binate says whether the one returned does.
unsigned splitting_variable(const Cover& cover, bool* binate) {
  unsigned best = 0;
  std::uint64_t best_score = 0;
  for (unsigned v = 0; v < inputs; v++) {
    std::uint64_t plain = 0;
    std::uint64_t negated = 0;
    for (std::uint32_t i = 0; i < cover.count(); i++) {
      const std::uint64_t value = cover[i].bits >> 2 * v & 3;
      plain += value == 2;
      negated += value == 1;
    }
    const std::uint64_t both = plain != 0 && negated != 0 ? std::uint64_t{1} << 32 : 0;
    if (both + plain + negated > best_score) {
      best = v;
      best_score = both + plain + negated;
    }
  }
  *binate = best_score >> 32 != 0;
  return best;
}

// The universe with one value of a variable taken away.
std::uint64_t half(unsigned variable, std::uint64_t value) {
  return (universe & ~both_values(variable)) | value << 2 * variable;
}

bool is_tautology(const Cover& cover) {
  if (has_universe(cover)) return true;
  bool binate = false;
  const unsigned variable = splitting_variable(cover, &binate);
  if (!binate) return false;  // a unate cover is a tautology only if it has the universe
  for (std::uint64_t value = 1; value <= 2; value++) {
    Cover side;
    add_cofactor(side, cover, half(variable, value));
    if (!is_tautology(side)) return false;
  }
  return true;
}

// The complement of one product: for each literal, the cube of its opposite (De Morgan).
void add_complement_of_cube(Cover& result, std::uint64_t bits) {
  for (unsigned v = 0; v < inputs; v++) {
    const std::uint64_t value = bits >> 2 * v & 3;
    if (value != 3) result.add(half(v, value ^ 3));
  }
}

Cover complement(const Cover& cover) {
  Cover result;
  if (cover.count() == 0) {
    result.add(universe);
    return result;
  }
  if (has_universe(cover)) return result;
  if (cover.count() == 1) {
    add_complement_of_cube(result, cover[0].bits);
    return result;
  }
  bool binate = false;
  const unsigned variable = splitting_variable(cover, &binate);
  for (std::uint64_t value = 1; value <= 2; value++) {
    Cover side;
    add_cofactor(side, cover, half(variable, value));
    Cover part = complement(side);
    for (std::uint32_t i = 0; i < part.count(); i++) {
      Cube& cube = part[i];
      // A cube that both sides have does not depend on the variable: the one already there takes it in.
      for (std::uint32_t j = 0; value == 2 && j < result.count() && !cube.covered; j++) {
        if ((result[j].bits | both_values(variable)) != (cube.bits | both_values(variable))) continue;
        result[j].bits |= both_values(variable);
        cube.covered = true;
      }
      cube.bits &= half(variable, value);
    }
    part.drop_covered();
    result.take(part);
  }
  return result;
}

// Takes literals out of each cube as long as it stays clear of `off`; drops the cubes that the grown one covers.
void expand(Cover& cover, const Cover& off) {
  for (std::uint32_t i = 0; i < cover.count(); i++) {
    Cube& cube = cover[i];
    if (cube.covered) continue;
    for (unsigned v = 0; v < inputs; v++) {
      const std::uint64_t raised = cube.bits | both_values(v);
      bool clear = true;
      for (std::uint32_t j = 0; j < off.count() && clear; j++) clear = is_nothing(raised & off[j].bits);
      if (clear) cube.bits = raised;
    }
    for (std::uint32_t j = 0; j < cover.count(); j++)
      if (j != i && (cover[j].bits & ~cube.bits) == 0) cover[j].covered = true;
  }
  cover.drop_covered();
}

// What the other cubes and the don't-cares cover of a cube, seen from within it.
Cover others(const Cover& cover, const Cover& free_choice, const Cube& cube) {
  Cover result;
  add_cofactor(result, cover, cube.bits, &cube);
  add_cofactor(result, free_choice, cube.bits);
  return result;
}

void drop_redundant(Cover& cover, const Cover& free_choice) {
  for (std::uint32_t i = 0; i < cover.count(); i++) {
    const Cover rest = others(cover, free_choice, cover[i]);
    cover[i].covered = is_tautology(rest);
  }
  cover.drop_covered();
}

// Shrinks each cube to the smallest one that holds what it alone covers, so that the next expansion can go elsewhere.
void reduce(Cover& cover, const Cover& free_choice) {
  for (std::uint32_t i = 0; i < cover.count(); i++) {
    const Cover alone = complement(others(cover, free_choice, cover[i]));
    std::uint64_t bits = 0;
    for (std::uint32_t j = 0; j < alone.count(); j++) bits |= alone[j].bits;
    cover[i].bits &= bits;
    cover[i].covered = alone.count() == 0;
  }
  cover.drop_covered();
}

std::uint64_t cost(const Cover& cover) {
  std::uint64_t literals = 0;
  for (std::uint32_t i = 0; i < cover.count(); i++)
    literals += 2 * inputs - static_cast<unsigned>(std::popcount(cover[i].bits));
  return std::uint64_t{cover.count()} << 32 | literals;
}

void minimise(Cover& on, const Cover& free_choice) {
  Cover all;
  add_cofactor(all, on, universe);
  add_cofactor(all, free_choice, universe);
  const Cover off = complement(all);
  expand(on, off);
  drop_redundant(on, free_choice);
  for (std::uint64_t before = ~std::uint64_t{0}; cost(on) < before;) {
    before = cost(on);
    reduce(on, free_choice);
    expand(on, off);
    drop_redundant(on, free_choice);
  }
}

void add_random(Cover& cover, std::uint64_t cubes, Random& random) {
  for (std::uint64_t i = 0; i < cubes; i++) {
    std::uint64_t bits = universe;
    for (unsigned v = 0; v < inputs; v++) {
      const std::uint64_t value = random.below(4);
      if (value == 1 || value == 2) bits &= half(v, value);
    }
    cover.add(bits);
  }
}

// Marks in `table` each of the 2^inputs points where the cover is true.
void mark(const Cover& cover, unsigned char* table, unsigned char with) {
  for (std::uint32_t i = 0; i < cover.count(); i++) {
    std::uint32_t must = 0;
    std::uint32_t may = 0;
    for (unsigned v = 0; v < inputs; v++) {
      const std::uint64_t value = cover[i].bits >> 2 * v & 3;
      must |= static_cast<std::uint32_t>(value == 2) << v;
      may |= static_cast<std::uint32_t>(value == 3) << v;
    }
    std::uint32_t point = may;  // runs through all subsets of `may`
    for (;; point = (point - 1) & may) {
      table[must | point] |= with;
      if (point == 0) break;
    }
  }
}

// Makes a function, minimises it, and compares the result with the truth table. Returns the cubes that were saved.
std::uint64_t run_one(std::uint64_t cubes, Random& random, unsigned char* table) {
  constexpr unsigned char kOn = 1;
  constexpr unsigned char kFree = 2;
  constexpr unsigned char kResult = 4;
  Cover on;
  Cover free_choice;
  add_random(on, cubes, random);
  add_random(free_choice, cubes / 8, random);
  std::memset(table, 0, std::size_t{1} << inputs);
  mark(on, table, kOn);
  mark(free_choice, table, kFree);
  const std::uint32_t before = on.count();
  minimise(on, free_choice);
  mark(on, table, kResult);
  for (std::uint32_t point = 0; point < 1U << inputs; point++) {
    if (table[point] == kOn) fail("espresso: a point of the function is not covered");
    if (table[point] == kResult) fail("espresso: a point outside of the function is covered");
  }
  return before - on.count();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  inputs = static_cast<unsigned>(arguments.integer("inputs", 14, 4, 16));
  const auto cubes = arguments.integer("cubes", 160, 1, 4096);
  arguments.check();
  if (common.threads != 1) usage("--threads");
  universe = (std::uint64_t{1} << 2 * inputs) - 1;

  Report report("espresso", 1);
  static unsigned char table[1U << 16];
  Random random(common.seed);
  const std::uint64_t functions = common.scaled(40);
  std::uint64_t saved = 0;
  report.start();
  for (std::uint64_t i = 0; i < functions; i++) saved += run_one(cubes, random, table);
  report.stop();
  if (live.now != 0) fail("espresso: cubes were leaked");
  report.operations = operations;
  report.peak_live_bytes = live.most;
  report.extra("cubes_saved", static_cast<double>(saved));
  return report.print();
}
