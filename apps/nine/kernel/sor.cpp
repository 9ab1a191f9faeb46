// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/sor.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "common/random.hpp"
#include "nine/kernel/applications.hpp"
#include "nine/kernel/difference.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {
namespace {

/// The factor with which the error falls fastest.
double best_factor(std::size_t side) {
  return 2 / (1 + std::sin(std::numbers::pi / static_cast<double>(side - 1)));
}

class sor final : public application {
 public:
  explicit sor(const sor_input& input)
      : side_(input.side), half_(input.side / 2), iterations_(input.iterations) {}

  void prepare(machine& m) override {
    red_ = m.array<double>(side_ * half_, "sor: red");
    black_ = m.array<double>(side_ * half_, "sor: black");
  }

  void run(machine& m, int thread) override {
    const share rows = share_of(side_, m.threads(), thread);
    for (std::size_t row = rows.first; row < rows.end; ++row) {
      for (std::size_t column = 0; column < side_; ++column) {
        colour(row + column)[row * half_ + column / 2] = sor_first_value(side_, row, column);
      }
    }
    m.barrier(thread);
    for (int iteration = 0; iteration < iterations_; ++iteration) {
      for (const std::size_t parity : {0u, 1u}) {
        sor_relax(side_, parity, rows, 0, colour(parity).data(), colour(parity + 1).data());
        m.barrier(thread);
      }
    }
  }

  std::string check() const override {
    return difference("sor", {side_, side_}, points(), reference(), 1e-10);
  }

  double checksum() const override {
    const std::vector<double> all = points();
    return std::accumulate(all.begin(), all.end(), 0.0);
  }

 private:
  std::span<double> colour(std::size_t parity) const { return parity % 2 == 0 ? red_ : black_; }

  std::vector<double> points() const {
    std::vector<double> all;
    all.reserve(side_ * side_);
    for (std::size_t row = 0; row < side_; ++row) {
      for (std::size_t column = 0; column < side_; ++column) {
        all.push_back(colour(row + column)[row * half_ + column / 2]);
      }
    }
    return all;
  }

  /// The same on one array of all points.
  std::vector<double> reference() const {
    const std::size_t n = side_;
    std::vector<double> x(n * n);
    for (std::size_t i = 0; i < n * n; ++i) x[i] = sor_first_value(n, i / n, i % n);
    const double factor = best_factor(n);
    for (int half = 0; half < 2 * iterations_; ++half) {
      for (std::size_t i = 1; i + 1 < n; ++i) {
        for (std::size_t j = 1; j + 1 < n; ++j) {
          if ((i + j) % 2 != static_cast<std::size_t>(half % 2)) continue;
          double& at = x[i * n + j];
          const double mean =
              (x[(i - 1) * n + j] + x[(i + 1) * n + j] + x[i * n + j - 1] + x[i * n + j + 1]) / 4;
          at = (1 - factor) * at + factor * mean;
        }
      }
    }
    return x;
  }

  std::size_t side_;
  std::size_t half_;
  int iterations_;
  std::span<double> red_;
  std::span<double> black_;
};

}  // namespace

void sor_relax(std::size_t side, std::size_t parity, share rows, std::size_t first_row, double* all,
               const double* others) {
  const std::size_t half = side / 2;
  const double factor = best_factor(side);
  const std::size_t end = std::min(rows.end, side - 1);
  for (std::size_t row = std::max<std::size_t>(rows.first, 1); row < end; ++row) {
    const std::size_t odd = (row + parity) % 2;  // point k of the colour is in column 2k + odd
    double* __restrict own = all + (row - first_row) * half;
    const double* __restrict middle = others + (row - first_row) * half;
    const double* above = middle - half;
    const double* below = middle + half;
    const double* left = middle + odd - 1;
    const double* right = middle + odd;
    for (std::size_t k = 1 - odd; k < half - odd; ++k) {
      own[k] += factor * (0.25 * (above[k] + below[k] + left[k] + right[k]) - own[k]);
    }
  }
}

// x² - y² on the edge, which is harmonic, and for finite differences, too. The points within begin
// at random, so that each of them changes in every sweep.
double sor_first_value(std::size_t side, std::size_t row, std::size_t column) {
  const std::size_t last = side - 1;
  if (row % last == 0 || column % last == 0) {
    const double x = static_cast<double>(column) / static_cast<double>(last);
    const double y = static_cast<double>(row) / static_cast<double>(last);
    return x * x - y * y;
  }
  return random_source(row * side + column).fraction();
}

std::unique_ptr<application> make_sor(const sor_input& input) {
  return std::make_unique<sor>(input);
}

sor_input sor_input_of(problem_size size) {
  return size == problem_size::paper ? sor_input{.side = 2048, .iterations = 200}
                                     : sor_input{.side = 128, .iterations = 40};
}

std::unique_ptr<application> make_sor(problem_size size) { return make_sor(sor_input_of(size)); }

}  // namespace apps::nine
