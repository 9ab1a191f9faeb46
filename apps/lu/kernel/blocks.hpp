// SPDX-License-Identifier: Apache-2.0
// What LU factorization without pivoting does to blocks, each of b × b numbers, row after row. It
// knows nothing of who brings them: every form of the program runs this code.
// Source: SPLASH-2, contiguous blocks.
#pragma once

#include <cstddef>
#include <cstring>

namespace apps::lu {

namespace detail {

using pair = double __attribute__((vector_size(16)));

inline pair load(const double* from) {
  pair p;
  std::memcpy(&p, from, sizeof p);
  return p;
}
inline void store(double* to, pair p) { std::memcpy(to, &p, sizeof p); }
inline pair both(double x) { return pair{x, x}; }

/// to -= factor · from, for columns [first, b).
inline void subtract(double* to, double factor, const double* from, std::size_t first,
                     std::size_t b) {
  if (first % 2 == 1) {
    to[first] -= factor * from[first];
    ++first;
  }
  const pair f = both(factor);
  for (std::size_t j = first; j < b; j += 2) store(to + j, load(to + j) - f * load(from + j));
}

}  // namespace detail

/// The pivot block: L (its diagonal of ones is not stored) and U in its place.
inline void factor(double* a, std::size_t b) {
  for (std::size_t k = 0; k < b; ++k) {
    for (std::size_t i = k + 1; i < b; ++i) {
      a[i * b + k] /= a[k * b + k];
      detail::subtract(a + i * b, a[i * b + k], a + k * b, k + 1, b);
    }
  }
}

/// A block right of the pivot: a = L⁻¹·a.
inline void solve_row(double* a, const double* pivot, std::size_t b) {
  for (std::size_t i = 1; i < b; ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      detail::subtract(a + i * b, pivot[i * b + k], a + k * b, 0, b);
    }
  }
}

/// A block below the pivot: a = a·U⁻¹.
inline void solve_column(double* a, const double* pivot, std::size_t b) {
  for (std::size_t k = 0; k < b; ++k) {
    const double inverse = 1 / pivot[k * b + k];
    for (std::size_t i = 0; i < b; ++i) {  // The rows do not depend on each other.
      a[i * b + k] *= inverse;
      detail::subtract(a + i * b, a[i * b + k], pivot + k * b, k + 1, b);
    }
  }
}

/// An inner block: c -= column·row. Requires: b is a multiple of 4.
inline void update(double* c, const double* column, const double* row, std::size_t b) {
  using namespace detail;
  for (std::size_t i = 0; i < b; i += 4) {
    for (std::size_t j = 0; j < b; j += 4) {
      double* at = c + i * b + j;
      const double* left = column + i * b;
      pair s00 = load(at);
      pair s01 = load(at + 2);
      pair s10 = load(at + b);
      pair s11 = load(at + b + 2);
      pair s20 = load(at + 2 * b);
      pair s21 = load(at + 2 * b + 2);
      pair s30 = load(at + 3 * b);
      pair s31 = load(at + 3 * b + 2);
      for (std::size_t k = 0; k < b; ++k) {
        const pair r0 = load(row + k * b + j);
        const pair r1 = load(row + k * b + j + 2);
        const pair l0 = both(left[k]);
        s00 -= l0 * r0;
        s01 -= l0 * r1;
        const pair l1 = both(left[b + k]);
        s10 -= l1 * r0;
        s11 -= l1 * r1;
        const pair l2 = both(left[2 * b + k]);
        s20 -= l2 * r0;
        s21 -= l2 * r1;
        const pair l3 = both(left[3 * b + k]);
        s30 -= l3 * r0;
        s31 -= l3 * r1;
      }
      store(at, s00);
      store(at + 2, s01);
      store(at + b, s10);
      store(at + b + 2, s11);
      store(at + 2 * b, s20);
      store(at + 2 * b + 2, s21);
      store(at + 3 * b, s30);
      store(at + 3 * b + 2, s31);
    }
  }
}

}  // namespace apps::lu
