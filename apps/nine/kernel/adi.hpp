// SPDX-License-Identifier: Apache-2.0
// Heat in a cube by alternating directions: each step solves tridiagonal equations along x, then
// along y, then along z. It stands for the paper's Erle, which does so for derivatives.
#pragma once

#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

struct adi_input {
  std::size_t side;  ///< Points along each edge of the cube; 2 at least.
  int steps;
  /// The heat at the beginning.
  double (*first)(std::size_t x, std::size_t y, std::size_t z);
};

/// The time step over the square of the distance of points.
constexpr double adi_ratio = 0.5;

std::unique_ptr<application> make_adi(const adi_input& input);

}  // namespace apps::nine
