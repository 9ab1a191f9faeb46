// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/swm.hpp"

#include <array>
#include <cmath>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "nine/kernel/applications.hpp"
#include "nine/kernel/difference.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {
namespace {

constexpr double distance = 1e5;     // of neighbouring cells, in metres
constexpr double time_step = 90;     // in seconds
constexpr double smoothing = 0.001;  // how much of the curvature in time a step takes away
constexpr double mean_potential = 5e4;

// u[i][j] stands on the edge between the cells [i-1][j] and [i][j], v[i][j] on that between
// [i][j-1] and [i][j], and vorticity[i][j] in the corner of the cells [i-1][j-1] and [i][j]. Rows
// follow one another along x.

double angle(std::size_t i, std::size_t side) {
  return 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(side);
}
double first_potential(std::size_t side, std::size_t i, std::size_t j) {
  return mean_potential + 1e3 * (std::cos(2 * angle(i, side)) + std::cos(2 * angle(j, side)));
}
/// The stream function of the wind, which blows along its contours, in the corner [i][j].
double stream(std::size_t side, std::size_t i, std::size_t j) {
  const double scale = 4 * distance * static_cast<double>(side) / (2 * std::numbers::pi);
  return scale * (std::sin(angle(i, side)) * std::sin(angle(j, side)) +
                  0.2 * std::sin(5 * angle(i, side) + 3 * angle(j, side)));
}
double first_u(std::size_t side, std::size_t i, std::size_t j) {
  return -(stream(side, i, j + 1) - stream(side, i, j)) / distance;
}
double first_v(std::size_t side, std::size_t i, std::size_t j) {
  return (stream(side, i + 1, j) - stream(side, i, j)) / distance;
}

/// A thread has the same rows of all arrays. Each row has a copy of its last cell before the first
/// and of its first cell behind the last, so that no cell is a special case.
class swm final : public application {
 public:
  explicit swm(const swm_input& input) : n_(input.side), pitch_(n_ + 2), steps_(input.steps) {}

  void prepare(machine& m) override {
    const auto array = [&](const char* name) { return m.array<double>(n_ * pitch_, name); };
    u_ = {array("swm: u"), array("swm: old u")};
    v_ = {array("swm: v"), array("swm: old v")};
    p_ = {array("swm: potential"), array("swm: old potential")};
    flow_x_ = array("swm: flow along x");
    flow_y_ = array("swm: flow along y");
    vorticity_ = array("swm: potential vorticity");
    height_ = array("swm: height");
  }

  void run(machine& m, int thread) override {
    const share rows = share_of(n_, m.threads(), thread);
    for (std::size_t i = rows.first; i < rows.end; ++i) begin_row(i);
    m.barrier(thread);
    for (int step = 0; step < steps_; ++step) {
      for (std::size_t i = rows.first; i < rows.end; ++i) derive_row(i);
      m.barrier(thread);
      // The first step has no older state to leap from, and goes half as far from the present one.
      const double interval = step == 0 ? time_step : 2 * time_step;
      for (std::size_t i = rows.first; i < rows.end; ++i) advance_row(i, interval);
      m.barrier(thread);
    }
  }

  std::string check() const override {
    const auto [u, v, p] = reference();
    for (const std::string& fault : {difference("swm, potential", {n_, n_}, cells(p_.now), p, 1e-6),
                                     difference("swm, u", {n_, n_}, cells(u_.now), u, 1e-8),
                                     difference("swm, v", {n_, n_}, cells(v_.now), v, 1e-8)}) {
      if (!fault.empty()) return fault;
    }
    return {};
  }

  double checksum() const override {
    double energy = 0;  // of the waves
    const std::vector<double> u = cells(u_.now);
    const std::vector<double> v = cells(v_.now);
    const std::vector<double> p = cells(p_.now);
    for (std::size_t i = 0; i < n_ * n_; ++i) {
      const double raised = p[i] - mean_potential;
      energy += (raised * raised / mean_potential + u[i] * u[i] + v[i] * v[i]) / 2;
    }
    return energy;
  }

 private:
  /// A quantity now and a step ago.
  struct history {
    std::span<double> now;
    std::span<double> old;
  };

  double* row(std::span<double> array, std::size_t i) const { return &array[i * pitch_ + 1]; }
  std::size_t next(std::size_t i) const { return i + 1 == n_ ? 0 : i + 1; }
  std::size_t previous(std::size_t i) const { return i == 0 ? n_ - 1 : i - 1; }
  void close(double* row) const {
    row[-1] = row[n_ - 1];
    row[n_] = row[0];
  }

