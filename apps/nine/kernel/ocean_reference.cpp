// SPDX-License-Identifier: Apache-2.0
#include "nine/kernel/ocean_reference.hpp"

#include <algorithm>
#include <utility>

namespace apps::nine {
namespace {

using namespace ocean_model;

/// Finds the stream function as a sum of waves along the rows, whose amplitudes it finds by
/// elimination along the columns. Cells are counted from 0.
struct reference : ocean_state {
  explicit reference(const ocean_input& input)
      : n(input.side), waves(n * n), waves_at(n * n), eigenvalues(n) {
    stream.resize(n * n);
    vorticity.resize(n * n);
    const double pi = std::numbers::pi;
    for (std::size_t k = 0; k < n; ++k) {
      const double periods = static_cast<double>(k + 1) / static_cast<double>(n);
      for (std::size_t j = 0; j < n; ++j) {
        const double height = std::sin(pi * periods * (static_cast<double>(j) + 0.5));
        waves[k * n + j] = height;
        waves_at[j * n + k] = height;
      }
      eigenvalues[k] = 2 * std::cos(pi * periods) - 2;
    }
    for (std::size_t i = 0; i < n * n; ++i) {
      vorticity[i] = first_vorticity(i / n + 1, i % n + 1, n);
    }
    solve();
    std::vector<double> last_change;
    for (int step = 0; step < input.steps; ++step) {
      std::vector<double> change;
      for (std::size_t i = 0; i < n * n; ++i) change.push_back(change_at(i / n, i % n));
      if (step == 0) last_change = change;
      for (std::size_t i = 0; i < n * n; ++i) {
        vorticity[i] += time_step(n) * (change[i] + (change[i] - last_change[i]) / 2);
      }
      last_change = change;
      solve();
      double sum = 0;
      for (std::size_t i = 0; i < n * n; ++i) sum += stream[i] * vorticity[i];
      energy.push_back(-sum / 2 / static_cast<double>(n * n));
    }
  }

  void solve() {
    std::vector<double> amplitudes(n * n);  // [i][k], of row i
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < n; ++k) {
          amplitudes[i * n + k] += vorticity[i * n + j] * waves_at[j * n + k];
        }
      }
    }
    const double area = 1 / static_cast<double>(n * n);
    std::vector<double> diagonal(n);
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t i = 0; i < n; ++i) {
        const bool edge = i == 0 || i + 1 == n;
        diagonal[i] = eigenvalues[k] - (edge ? 3 : 2);
        // Squares of a wave are 1/2 on average; those of the shortest are all 1.
        amplitudes[i * n + k] *= area / static_cast<double>(k + 1 == n ? n : n / 2);
        if (i == 0) continue;
        const double multiple = 1 / diagonal[i - 1];
        diagonal[i] -= multiple;
        amplitudes[i * n + k] -= multiple * amplitudes[(i - 1) * n + k];
      }
      double below = 0;
      for (std::size_t i = n; i-- > 0;) {
        below = (amplitudes[i * n + k] - below) / diagonal[i];
        amplitudes[i * n + k] = below;
      }
    }
    std::fill(stream.begin(), stream.end(), 0.0);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < n; ++k) {
        for (std::size_t j = 0; j < n; ++j) {
          stream[i * n + j] += amplitudes[i * n + k] * waves[k * n + j];
        }
      }
    }
  }

  /// The cell dy rows and dx columns from [i][j], perhaps beyond the edge.
  double at(const std::vector<double>& f, std::size_t i, std::size_t j, int dx, int dy) const {
    double sign = 1;
    const auto moved = [&](std::size_t k, int d) {
      if ((k == 0 && d < 0) || (k + 1 == n && d > 0)) {
        sign = -sign;
        return k;
      }
      return d < 0 ? k - 1 : k + static_cast<std::size_t>(d);
    };
    const std::size_t row = moved(i, dy);
    const std::size_t column = moved(j, dx);
    return sign * f[row * n + column];
  }

  double change_at(std::size_t i, std::size_t j) const {
    const auto p = [&](int dx, int dy) { return at(stream, i, j, dx, dy); };
    const auto z = [&](int dx, int dy) { return at(vorticity, i, j, dx, dy); };
    const double h = 1 / static_cast<double>(n);
    // The mean of Arakawa's three forms.
    const double centred =
        (p(1, 0) - p(-1, 0)) * (z(0, 1) - z(0, -1)) - (p(0, 1) - p(0, -1)) * (z(1, 0) - z(-1, 0));
    const double corners_of_z = p(1, 0) * (z(1, 1) - z(1, -1)) - p(-1, 0) * (z(-1, 1) - z(-1, -1)) -
                                p(0, 1) * (z(1, 1) - z(-1, 1)) + p(0, -1) * (z(1, -1) - z(-1, -1));
    const double corners_of_p = z(0, 1) * (p(1, 1) - p(-1, 1)) - z(0, -1) * (p(1, -1) - p(-1, -1)) -
                                z(1, 0) * (p(1, 1) - p(1, -1)) + z(-1, 0) * (p(-1, 1) - p(-1, -1));
    const double carried = (centred + corners_of_z + corners_of_p) / 3 / (4 * h * h);
    const double spread =
        (z(1, 0) - 2 * z(0, 0) + z(-1, 0) + z(0, 1) - 2 * z(0, 0) + z(0, -1)) / (h * h);
    return wind_torque(i + 1, n) - carried - planet * (p(1, 0) - p(-1, 0)) / (2 * h) +
           viscosity * spread - drag * z(0, 0);
  }

  std::size_t n;
  std::vector<double> waves;     // [k][j]: of wave k in column j
  std::vector<double> waves_at;  // [j][k]: the same numbers
  std::vector<double> eigenvalues;
};

}  // namespace

ocean_state ocean_reference(const ocean_input& input) { return reference(input); }

}  // namespace apps::nine
