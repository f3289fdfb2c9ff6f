// SPDX-License-Identifier: MIT
//
// Natural numbers of any size, each in its own piece of the heap, for the workload cfrac.
//
// Every operation returns a new number, as the libraries of the time of cfrac did: that is where its millions of short
// allocations come from. A number is a length and 32-bit limbs, least significant first, without leading zeros; zero has
// no limb. Multiplication is the schoolbook's, division Knuth's algorithm D (The Art of Computer Programming 2, 4.3.1).
#pragma once

#include <bit>
#include <utility>

#include "live.h"

namespace workload {

class Number {
 public:
  Number() : Number(std::uint64_t{0}) {}
  explicit Number(std::uint64_t value) : limbs_(reserve(2)) {
    limbs_->limb[0] = static_cast<std::uint32_t>(value);
    limbs_->limb[1] = static_cast<std::uint32_t>(value >> 32);
    trim();
  }
  Number(const Number& other) : limbs_(reserve(other.length())) {
    std::memcpy(limbs_->limb, other.limbs_->limb, other.length() * sizeof(std::uint32_t));
  }
  Number(Number&& other) noexcept : limbs_(std::exchange(other.limbs_, nullptr)) {}
  Number& operator=(Number other) noexcept {
    std::swap(limbs_, other.limbs_);
    return *this;
  }
  ~Number() {
    if (limbs_ == nullptr) return;
    live.subtract(bytes(limbs_->capacity));
    std::free(limbs_);
  }

  std::uint32_t length() const { return limbs_->length; }
  bool is_zero() const { return length() == 0; }
  bool is(std::uint32_t value) const { return value == 0 ? is_zero() : length() == 1 && limbs_->limb[0] == value; }

  // Less than, equal to, greater than `other`: negative, 0, positive.
  int compare(const Number& other) const {
    if (length() != other.length()) return length() < other.length() ? -1 : 1;
    for (std::uint32_t i = length(); i-- > 0;) {
      if (limbs_->limb[i] != other.limbs_->limb[i]) return limbs_->limb[i] < other.limbs_->limb[i] ? -1 : 1;
    }
    return 0;
  }

