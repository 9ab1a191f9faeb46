// SPDX-License-Identifier: Apache-2.0
// The butterfly of a complex Fourier transform, and the steps of it that one of P processors makes
// alone. It knows nothing of who brings the data: every form of the program runs this code.
//
// With decimation in frequency the rows of n points are combined at distances n/2, n/4, … 1, and
// row i ends as bin reversed(i). As long as the distance is a multiple of P the rows of a cyclic
// layout (row p + P·m lies on processor p) meet their own kind: `cyclic_steps`. What remains are
// distances within P neighbouring rows, which a blocked layout has together: `blocked_steps`.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstring>
#include <numbers>
#include <vector>

namespace apps::fft {

using complex = std::complex<double>;

/// exp(-2πi·turns), exact to the last bit or so also when `turns` is large.
inline complex root(double turns) {
  turns -= std::nearbyint(turns);
  const double angle = -2 * std::numbers::pi * turns;
  return {std::cos(angle), std::sin(angle)};
}

/// The lowest `bits` bits of `row` in reversed order.
inline std::size_t reversed(std::size_t row, int bits) {
  std::size_t r = 0;
  for (int b = 0; b < bits; ++b) r |= ((row >> b) & 1) << (bits - 1 - b);
  return r;
}

namespace detail {

using pair = double __attribute__((vector_size(16)));

inline pair load(const void* from) {
  pair p;
  std::memcpy(&p, from, sizeof p);
  return p;
}
inline void store(void* to, pair p) { std::memcpy(to, &p, sizeof p); }
inline pair both(double x) { return pair{x, x}; }

/// Two complex numbers, their real parts in one register and their imaginary parts in another.
struct two {
  pair re, im;
  friend two operator+(two a, two b) { return {a.re + b.re, a.im + b.im}; }
  friend two operator-(two a, two b) { return {a.re - b.re, a.im - b.im}; }
  friend two operator*(two a, two b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
};
inline two load_two(const complex* from) {
  const pair a = load(from);
  const pair b = load(from + 1);
  return {__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3)};
}
inline void store_two(complex* to, two v) {
  store(to, __builtin_shufflevector(v.re, v.im, 0, 2));
  store(to + 1, __builtin_shufflevector(v.re, v.im, 1, 3));
}
/// -i·v
inline two turned(two v) { return {v.im, -v.re}; }

/// One complex number, and its product with a constant one.
struct constant {
  pair re, im;
  explicit constant(complex w) : re(both(w.real())), im{-w.imag(), w.imag()} {}
  pair times(pair v) const { return v * re + __builtin_shufflevector(v, v, 1, 0) * im; }
};

}  // namespace detail

/// The steps within the cyclic layout, of the points that processor p has: point m is row p + P·m
/// of the large butterfly, whose roots are those of m + `shift`, with shift = p / P. With shift 0
/// it is a transform of its own, and point i ends as bin reversed(i). In place. Two distances are
/// combined at once (radix 4), and what fits the first-level cache is finished before the next is
/// begun.
class cyclic_steps {
 public:
  /// Requires: `size` is a power of two; 0 <= shift < 1.
  cyclic_steps(std::size_t size, double shift) : size_(size) {
    for (std::size_t m = size; m >= 8; m /= 4) {
      const std::size_t quarter = m / 4;
      std::vector<double>& table = tables_.emplace_back(quarter * 6);
      for (std::size_t j = 0; j < quarter; ++j) {
        for (int power = 1; power <= 3; ++power) {
          const complex w = root(power * (static_cast<double>(j) + shift) / static_cast<double>(m));
          double* at = &table[j / 2 * 12 + static_cast<std::size_t>(power - 1) * 4 + j % 2];
          at[0] = w.real();
          at[2] = w.imag();
        }
      }
    }
    for (int power = 1; power <= 3; ++power) last_.push_back(root(power * shift / 4));
    last_two_ = root(shift / 2);
  }

  std::size_t size() const { return size_; }
  void run(complex* points) const { run(points, size_, 0); }

 private:
  static constexpr std::size_t fits_cache = 1024;

