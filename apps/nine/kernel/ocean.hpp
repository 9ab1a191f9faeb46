// SPDX-License-Identifier: Apache-2.0
// Eddies and boundary currents in a square ocean that the wind drives: the vorticity is carried by
// the flow, and in each step the flow's stream function is found from the vorticity by multigrid.
#pragma once

#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

struct ocean_input {
  /// Cells along each edge: a power of two, 4 at least. The grid has two more, a ring around them.
  std::size_t side;
  int steps;  ///< 1 at least.
};

/// How many multigrid cycles a step has at most. Some six are needed.
constexpr std::size_t ocean_cycles_max = 30;

/// The cycles of a step end when no residual is greater than this. The vorticity is about 1.
constexpr double ocean_tolerance = 1e-8;

std::unique_ptr<application> make_ocean(const ocean_input& input);

}  // namespace apps::nine
