// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/ocean.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/difference.hpp"
#include "nine/kernel/ocean_reference.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {
namespace {

using namespace ocean_model;

/// Cells in rows and columns 1 … n, and a ring of cells around them. Each thread's rows lie one
/// after the other and begin on a page of their own.
class grid {
 public:
  grid() = default;
  /// Thread t has the rows shares[t].first + 1 … shares[t].end; the ring belongs to its neighbours.
  grid(machine& m, std::size_t n, std::span<const share> shares, const char* name) {
    std::vector<std::size_t> offsets;
    std::size_t end = 0;
    for (const share& s : shares) {
      end = (end + doubles_on_page - 1) / doubles_on_page * doubles_on_page;
      for (std::size_t row = s.first + 1; row <= s.end; ++row) {
        const std::size_t edges = (row == 1 ? 1u : 0u) + (row == n ? 1u : 0u);
        for (std::size_t i = 0; i < 1 + edges; ++i, end += n + 2) offsets.push_back(end);
      }
    }
    const std::span<double> values = m.array<double>(end, name);
    for (const std::size_t offset : offsets) rows_.push_back(&values[offset]);
  }

  double* row(std::size_t i) const { return rows_[i]; }

 private:
  static constexpr std::size_t doubles_on_page = 4096 / sizeof(double);

  std::vector<double*> rows_;
};

/// Sets the cells of the ring beside a thread's rows. The value is 0 where the ocean ends, half-way
/// between a cell of the ring and its neighbour within: one is the negative of the other.
void close(const grid& g, std::size_t n, share rows) {
  for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
    g.row(i)[0] = -g.row(i)[1];
    g.row(i)[n + 1] = -g.row(i)[n];
    for (const auto& [edge, ring] : {std::pair(std::size_t{1}, std::size_t{0}), {n, n + 1}}) {
      if (i != edge) continue;
      for (std::size_t j = 0; j < n + 2; ++j) g.row(ring)[j] = -g.row(edge)[j];
    }
  }
}

/// The equation ∇²u = f on one of the grids of multigrid, each of which has half as many cells in a
/// row as the one before.
struct level {
  std::size_t n = 0;
  /// A small grid is the first thread's alone: the others would wait longer than they could help.
  bool alone = false;
  std::vector<share> shares;
  grid u;
  grid f;

  double distance() const { return 1 / static_cast<double>(n); }

  /// A Gauss-Seidel step for every other cell.
  void relax(std::size_t colour, share rows) const {
    const double area = distance() * distance();
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      double* __restrict here = u.row(i);
      const double* above = u.row(i - 1);
      const double* below = u.row(i + 1);
      const double* right_side = f.row(i);
      for (std::size_t j = 1 + (i + colour) % 2; j <= n; j += 2) {
        here[j] = 0.25 * (above[j] + below[j] + here[j - 1] + here[j + 1] - area * right_side[j]);
      }
    }
    close(u, n, rows);
  }

  double residual(std::size_t i, std::size_t j) const {
    const double* here = u.row(i);
    const double around = u.row(i - 1)[j] + u.row(i + 1)[j] + here[j - 1] + here[j + 1];
    return f.row(i)[j] - (around - 4 * here[j]) / (distance() * distance());
  }

  double greatest_residual(share rows) const {
    double most = 0;
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      for (std::size_t j = 1; j <= n; ++j) most = std::max(most, std::abs(residual(i, j)));
    }
    return most;
  }

  /// Sets up the equations of `coarse`, whose solution is the error of u, to be solved from 0 on.
  void restrict_to(const level& coarse, share coarse_rows) const {
    for (std::size_t i = coarse_rows.first + 1; i <= coarse_rows.end; ++i) {
      double* right_side = coarse.f.row(i);
      for (std::size_t j = 1; j <= coarse.n; ++j) {
        right_side[j] = 0.25 * (residual(2 * i - 1, 2 * j - 1) + residual(2 * i - 1, 2 * j) +
                                residual(2 * i, 2 * j - 1) + residual(2 * i, 2 * j));
      }
      std::fill_n(coarse.u.row(i), coarse.n + 2, 0.0);
    }
    close(coarse.u, coarse.n, coarse_rows);
  }

  /// Adds to u what `coarse` found, interpolated between the middles of its cells.
  void correct_by(const level& coarse, share rows) const {
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      const std::size_t near = (i + 1) / 2;
      const double* near_row = coarse.u.row(near);
      const double* far_row = coarse.u.row(i % 2 == 1 ? near - 1 : near + 1);
      const auto between = [&](std::size_t j) { return 3 * near_row[j] + far_row[j]; };
      double* __restrict here = u.row(i);
      for (std::size_t j = 1; j <= coarse.n; ++j) {
        here[2 * j - 1] += (3 * between(j) + between(j - 1)) / 16;
        here[2 * j] += (3 * between(j) + between(j + 1)) / 16;
      }
    }
    close(u, n, rows);
  }
};