  void begin_row(std::size_t i) const {
    const auto begin = [&](const history& h,
                           double (*first)(std::size_t, std::size_t, std::size_t)) {
      for (const std::span<double> array : {h.now, h.old}) {
        double* values = row(array, i);
        for (std::size_t j = 0; j < n_; ++j) values[j] = first(n_, i, j);
        close(values);
      }
    };
    begin(u_, first_u);
    begin(v_, first_v);
    begin(p_, first_potential);
  }

  /// Computes flows, vorticity and height of a row from the state of this row and those beside it.
  void derive_row(std::size_t i) const {
    const double* p = row(p_.now, i);
    const double* p_before = row(p_.now, previous(i));
    const double* u = row(u_.now, i);
    const double* u_after = row(u_.now, next(i));
    const double* v = row(v_.now, i);
    const double* v_before = row(v_.now, previous(i));
    double* __restrict flow_x = row(flow_x_, i);
    double* __restrict flow_y = row(flow_y_, i);
    double* __restrict vorticity = row(vorticity_, i);
    double* __restrict height = row(height_, i);
    for (std::size_t j = 0; j < n_; ++j) {
      flow_x[j] = 0.5 * (p_before[j] + p[j]) * u[j];
      flow_y[j] = 0.5 * (p[j - 1] + p[j]) * v[j];
      vorticity[j] = 4 / distance * (v[j] - v_before[j] - u[j] + u[j - 1]) /
                     (p_before[j - 1] + p_before[j] + p[j - 1] + p[j]);
      height[j] =
          p[j] + 0.25 * (u[j] * u[j] + u_after[j] * u_after[j] + v[j] * v[j] + v[j + 1] * v[j + 1]);
    }
    for (double* derived : {flow_x, flow_y, vorticity, height}) close(derived);
  }

  void advance_row(std::size_t i, double interval) const {
    const double* flow_x = row(flow_x_, i);
    const double* flow_x_after = row(flow_x_, next(i));
    const double* flow_y = row(flow_y_, i);
    const double* flow_y_before = row(flow_y_, previous(i));
    const double* vorticity = row(vorticity_, i);
    const double* vorticity_after = row(vorticity_, next(i));
    const double* height = row(height_, i);
    const double* height_before = row(height_, previous(i));
    const double slope = interval / distance;
    double* __restrict u = row(u_.now, i);
    double* __restrict v = row(v_.now, i);
    double* __restrict p = row(p_.now, i);
    double* __restrict old_u = row(u_.old, i);
    double* __restrict old_v = row(v_.old, i);
    double* __restrict old_p = row(p_.old, i);
    for (std::size_t j = 0; j < n_; ++j) {
      const double turn_u = interval / 8 * (vorticity[j] + vorticity[j + 1]) *
                            (flow_y[j] + flow_y[j + 1] + flow_y_before[j] + flow_y_before[j + 1]);
      const double turn_v = interval / 8 * (vorticity[j] + vorticity_after[j]) *
                            (flow_x[j - 1] + flow_x[j] + flow_x_after[j - 1] + flow_x_after[j]);
      step(u[j], old_u[j], turn_u - slope * (height[j] - height_before[j]));
      step(v[j], old_v[j], -turn_v - slope * (height[j] - height[j - 1]));
      step(p[j], old_p[j], -slope * (flow_x_after[j] - flow_x[j] + flow_y[j + 1] - flow_y[j]));
    }
    for (double* state : {u, v, p}) close(state);
  }

  static void step(double& now, double& old, double change) {
    const double new_value = old + change;
    old = now + smoothing * (new_value - 2 * now + old);
    now = new_value;
  }

  std::vector<double> cells(std::span<double> array) const {
    std::vector<double> all;
    for (std::size_t i = 0; i < n_; ++i) all.insert(all.end(), row(array, i), row(array, i) + n_);
    return all;
  }

