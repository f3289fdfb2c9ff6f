// SPDX-License-Identifier: MIT
//
// cfrac: factors products of two primes by continued fractions, with numbers that are allocated anew for each result.
//
// Imitates cfrac, D. Barrett's program of the Zorn and Grunwald benchmarks (B. Zorn, D. Grunwald, "Empirical
// Measurements of Six Allocation-Intensive C Programs", SIGPLAN Notices 1992), a part of nearly every allocator study
// since. The method is that of M. Morrison and J. Brillhart, "A Method of Factoring and the Factorization of F7",
// Mathematics of Computation 1975: convergents A/B of the continued fraction of sqrt(kN) give A^2 = (-1)^n Q mod N with
// a small Q; the Qs that small primes divide completely are multiplied into a square, and A^2 = y^2 (mod N) splits N.
// It shows the bare speed of objects of 16 to 40 bytes that live for microseconds: one malloc for each trial division.
//
// The factors found are compared with the primes that the number was made of. The allocator has to work for a
// computation whose result would be wrong if a single object were overwritten.
//
//   --bits N (of each of the two primes, 20 … 48; default 36)
#include "bignum.h"

using namespace workload;

namespace {

constexpr std::uint32_t kBase = 150;  // primes in the factor base
constexpr std::uint32_t kSpare = 12;  // relations beyond the primes, so that some product is a square
constexpr std::uint32_t kRelations = kBase + 1 + kSpare;
constexpr std::uint32_t kWords = (kBase + 1 + kRelations + 63) / 64;

using U128 = unsigned __int128;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t m) {
  return static_cast<std::uint64_t>(U128{a} * b % m);
}

std::uint64_t power(std::uint64_t base, std::uint64_t exponent, std::uint64_t m) {
  std::uint64_t result = 1;
  for (base %= m; exponent != 0; exponent >>= 1, base = multiply(base, base, m))
    if ((exponent & 1) != 0) result = multiply(result, base, m);
  return result;
}