/// Arakawa's Jacobian of the stream function p and the vorticity z, which conserves energy and
/// enstrophy (A. Arakawa, Journal of Computational Physics 1, 1966), times 12 times the square of
/// the distance of cells. Of both fields it takes row i - 1 (a, above), i, and i + 1 (b, below).
double jacobian(const double* pa, const double* p, const double* pb, const double* za,
                const double* z, const double* zb, std::size_t j) {
  const std::size_t w = j - 1;
  const std::size_t e = j + 1;
  return p[e] * (zb[j] - za[j] + zb[e] - za[e]) - p[w] * (zb[j] - za[j] + zb[w] - za[w]) -
         pb[j] * (z[e] - z[w] + zb[e] - zb[w]) + pa[j] * (z[e] - z[w] + za[e] - za[w]) +
         pb[e] * (zb[j] - z[e]) - pb[w] * (zb[j] - z[w]) + pa[e] * (z[e] - za[j]) -
         pa[w] * (z[w] - za[j]);
}

/// Rows are counted from the south.
class ocean final : public application {
 public:
  explicit ocean(const ocean_input& input) : n_(input.side), steps_(input.steps) {}

  void prepare(machine& m) override {
    levels_.clear();
    for (std::size_t n = n_; n >= 2; n /= 2) levels_.emplace_back().n = n;
    const std::size_t divided = std::min(levels_divided, levels_.size());
    for (std::size_t l = 0; l < levels_.size(); ++l) {
      level& at = levels_[l];
      at.alone = l >= divided;
      for (int thread = 0; thread < m.threads(); ++thread) {
        if (at.alone) {
          at.shares.push_back({0, thread == 0 ? at.n : 0});
        } else {
          // The two rows that a row of the next level stands for belong to the same thread.
          const share coarsest = share_of(n_ >> (divided - 1), m.threads(), thread);
          const std::size_t rows = at.n / (n_ >> (divided - 1));
          at.shares.push_back({coarsest.first * rows, coarsest.end * rows});
        }
      }
      at.u = grid(m, at.n, at.shares, l == 0 ? "ocean: stream" : "ocean: correction");
      at.f = grid(m, at.n, at.shares, l == 0 ? "ocean: vorticity" : "ocean: residual");
    }
    for (grid& g : change_) g = grid(m, n_, levels_[0].shares, "ocean: change");
    energy_ = m.array<double>(steps(), "ocean: energy");
    residuals_ = m.array<double>((steps() + 1) * (ocean_cycles_max + 1), "ocean: residuals");
  }

