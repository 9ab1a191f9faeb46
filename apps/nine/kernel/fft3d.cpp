// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/fft3d.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/random.hpp"
#include "nine/kernel/applications.hpp"
#include "nine/kernel/difference.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {
namespace {

using complex = std::complex<double>;

/// exp(2πi·k/n) for all k < n.
std::vector<complex> roots_of_unity(std::size_t n) {
  std::vector<complex> roots;
  for (std::size_t k = 0; k < n; ++k) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
    roots.emplace_back(std::cos(angle), std::sin(angle));
  }
  return roots;
}

/// How a wave of k periods, or of n - k backwards, decays in an iteration.
std::vector<double> decays(std::size_t n, double diffusion) {
  std::vector<double> factors;
  for (std::size_t k = 0; k < n; ++k) {
    const auto periods = static_cast<double>(std::min(k, n - k));
    factors.push_back(
        std::exp(-4 * std::numbers::pi * std::numbers::pi * periods * periods * diffusion));
  }
  return factors;
}

enum class direction { forward, back };

/// Transforms the columns of planes of n by n points. Each thread has one, as it works in its own
/// memory.
class plane_transform {
 public:
  explicit plane_transform(std::size_t n) : n_(n), roots_(roots_of_unity(n)), old_(n), next_(n) {}

  /// In place; without the factor of 1/n on the way back.
  void columns(complex* plane, direction way) {
    for (std::size_t first = 0; first < n_; first += lanes) {
      for (std::size_t row = 0; row < n_; ++row) {
        const complex* from = plane + row * n_ + first;
        for (std::size_t i = 0; i < lanes; ++i) {
          old_[row].real[i] = from[i].real();
          old_[row].imaginary[i] = from[i].imag();
        }
      }
      transform(way);
      for (std::size_t row = 0; row < n_; ++row) {
        complex* to = plane + row * n_ + first;
        for (std::size_t i = 0; i < lanes; ++i) {
          to[i] = {old_[row].real[i], old_[row].imaginary[i]};
        }
      }
    }
  }

 private:
  static constexpr std::size_t lanes = 8;
  /// One row of those columns that are transformed together, few enough for the first cache.
  struct strip {
    double real[lanes];
    double imaginary[lanes];
  };

  /// In Stockham's order, which leaves nothing to be reversed in the end.
  void transform(direction way) {
    for (std::size_t groups = 1; groups < n_; groups *= 2) {
      const std::size_t half = n_ / groups / 2;
      for (std::size_t p = 0; p < half; ++p) {
        const complex root = roots_[p * groups];
        const double cosine = root.real();
        const double sine = way == direction::forward ? -root.imag() : root.imag();
        for (std::size_t q = 0; q < groups; ++q) {
          butterfly(old_[q + groups * p], old_[q + groups * (p + half)], cosine, sine,
                    next_[q + groups * 2 * p], next_[q + groups * (2 * p + 1)]);
        }
      }
      std::swap(old_, next_);
    }
  }

  static void butterfly(const strip& a, const strip& b, double cosine, double sine,
                        strip& __restrict sum, strip& __restrict rest) {
    for (std::size_t i = 0; i < lanes; ++i) {
      const double real = a.real[i] - b.real[i];
      const double imaginary = a.imaginary[i] - b.imaginary[i];
      sum.real[i] = a.real[i] + b.real[i];
      sum.imaginary[i] = a.imaginary[i] + b.imaginary[i];
      rest.real[i] = real * cosine - imaginary * sine;
      rest.imaginary[i] = real * sine + imaginary * cosine;
    }
  }

  std::size_t n_;
  std::vector<complex> roots_;
  std::vector<strip> old_;
  std::vector<strip> next_;
};

void transpose(complex* plane, std::size_t n) {
  for (std::size_t row = 0; row < n; ++row) {
    for (std::size_t column = 0; column < row; ++column) {
      std::swap(plane[row * n + column], plane[column * n + row]);
    }
  }
}

/// The field is cut into planes of one z, the spectrum into planes of one kx (k is a wave's number
/// of periods in the cube). A thread transforms its planes along both of their edges, and along the
/// third when what belongs to its planes of the other kind has been fetched from all threads:
///
///     field[z][y][x] -> [z][kx][ky]   own planes, one transposed
///                    -> [kx][z][ky]   fetched, rows of ky
///                    -> [kx][kz][ky]  own planes
class fft3d final : public application {
 public:
  explicit fft3d(const fft3d_input& input)
      : input_(input), n_(input.side), decays_(decays(input.side, input.diffusion)) {}

  void prepare(machine& m) override {
    field_ = m.array<complex>(n_ * n_ * n_, "fft3d: field");
    spectrum_ = m.array<complex>(n_ * n_ * n_, "fft3d: spectrum");
    half_way_ = m.array<complex>(n_ * n_ * n_, "fft3d: half-way");
  }

