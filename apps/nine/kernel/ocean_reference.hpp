// SPDX-License-Identifier: Apache-2.0
// What the ocean is, and what a serial program computes of it without multigrid.
#pragma once

#include <cmath>
#include <cstddef>
#include <numbers>
#include <vector>

#include "nine/kernel/ocean.hpp"

namespace apps::nine {

namespace ocean_model {

// Lengths are in units of the ocean's edge; times in those in which a wave as long as the ocean
// crosses it.
constexpr double planet = 1;   // how much the planet turns faster at the northern edge
constexpr double drag = 0.05;  // of the ground
constexpr double viscosity = 2e-4;
constexpr double wind = 0.5;

inline double time_step(std::size_t side) { return 0.25 / static_cast<double>(side); }
/// Where the middle of a cell is. Cells are counted from 1.
inline double middle(std::size_t cell, std::size_t side) {
  return (static_cast<double>(cell) - 0.5) / static_cast<double>(side);
}
inline double wind_torque(std::size_t row, std::size_t side) {
  return -wind * std::sin(std::numbers::pi * middle(row, side));
}
inline double first_vorticity(std::size_t row, std::size_t column, std::size_t side) {
  const double x = std::numbers::pi * middle(column, side);
  const double y = std::numbers::pi * middle(row, side);
  return std::sin(2 * x) * std::sin(y) - 0.7 * std::sin(3 * x) * std::sin(4 * y) +
         0.4 * std::sin(x) * std::sin(6 * y);
}

}  // namespace ocean_model

/// Values of cells in order of rows, without the ring around them.
struct ocean_state {
  std::vector<double> stream;
  std::vector<double> vorticity;
  std::vector<double> energy;  ///< After each step.
};

/// The state after the input's steps.
ocean_state ocean_reference(const ocean_input& input);

}  // namespace apps::nine
