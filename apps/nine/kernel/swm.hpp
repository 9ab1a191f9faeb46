// SPDX-License-Identifier: Apache-2.0
// The shallow-water equations on a torus, by finite differences that conserve mass and
// potential enstrophy (R. Sadourny, Journal of the Atmospheric Sciences 32, 1975), in leapfrog
// steps that are smoothed in time.
#pragma once

#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

struct swm_input {
  std::size_t side;  ///< Cells along each edge.
  int steps;
};

std::unique_ptr<application> make_swm(const swm_input& input);

}  // namespace apps::nine
