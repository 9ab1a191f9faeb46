// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/adi.hpp"

#include <algorithm>
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

/// Solves (1 + 2r)·x[k] - r·x[k-1] - r·x[k+1] = d[k], where r is adi_ratio, for lines of n points.
/// No heat passes through their ends: a point beyond an end would equal it.
class line_solver {
 public:
  explicit line_solver(std::size_t n) {
    double carried = 0;  // what the elimination of the point before takes from the diagonal
    for (std::size_t k = 0; k < n; ++k) {
      const bool end = k == 0 || k + 1 == n;
      inverse_.push_back(1 / (1 + (end ? 1 : 2) * adi_ratio - carried));
      carried = adi_ratio * adi_ratio * inverse_.back();
    }
  }

  /// In place, for `width` lines side by side: point k of line i is points[k * stride + i].
  void solve(double* points, std::size_t stride, std::size_t width) const {
    const std::size_t n = inverse_.size();
    for (std::size_t i = 0; i < width; ++i) points[i] *= inverse_[0];
    for (std::size_t k = 1; k < n; ++k) {
      double* __restrict here = points + k * stride;
      const double* __restrict before = here - stride;
      const double inverse = inverse_[k];
      for (std::size_t i = 0; i < width; ++i) {
        here[i] = (here[i] + adi_ratio * before[i]) * inverse;
      }
    }
    for (std::size_t k = n - 1; k-- > 0;) {
      double* __restrict here = points + k * stride;
      const double* __restrict after = here + stride;
      const double factor = adi_ratio * inverse_[k];
      for (std::size_t i = 0; i < width; ++i) here[i] += factor * after[i];
    }
  }

 private:
  std::vector<double> inverse_;  // of the diagonal after elimination
};

/// The cube lies in memory twice: as planes of one z, of which each thread solves the lines along x
/// and y, and as planes of one y, for the lines along z. A thread stores to its own planes only and
/// fetches from the others' what it needs next, rows of x, of which many lie one after the other.
class adi final : public application {
 public:
  explicit adi(const adi_input& input) : input_(input), n_(input.side), lines_(input.side) {}

  void prepare(machine& m) override {
    by_z_ = m.array<double>(n_ * n_ * n_, "adi: planes of z");
    by_y_ = m.array<double>(n_ * n_ * n_, "adi: planes of y");
  }

  void run(machine& m, int thread) override {
    const share own = share_of(n_, m.threads(), thread);
    std::vector<double> tile(n_ * lanes);
    for (std::size_t y = own.first; y < own.end; ++y) {
      for (std::size_t z = 0; z < n_; ++z) {
        for (std::size_t x = 0; x < n_; ++x) by_y_[at(y, z) + x] = input_.first(x, y, z);
      }
    }
    m.barrier(thread);
    for (int step = 0; step < input_.steps; ++step) {
      for (std::size_t z = own.first; z < own.end; ++z) {
        for (std::size_t y = 0; y < n_; ++y) std::copy_n(&by_y_[at(y, z)], n_, &by_z_[at(z, y)]);
        double* plane = &by_z_[at(z, 0)];
        solve_rows(plane, tile);
        lines_.solve(plane, n_, n_);
      }
      m.barrier(thread);
      for (std::size_t y = own.first; y < own.end; ++y) {
        for (std::size_t z = 0; z < n_; ++z) std::copy_n(&by_z_[at(z, y)], n_, &by_y_[at(y, z)]);
        lines_.solve(&by_y_[at(y, 0)], n_, n_);
      }
      m.barrier(thread);
    }
  }

  std::string check() const override {
    return difference("adi", {n_, n_, n_}, by_y_, reference(), 1e-10);
  }

  double checksum() const override {
    // Of squares, as the sum of the heat never changes.
    double all = 0;
    for (std::size_t i = 0; i < by_y_.size(); ++i) all += by_y_[i] * by_y_[i];
    return all;
  }

 private:
  static constexpr std::size_t lanes = 8;

  std::size_t at(std::size_t plane, std::size_t row) const { return (plane * n_ + row) * n_; }

  /// The lines along x are rows of the plane. Some at a time are turned into columns, as each point
  /// of a line has to wait for the one before.
  void solve_rows(double* plane, std::vector<double>& tile) const {
    for (std::size_t first = 0; first < n_; first += lanes) {
      const std::size_t rows = std::min(lanes, n_ - first);
      double* from = plane + first * n_;
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t x = 0; x < n_; ++x) tile[x * lanes + i] = from[i * n_ + x];
      }
      lines_.solve(tile.data(), lanes, rows);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t x = 0; x < n_; ++x) from[i * n_ + x] = tile[x * lanes + i];
      }
    }
  }

  /// Elimination as the textbooks have it, line by line.
  std::vector<double> reference() const {
    const std::size_t n = n_;
    std::vector<double> heat(n * n * n);
    for (std::size_t i = 0; i < heat.size(); ++i) {
      heat[i] = input_.first(i % n, i / n / n, i / n % n);
    }
    std::vector<double> diagonal(n);
    std::vector<double> multiple(n);  // of the equation before, which is taken from this one
    for (std::size_t k = 0; k < n; ++k) {
      diagonal[k] = 1 + (k > 0 ? adi_ratio : 0) + (k + 1 < n ? adi_ratio : 0);
      if (k == 0) continue;
      multiple[k] = -adi_ratio / diagonal[k - 1];
      diagonal[k] += multiple[k] * adi_ratio;
    }
    std::vector<double> right(n);
    for (int step = 0; step < input_.steps; ++step) {
      for (const std::size_t stride : {std::size_t{1}, n * n, n}) {
        for (std::size_t start = 0; start < heat.size(); ++start) {
          if (start / stride % n != 0) continue;
          right[0] = heat[start];
          for (std::size_t k = 1; k < n; ++k) {
            right[k] = heat[start + k * stride] - multiple[k] * right[k - 1];
          }
          double next = 0;
          for (std::size_t k = n; k-- > 0;) {
            next = (right[k] + adi_ratio * next) / diagonal[k];
            heat[start + k * stride] = next;
          }
        }
      }
    }
    return heat;
  }

  adi_input input_;
  std::size_t n_;
  line_solver lines_;
  std::span<double> by_z_;
  std::span<double> by_y_;
};

double random_heat(std::size_t x, std::size_t y, std::size_t z) {
  return random_source((z << 20 | y << 10) | x).fraction();
}

}  // namespace

std::unique_ptr<application> make_adi(const adi_input& input) {
  return std::make_unique<adi>(input);
}

std::unique_ptr<application> make_adi(problem_size size) {
  return size == problem_size::paper ? make_adi({.side = 125, .steps = 80, .first = random_heat})
                                     : make_adi({.side = 21, .steps = 10, .first = random_heat});
}

}  // namespace apps::nine