  /// u, v and the potential, computed one equation after the other on whole arrays, which have no
  /// copies of their edges.
  std::array<std::vector<double>, 3> reference() const {
    using field = std::vector<double>;
    const std::size_t n = n_;
    // [i + di][j + dj] of the torus.
    const auto at = [n](const field& f, std::size_t i, std::size_t j, int di = 0, int dj = 0) {
      const auto wrapped = [n](std::size_t k, int d) {
        return d < 0 ? (k + n - 1) % n : (k + static_cast<std::size_t>(d)) % n;
      };
      return f[wrapped(i, di) * n + wrapped(j, dj)];
    };
    const auto computed = [n](auto&& value) {
      field f(n * n);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < n; ++j) f[i * n + j] = value(i, j);
      }
      return f;
    };
    field u = computed([&](std::size_t i, std::size_t j) { return first_u(n, i, j); });
    field v = computed([&](std::size_t i, std::size_t j) { return first_v(n, i, j); });
    field p = computed([&](std::size_t i, std::size_t j) { return first_potential(n, i, j); });
    field old_u = u;
    field old_v = v;
    field old_p = p;
    double interval = time_step;
    for (int step = 0; step < steps_; ++step) {
      const field flow_x = computed([&](std::size_t i, std::size_t j) {
        return (at(p, i, j, -1) + at(p, i, j)) / 2 * at(u, i, j);
      });
      const field flow_y = computed([&](std::size_t i, std::size_t j) {
        return (at(p, i, j, 0, -1) + at(p, i, j)) / 2 * at(v, i, j);
      });
      const field vorticity = computed([&](std::size_t i, std::size_t j) {
        const double spin = (at(v, i, j) - at(v, i, j, -1)) - (at(u, i, j) - at(u, i, j, 0, -1));
        const double mass =
            at(p, i, j, -1, -1) + at(p, i, j, -1, 0) + at(p, i, j, 0, -1) + at(p, i, j);
        return spin / distance / (mass / 4);
      });
      const field height = computed([&](std::size_t i, std::size_t j) {
        const double along_x = std::pow(at(u, i, j), 2) + std::pow(at(u, i, j, 1), 2);
        const double along_y = std::pow(at(v, i, j), 2) + std::pow(at(v, i, j, 0, 1), 2);
        return at(p, i, j) + (along_x / 2 + along_y / 2) / 2;
      });
      const field new_u = computed([&](std::size_t i, std::size_t j) {
        const double flow = (at(flow_y, i, j) + at(flow_y, i, j, 0, 1) + at(flow_y, i, j, -1, 0) +
                             at(flow_y, i, j, -1, 1)) /
                            4;
        const double turn = (at(vorticity, i, j) + at(vorticity, i, j, 0, 1)) / 2 * flow;
        const double slope = (at(height, i, j) - at(height, i, j, -1)) / distance;
        return at(old_u, i, j) + interval * (turn - slope);
      });
      const field new_v = computed([&](std::size_t i, std::size_t j) {
        const double flow = (at(flow_x, i, j) + at(flow_x, i, j, 1) + at(flow_x, i, j, 0, -1) +
                             at(flow_x, i, j, 1, -1)) /
                            4;
        const double turn = (at(vorticity, i, j) + at(vorticity, i, j, 1)) / 2 * flow;
        const double slope = (at(height, i, j) - at(height, i, j, 0, -1)) / distance;
        return at(old_v, i, j) - interval * (turn + slope);
      });
      const field new_p = computed([&](std::size_t i, std::size_t j) {
        const double out =
            (at(flow_x, i, j, 1) - at(flow_x, i, j)) + (at(flow_y, i, j, 0, 1) - at(flow_y, i, j));
        return at(old_p, i, j) - interval * out / distance;
      });
      const auto smoothed = [&](const field& newer, const field& now, const field& older) {
        return computed([&](std::size_t i, std::size_t j) {
          const double bend = at(newer, i, j) - 2 * at(now, i, j) + at(older, i, j);
          return at(now, i, j) + smoothing * bend;
        });
      };
      old_u = smoothed(new_u, u, old_u);
      old_v = smoothed(new_v, v, old_v);
      old_p = smoothed(new_p, p, old_p);
      u = new_u;
      v = new_v;
      p = new_p;
      interval = 2 * time_step;
    }
    return {u, v, p};
  }

  std::size_t n_;
  std::size_t pitch_;
  int steps_;
  history u_;
  history v_;
  history p_;
  std::span<double> flow_x_;
  std::span<double> flow_y_;
  std::span<double> vorticity_;
  std::span<double> height_;
};

}  // namespace

std::unique_ptr<application> make_swm(const swm_input& input) {
  return std::make_unique<swm>(input);
}

std::unique_ptr<application> make_swm(problem_size size) {
  return make_swm(size == problem_size::paper ? swm_input{.side = 750, .steps = 120}
                                              : swm_input{.side = 62, .steps = 20});
}

}  // namespace apps::nine