  friend Number operator+(const Number& a, const Number& b) {
    if (a.length() < b.length()) return b + a;
    Number sum(reserve(a.length() + 1));
    std::uint64_t carry = 0;
    for (std::uint32_t i = 0; i < a.length(); i++) {
      carry += std::uint64_t{a.limbs_->limb[i]} + (i < b.length() ? b.limbs_->limb[i] : 0);
      sum.limbs_->limb[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    sum.limbs_->limb[a.length()] = static_cast<std::uint32_t>(carry);
    sum.trim();
    return sum;
  }

  // a - b; b must not be the greater one.
  friend Number operator-(const Number& a, const Number& b) {
    Number difference(reserve(a.length()));
    std::int64_t borrow = 0;
    for (std::uint32_t i = 0; i < a.length(); i++) {
      borrow += std::int64_t{a.limbs_->limb[i]} - (i < b.length() ? std::int64_t{b.limbs_->limb[i]} : 0);
      difference.limbs_->limb[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
    }
    if (borrow != 0) fail("bignum: a difference below zero");
    difference.trim();
    return difference;
  }

  friend Number operator*(const Number& a, const Number& b) {
    Number product(reserve(a.length() + b.length()));
    std::memset(product.limbs_->limb, 0, product.length() * sizeof(std::uint32_t));
    for (std::uint32_t i = 0; i < a.length(); i++) {
      std::uint64_t carry = 0;
      for (std::uint32_t j = 0; j < b.length(); j++) {
        carry += std::uint64_t{a.limbs_->limb[i]} * b.limbs_->limb[j] + product.limbs_->limb[i + j];
        product.limbs_->limb[i + j] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      product.limbs_->limb[i + b.length()] = static_cast<std::uint32_t>(carry);
    }
    product.trim();
    return product;
  }

  // The quotient by a small number; the remainder goes to *rest.
  Number divided_by(std::uint32_t divisor, std::uint32_t* rest) const {
    Number quotient(reserve(length()));
    std::uint64_t remainder = 0;
    for (std::uint32_t i = length(); i-- > 0;) {
      remainder = remainder << 32 | limbs_->limb[i];
      quotient.limbs_->limb[i] = static_cast<std::uint32_t>(remainder / divisor);
      remainder %= divisor;
    }
    *rest = static_cast<std::uint32_t>(remainder);
    quotient.trim();
    return quotient;
  }

  friend Number operator/(const Number& a, const Number& b) { return divide(a, b).first; }
  friend Number operator%(const Number& a, const Number& b) { return divide(a, b).second; }

  // Quotient and remainder.
  static std::pair<Number, Number> divide(const Number& a, const Number& b) {
    if (b.is_zero()) fail("bignum: division by zero");
    if (a.compare(b) < 0) return {Number(), a};
    if (b.length() == 1) {
      std::uint32_t rest = 0;
      Number quotient = a.divided_by(b.limbs_->limb[0], &rest);
      return {std::move(quotient), Number(rest)};
    }
    const auto shift = static_cast<unsigned>(std::countl_zero(b.limbs_->limb[b.length() - 1]));
    const Number divisor = b.shifted_left(shift, b.length());
    Number rest = a.shifted_left(shift, a.length() + 1);
    Number quotient(reserve(a.length() - b.length() + 1));
    for (std::uint32_t at = quotient.length(); at-- > 0;) quotient.limbs_->limb[at] = rest.subtract_most(divisor, at);
    quotient.trim();
    rest.shift_right(shift);
    return {std::move(quotient), std::move(rest)};
  }

  static Live live;

 private:
  struct Limbs {
    std::uint32_t capacity;
    std::uint32_t length;
    std::uint32_t limb[];
  };

  explicit Number(Limbs* limbs) : limbs_(limbs) {}

  static std::uint64_t bytes(std::uint32_t limbs) { return sizeof(Limbs) + limbs * sizeof(std::uint32_t); }
  static Limbs* reserve(std::uint32_t limbs) {
    auto* made = static_cast<Limbs*>(std::malloc(bytes(limbs)));
    if (made == nullptr) fail("malloc returned NULL");
    live.add(bytes(limbs));
    made->capacity = limbs;
    made->length = limbs;
    return made;
  }
  void trim() {
    while (limbs_->length > 0 && limbs_->limb[limbs_->length - 1] == 0) limbs_->length--;
  }

  // This number times 2^shift (shift < 32) in exactly `limbs` limbs, with leading zeros if need be.
  Number shifted_left(unsigned shift, std::uint32_t limbs) const {
    Number result(reserve(limbs));
    std::uint64_t carry = 0;
    for (std::uint32_t i = 0; i < limbs; i++) {
      carry |= std::uint64_t{i < length() ? limbs_->limb[i] : 0} << shift;
      result.limbs_->limb[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return result;
  }
  void shift_right(unsigned shift) {
    for (std::uint32_t i = 0; i < length(); i++) {
      const std::uint64_t above = i + 1 < length() ? limbs_->limb[i + 1] : 0;
      limbs_->limb[i] = static_cast<std::uint32_t>((above << 32 | limbs_->limb[i]) >> shift);
    }
    trim();
  }

  // One step of algorithm D: subtracts the divisor, moved up by `at` limbs, as often as it fits; returns how often.
  std::uint32_t subtract_most(const Number& divisor, std::uint32_t at) {
    const std::uint32_t n = divisor.length();
    std::uint32_t* const u = limbs_->limb + at;
    const std::uint32_t* const v = divisor.limbs_->limb;
    const std::uint64_t top = std::uint64_t{u[n]} << 32 | u[n - 1];
    std::uint64_t guess = top / v[n - 1];
    std::uint64_t rest = top % v[n - 1];
    while (guess >> 32 != 0 || guess * v[n - 2] > (rest << 32 | u[n - 2])) {
      guess--;
      rest += v[n - 1];
      if (rest >> 32 != 0) break;
    }
    std::int64_t borrow = 0;
    std::uint64_t carry = 0;
    for (std::uint32_t i = 0; i <= n; i++) {
      if (i < n) carry += guess * v[i];
      borrow += std::int64_t{u[i]} - static_cast<std::int64_t>(carry & 0xFFFFFFFFU);
      u[i] = static_cast<std::uint32_t>(borrow);
      borrow >>= 32;
      carry >>= 32;
    }
    if (borrow == 0) return static_cast<std::uint32_t>(guess);
    carry = 0;  // one too many: add the divisor back
    for (std::uint32_t i = 0; i <= n; i++) {
      carry += std::uint64_t{u[i]} + (i < n ? v[i] : 0);
      u[i] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return static_cast<std::uint32_t>(guess - 1);
  }

  Limbs* limbs_;
};

inline Live Number::live;

// The largest r with r * r <= n: Newton's iteration from above.
inline Number root_of(const Number& n) {
  if (n.is_zero()) return n;
  Number guess = n;
  std::uint32_t rest = 0;
  for (;;) {
    Number next = (guess + n / guess).divided_by(2, &rest);
    if (next.compare(guess) >= 0) return guess;
    guess = std::move(next);
  }
}

inline Number gcd_of(Number a, Number b) {
  while (!b.is_zero()) {
    Number rest = a % b;
    a = std::move(b);
    b = std::move(rest);
  }
  return a;
}

}  // namespace workload