  void run(machine& m, int thread) override {
    const level& whole = levels_[0];
    const share rows = share_at(whole, thread);
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      for (std::size_t j = 1; j <= n_; ++j) whole.f.row(i)[j] = first_vorticity(i, j, n_);
    }
    close(whole.f, n_, rows);
    solve(m, thread, 0);
    for (std::size_t step = 0; step < steps(); ++step) {
      derive(step, rows);
      m.barrier(thread);
      advance(step, rows);
      solve(m, thread, step + 1);
      const double mine = energy(rows);
      m.lock(thread, energy_lock);
      energy_[step] += mine;
      m.unlock(thread, energy_lock);
    }
  }

  std::string check() const override {
    const ocean_state expected = ocean_reference({.side = n_, .steps = steps_});
    for (const std::string& fault :
         {difference("ocean, vorticity", {n_, n_}, cells(levels_[0].f), expected.vorticity, 1e-7),
          difference("ocean, stream", {n_, n_}, cells(levels_[0].u), expected.stream, 1e-8),
          difference("ocean, energy", {steps()}, energy_, expected.energy, 1e-8)}) {
      if (!fault.empty()) return fault;
    }
    return {};
  }

  double checksum() const override {
    double all = 0;
    for (const double value : cells(levels_[0].f)) all += value * value;
    for (const double value : cells(levels_[0].u)) all += value * value;
    for (const double value : energy_) all += value;
    return all;
  }

 private:
  static constexpr int energy_lock = 0;
  static constexpr std::size_t levels_divided = 3;

  std::size_t steps() const { return static_cast<std::size_t>(steps_); }
  static share share_at(const level& l, int thread) {
    return l.shares[static_cast<std::size_t>(thread)];
  }

  /// Brings the stream function in accord with the vorticity. All threads see the same residual.
  void solve(machine& m, int thread, std::size_t number) const {
    for (std::size_t cycle = 0; cycle <= ocean_cycles_max; ++cycle) {
      const level& whole = levels_[0];
      const double most = m.greatest(thread, whole.greatest_residual(share_at(whole, thread)));
      if (thread == 0) residuals_[number * (ocean_cycles_max + 1) + cycle] = most;
      if (most <= ocean_tolerance) return;
      descend(m, thread, 0);
    }
  }

  /// A V-cycle from this level down. At its beginning and its end all threads know all of u.
  void descend(machine& m, int thread, std::size_t number) const {
    const level& fine = levels_[number];
    if (number + 1 == levels_.size()) {
      relax(m, thread, fine, 8);
      return;
    }
    const level& coarse = levels_[number + 1];
    relax(m, thread, fine, 2);
    fine.restrict_to(coarse, share_at(coarse, thread));
    meet(m, thread, coarse);
    descend(m, thread, number + 1);
    if (coarse.alone) meet(m, thread, fine);
    fine.correct_by(coarse, share_at(fine, thread));
    meet(m, thread, fine);
    relax(m, thread, fine, 1);
  }

  static void relax(machine& m, int thread, const level& at, int sweeps) {
    for (int half = 0; half < 2 * sweeps; ++half) {
      at.relax(static_cast<std::size_t>(half % 2), share_at(at, thread));
      meet(m, thread, at);
    }
  }

  static void meet(machine& m, int thread, const level& at) {
    if (!at.alone) m.barrier(thread);
  }

  /// How the vorticity changes.
  void derive(std::size_t step, share rows) const {
    const double per_distance = static_cast<double>(n_);
    const double per_area = per_distance * per_distance;
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      const double torque = wind_torque(i, n_);
      const double* pa = levels_[0].u.row(i - 1);
      const double* p = levels_[0].u.row(i);
      const double* pb = levels_[0].u.row(i + 1);
      const double* za = levels_[0].f.row(i - 1);
      const double* z = levels_[0].f.row(i);
      const double* zb = levels_[0].f.row(i + 1);
      double* __restrict change = change_[step % 2].row(i);
      for (std::size_t j = 1; j <= n_; ++j) {
        const double carried = jacobian(pa, p, pb, za, z, zb, j) * per_area / 12;
        const double north = planet * (p[j + 1] - p[j - 1]) * per_distance / 2;
        const double spread = (za[j] + zb[j] + z[j - 1] + z[j + 1] - 4 * z[j]) * per_area;
        change[j] = torque - carried - north + viscosity * spread - drag * z[j];
      }
    }
  }

  /// A step of Adams and Bashforth's second order; the first, which has none before, is Euler's.
  void advance(std::size_t step, share rows) const {
    const double now = time_step(n_) * (step == 0 ? 1 : 1.5);
    const double before = time_step(n_) * (step == 0 ? 0 : -0.5);
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      double* __restrict z = levels_[0].f.row(i);
      const double* change = change_[step % 2].row(i);
      const double* last_change = change_[(step + 1) % 2].row(i);
      for (std::size_t j = 1; j <= n_; ++j) z[j] += now * change[j] + before * last_change[j];
    }
    close(levels_[0].f, n_, rows);
  }

  double energy(share rows) const {
    double sum = 0;
    for (std::size_t i = rows.first + 1; i <= rows.end; ++i) {
      const double* p = levels_[0].u.row(i);
      const double* z = levels_[0].f.row(i);
      for (std::size_t j = 1; j <= n_; ++j) sum -= p[j] * z[j];
    }
    return sum / 2 / static_cast<double>(n_ * n_);
  }

  std::vector<double> cells(const grid& g) const {
    std::vector<double> all;
    for (std::size_t i = 1; i <= n_; ++i) all.insert(all.end(), g.row(i) + 1, g.row(i) + n_ + 1);
    return all;
  }

  std::size_t n_;
  int steps_;
  std::vector<level> levels_;  // the whole ocean first
  std::array<grid, 2> change_;
  std::span<double> energy_;
  std::span<double> residuals_;
};

}  // namespace

std::unique_ptr<application> make_ocean(const ocean_input& input) {
  return std::make_unique<ocean>(input);
}

std::unique_ptr<application> make_ocean(problem_size size) {
  return make_ocean(size == problem_size::paper ? ocean_input{.side = 256, .steps = 300}
                                                : ocean_input{.side = 32, .steps = 10});
}

}  // namespace apps::nine