  void run(machine& m, int thread) override {
    const share own = share_of(n_, m.threads(), thread);
    plane_transform transform(n_);
    for (std::size_t z = own.first; z < own.end; ++z) {
      complex* plane = &field_[row(z, 0)];
      for (std::size_t i = 0; i < n_ * n_; ++i) plane[i] = input_.first(i % n_, i / n_, z);
      transform.columns(plane, direction::forward);
      transpose(plane, n_);
      transform.columns(plane, direction::forward);
    }
    m.barrier(thread);
    for (std::size_t kx = own.first; kx < own.end; ++kx) {
      fetch(field_, spectrum_, kx);
      transform.columns(&spectrum_[row(kx, 0)], direction::forward);
    }
    for (int iteration = 0; iteration < input_.iterations; ++iteration) {
      for (std::size_t kx = own.first; kx < own.end; ++kx) {
        decay(kx);
        transform.columns(&half_way_[row(kx, 0)], direction::back);
      }
      m.barrier(thread);
      for (std::size_t z = own.first; z < own.end; ++z) {
        fetch(half_way_, field_, z);
        complex* plane = &field_[row(z, 0)];
        transform.columns(plane, direction::back);
        transpose(plane, n_);
        transform.columns(plane, direction::back);
      }
      m.barrier(thread);
    }
  }

  std::string check() const override {
    const std::size_t all = n_ * n_ * n_;
    std::vector<complex> field(all);  // [z][y][x]
    for (std::size_t i = 0; i < all; ++i) {
      field[i] = input_.first(i % n_, i / n_ % n_, i / n_ / n_);
    }
    std::vector<complex> waves = summed(field, direction::forward);  // [kz][ky][kx]
    std::vector<complex> spectrum(all);                              // [kx][kz][ky]
    for (std::size_t i = 0; i < all; ++i) {
      const std::size_t x = i % n_;
      const std::size_t y = i / n_ % n_;
      const std::size_t z = i / n_ / n_;
      waves[i] *= std::pow(decays_[x] * decays_[y] * decays_[z], input_.iterations);
      spectrum[row(x, z) + y] = waves[i];
    }
    // Each wave is a sum of n³ numbers of about 1.
    std::string fault = difference("fft3d, spectrum", {n_, n_, n_, 2}, numbers(spectrum_),
                                   numbers(spectrum), 1e-13 * static_cast<double>(all));
    if (!fault.empty()) return fault;
    field = summed(waves, direction::back);
    for (complex& value : field) value /= static_cast<double>(all);
    return difference("fft3d, field", {n_, n_, n_, 2}, numbers(field_), numbers(field), 1e-10);
  }

  double checksum() const override {
    double all = 0;
    for (const complex& value : field_) all += value.real() + 2 * value.imag();
    for (const complex& value : spectrum_) all += std::norm(value);
    return all;
  }

 private:
  std::size_t row(std::size_t plane, std::size_t number) const {
    return (plane * n_ + number) * n_;
  }

  /// Makes plane `number` of `to`, whose row r is row `number` of plane r of `from`.
  void fetch(std::span<const complex> from, std::span<complex> to, std::size_t number) const {
    for (std::size_t r = 0; r < n_; ++r)
      std::copy_n(&from[row(r, number)], n_, &to[row(number, r)]);
  }

  /// Brings a plane of the spectrum to this iteration, and copies it to where it is transformed
  /// back.
  void decay(std::size_t kx) const {
    const double scale = 1 / static_cast<double>(n_ * n_ * n_);
    for (std::size_t kz = 0; kz < n_; ++kz) {
      complex* wave = &spectrum_[row(kx, kz)];
      complex* copy = &half_way_[row(kx, kz)];
      const double factor = decays_[kx] * decays_[kz];
      for (std::size_t ky = 0; ky < n_; ++ky) {
        wave[ky] *= factor * decays_[ky];
        copy[ky] = wave[ky] * scale;
      }
    }
  }

  /// A transform by its definition, one dimension after the other.
  std::vector<complex> summed(std::vector<complex> values, direction way) const {
    std::vector<complex> roots = roots_of_unity(n_);
    if (way == direction::forward) std::reverse(roots.begin() + 1, roots.end());
    std::vector<complex> sums(values.size());
    for (const std::size_t stride : {std::size_t{1}, n_, n_ * n_}) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t k = i / stride % n_;
        const std::size_t first = i - k * stride;
        complex sum = 0;
        for (std::size_t j = 0; j < n_; ++j) {
          const complex root = roots[j * k % n_];
          const complex value = values[first + j * stride];
          // Written out, because operator* looks for infinities.
          sum += complex(root.real() * value.real() - root.imag() * value.imag(),
                         root.real() * value.imag() + root.imag() * value.real());
        }
        sums[i] = sum;
      }
      std::swap(values, sums);
    }
    return values;
  }

  static std::span<const double> numbers(std::span<const complex> values) {
    return {reinterpret_cast<const double*>(values.data()), 2 * values.size()};
  }

  fft3d_input input_;
  std::size_t n_;
  std::vector<double> decays_;
  std::span<complex> field_;
  std::span<complex> spectrum_;
  std::span<complex> half_way_;
};

complex random_field(std::size_t x, std::size_t y, std::size_t z) {
  random_source random((z << 20 | y << 10) | x);
  const double real = random.fraction();
  return {real - 0.5, random.fraction() - 0.5};
}

}  // namespace

std::unique_ptr<application> make_fft3d(const fft3d_input& input) {
  return std::make_unique<fft3d>(input);
}

std::unique_ptr<application> make_fft3d(problem_size size) {
  return size == problem_size::paper
             ? make_fft3d({.side = 64, .iterations = 220, .diffusion = 1e-6, .first = random_field})
             : make_fft3d({.side = 16, .iterations = 4, .diffusion = 1e-4, .first = random_field});
}

}  // namespace apps::nine
