// SPDX-License-Identifier: Apache-2.0
// Successive over-relaxation of Laplace's equation on a square, red points and black points in
// turn.
#pragma once

#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

struct sor_input {
  std::size_t side;  ///< Points in a row, those on the edge included. Even.
  int iterations;
};

std::unique_ptr<application> make_sor(const sor_input& input);

/// What a point of the edge is always, and a point within at first.
double sor_first_value(std::size_t side, std::size_t row, std::size_t column);

}  // namespace apps::nine