  void run(complex* x, std::size_t m, std::size_t level) const {
    if (m > fits_cache) {
      combine(x, m, tables_[level]);
      for (std::size_t q = 0; q < 4; ++q) run(x + q * (m / 4), m / 4, level + 1);
      return;
    }
    std::size_t part = m;
    for (; part >= 8; part /= 4, ++level) {
      for (std::size_t at = 0; at < m; at += part) combine(x + at, part, tables_[level]);
    }
    if (part == 4) {
      for (std::size_t at = 0; at < m; at += 4) finish_four(x + at);
    } else if (part == 2) {
      for (std::size_t at = 0; at < m; at += 2) finish_two(x + at);
    }
  }

  static void combine(complex* x, std::size_t m, const std::vector<double>& table) {
    using namespace detail;
    const std::size_t quarter = m / 4;
    const double* t = table.data();
    for (std::size_t j = 0; j < quarter; j += 2, t += 12) {
      const two a = load_two(x + j);
      const two b = load_two(x + j + quarter);
      const two c = load_two(x + j + 2 * quarter);
      const two d = load_two(x + j + 3 * quarter);
      const two even = a + c;
      const two odd = b + d;
      const two rest = a - c;
      const two turn = turned(b - d);
      store_two(x + j, even + odd);
      store_two(x + j + quarter, (even - odd) * two{load(t + 4), load(t + 6)});
      store_two(x + j + 2 * quarter, (rest + turn) * two{load(t), load(t + 2)});
      store_two(x + j + 3 * quarter, (rest - turn) * two{load(t + 8), load(t + 10)});
    }
  }
  void finish_four(complex* x) const {
    using namespace detail;
    const constant w1(last_[0]);
    const constant w2(last_[1]);
    const constant w3(last_[2]);
    const pair a = load(x);
    const pair b = load(x + 1);
    const pair c = load(x + 2);
    const pair d = load(x + 3);
    const pair even = a + c;
    const pair odd = b + d;
    const pair rest = a - c;
    const pair difference = b - d;
    const pair turn = __builtin_shufflevector(difference, difference, 1, 0) * pair{1, -1};
    store(x, even + odd);
    store(x + 1, w2.times(even - odd));
    store(x + 2, w1.times(rest + turn));
    store(x + 3, w3.times(rest - turn));
  }
  void finish_two(complex* x) const {
    using namespace detail;
    const pair a = load(x);
    const pair b = load(x + 1);
    store(x, a + b);
    store(x + 1, constant(last_two_).times(a - b));
  }

  std::size_t size_;
  std::vector<std::vector<double>> tables_;  // a level each; of two neighbours w, w², w³
  std::vector<complex> last_;
  complex last_two_;
};

/// The steps within the blocked layout, on `parts` vectors of `columns` elements that lie one after
/// the other: part s holds rows s, s + parts, s + 2·parts, … of this processor's block. In place.
/// Requires: `parts` is a power of two.
inline void blocked_steps(complex* rows, std::size_t parts, std::size_t columns) {
  using namespace detail;
  std::vector<constant>
      roots;  // of the distance parts / 2; every second one of the next, and so on
  for (std::size_t j = 0; j < parts / 2; ++j) {
    roots.emplace_back(root(static_cast<double>(j) / static_cast<double>(parts)));
  }
  const std::size_t at_once = parts >= 512 ? 2 : 1024 / parts;  // all parts' fit the cache
  for (std::size_t first = 0; first < columns; first += at_once) {
    const std::size_t end = std::min(first + at_once, columns);
    for (std::size_t distance = parts / 2; distance > 0; distance /= 2) {
      for (std::size_t upper = 0; upper < parts; ++upper) {
        if ((upper & distance) != 0) continue;
        const constant w = roots[upper % distance * (parts / 2 / distance)];
        complex* a = rows + upper * columns;
        complex* b = a + distance * columns;
        for (std::size_t i = first; i < end; ++i) {
          const pair x = load(a + i);
          const pair y = load(b + i);
          store(a + i, x + y);
          store(b + i, w.times(x - y));
        }
      }
    }
  }
}

}  // namespace apps::fft