// Miller and Rabin's test with the bases that decide every number below 2^64.
bool is_prime(std::uint64_t n) {
  constexpr std::uint64_t kWitnesses[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  for (const std::uint64_t p : kWitnesses)
    if (n % p == 0) return n == p;
  const int twos = std::countr_zero(n - 1);
  for (const std::uint64_t p : kWitnesses) {
    std::uint64_t x = power(p, (n - 1) >> twos, n);
    bool passed = x == 1 || x == n - 1;
    for (int i = 1; i < twos && !passed; i++) {
      x = multiply(x, x, n);
      passed = x == n - 1;
    }
    if (!passed) return false;
  }
  return true;
}

std::uint64_t random_prime(Random& random, unsigned bits) {
  for (;;) {
    const std::uint64_t n = (random.next() >> (64 - bits)) | std::uint64_t{1} << (bits - 1) | 1;
    if (is_prime(n)) return n;
  }
}

// Q as powers of the factor base, and the A that belongs to it.
struct Relation {
  Number a;
  bool negative;
  unsigned char exponent[kBase];
};

class Factoring {
 public:
  Factoring(const Number& n, std::uint32_t multiplier) : n_(n), kn_(n * Number(multiplier)) {
    std::uint32_t candidate = 2;
    for (std::uint32_t found = 0; found < kBase; candidate++) {
      std::uint32_t rest = 0;
      if (!is_prime(candidate)) continue;
      static_cast<void>(kn_.divided_by(candidate, &rest));
      // Only primes modulo which kN is a square can divide a Q.
      if (candidate == 2 || rest == 0 || power(rest, (candidate - 1) / 2, candidate) == 1) prime_[found++] = candidate;
    }
  }
  ~Factoring() {
    for (std::uint32_t i = 0; i < relations_; i++) delete relation_[i];
    Number::live.subtract(relations_ * sizeof(Relation));
    if (rows_ != nullptr) Number::live.subtract(kRelations * sizeof *rows_);
    std::free(rows_);
  }
  Factoring(const Factoring&) = delete;
  Factoring& operator=(const Factoring&) = delete;

  // A factor of n other than 1 and n; 1 if this multiplier yields none.
  Number factor() {
    if (!collect()) return Number(1);
    return combine();
  }
  std::uint64_t trial_divisions() const { return trials_; }

 private:
  // Walks along the continued fraction until there are enough relations; false if its period is too short.
  bool collect() {
    const Number root = root_of(kn_);
    Number m;  // sqrt(kN) = ... + 1 / ((sqrt(kN) + m) / q)
    Number q(1);
    Number a = root;   // the partial quotient
    Number before(1);  // A(i-2), A(i-1): numerators of the convergents modulo N
    Number last = root % n_;
    for (bool odd = true; relations_ < kRelations; odd = !odd) {
      m = q * a - m;
      q = (kn_ - m * m) / q;
      if (q.is(1)) return false;
      a = (root + m) / q;
      try_relation(last, q, odd);
      Number next = (a * last + before) % n_;
      before = std::move(last);
      last = std::move(next);
    }
    return true;
  }

  // Divides q by the primes of the base; keeps the relation if nothing is left.
  void try_relation(const Number& a, const Number& q, bool negative) {
    unsigned char exponent[kBase] = {};
    Number left = q;
    for (std::uint32_t i = 0; i < kBase; i++) {
      for (;;) {
        std::uint32_t rest = 0;
        Number quotient = left.divided_by(prime_[i], &rest);
        trials_++;
        if (rest != 0) break;
        left = std::move(quotient);
        exponent[i]++;
      }
    }
    if (!left.is(1)) return;
    auto* relation = new Relation{a, negative, {}};
    std::memcpy(relation->exponent, exponent, sizeof exponent);
    Number::live.add(sizeof(Relation));
    relation_[relations_++] = relation;
  }

  // Gauss's elimination over GF(2). A row: the parities of the exponents, the sign, and which relations went into it.
  Number combine() {
    rows_ = static_cast<std::uint64_t(*)[kWords]>(std::calloc(kRelations, sizeof *rows_));
    if (rows_ == nullptr) fail("calloc returned NULL");
    Number::live.add(kRelations * sizeof *rows_);
    for (std::uint32_t r = 0; r < kRelations; r++) {
      for (std::uint32_t i = 0; i < kBase; i++)
        if (relation_[r]->exponent[i] % 2 != 0) flip(r, i);
      if (relation_[r]->negative) flip(r, kBase);
      flip(r, kBase + 1 + r);
    }
    std::uint32_t done = 0;
    for (std::uint32_t column = 0; column <= kBase; column++) {
      std::uint32_t pivot = done;
      while (pivot < kRelations && !bit(pivot, column)) pivot++;
      if (pivot == kRelations) continue;
      for (std::uint32_t w = 0; w < kWords; w++) std::swap(rows_[pivot][w], rows_[done][w]);
      for (std::uint32_t r = done + 1; r < kRelations; r++) {
        if (!bit(r, column)) continue;
        for (std::uint32_t w = 0; w < kWords; w++) rows_[r][w] ^= rows_[done][w];
      }
      done++;
    }
    for (std::uint32_t r = done; r < kRelations; r++) {
      Number found = try_square(r);
      if (!found.is(1) && found.compare(n_) != 0) return found;
    }
    return Number(1);
  }

  // gcd(x - y, N) for the relations of one row, whose product is the square x^2 = y^2 (mod N).
  Number try_square(std::uint32_t row) const {
    unsigned total[kBase] = {};
    Number x(1);
    for (std::uint32_t r = 0; r < kRelations; r++) {
      if (!bit(row, kBase + 1 + r)) continue;
      x = x * relation_[r]->a % n_;
      for (std::uint32_t i = 0; i < kBase; i++) total[i] += relation_[r]->exponent[i];
    }
    Number y(1);
    for (std::uint32_t i = 0; i < kBase; i++) {
      if (total[i] % 2 != 0) fail("cfrac: a product is not a square");
      for (unsigned e = 0; e < total[i] / 2; e++) y = y * Number(prime_[i]) % n_;
    }
    return gcd_of(x + (n_ - y), n_);
  }

  bool bit(std::uint32_t row, std::uint32_t at) const { return (rows_[row][at / 64] >> at % 64 & 1) != 0; }
  void flip(std::uint32_t row, std::uint32_t at) { rows_[row][at / 64] ^= std::uint64_t{1} << at % 64; }

  Number n_;
  Number kn_;
  std::uint32_t prime_[kBase] = {};
  Relation* relation_[kRelations] = {};
  std::uint32_t relations_ = 0;
  std::uint64_t trials_ = 0;
  std::uint64_t (*rows_)[kWords] = nullptr;
};

// Factors the product of p and q, checks the answer, and returns the number of trial divisions.
std::uint64_t factor_and_check(std::uint64_t p, std::uint64_t q) {
  constexpr std::uint32_t kMultipliers[] = {1, 3, 5, 7, 11, 13, 17, 19, 23, 29};
  const Number n = Number(p) * Number(q);
  std::uint64_t trials = 0;
  for (const std::uint32_t k : kMultipliers) {
    Factoring factoring(n, k);
    const Number found = factoring.factor();
    trials += factoring.trial_divisions();
    if (found.is(1)) continue;
    if (found.compare(Number(p)) != 0 && found.compare(Number(q)) != 0) fail("cfrac: a wrong factor");
    if ((n / found * found).compare(n) != 0) fail("cfrac: the factors do not multiply to the number");
    return trials;
  }
  fail("cfrac: no factor was found");
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments(argc, argv);
  const Common common(arguments, 1);
  const auto bits = static_cast<unsigned>(arguments.integer("bits", 36, 20, 48));
  arguments.check();
  if (common.threads != 1) usage("--threads");

  Report report("cfrac", 1);
  const std::uint64_t numbers = common.scaled(32);
  Random random(common.seed);
  report.start();
  for (std::uint64_t i = 0; i < numbers; i++) {
    const std::uint64_t p = random_prime(random, bits);
    std::uint64_t q = p;
    while (q == p) q = random_prime(random, bits);
    report.operations += factor_and_check(p, q);
  }
  report.stop();
  report.peak_live_bytes = Number::live.most;
  if (Number::live.now != 0) fail("cfrac: numbers were leaked");
  return report.print();
}
