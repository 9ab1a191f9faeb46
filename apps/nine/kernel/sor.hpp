// SPDX-License-Identifier: Apache-2.0
// Successive over-relaxation of Laplace's equation on a square, red points and black points in
// turn.
#pragma once

#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"
#include "nine/kernel/share.hpp"

namespace apps::nine {

struct sor_input {
  std::size_t side;  ///< Points in a row, those on the edge included. Even.
  int iterations;
};

sor_input sor_input_of(problem_size size);
std::unique_ptr<application> make_sor(const sor_input& input);

/// Red points, whose row and column have an even sum, and black ones are arrays of their own, so
/// that half a sweep stores to every byte of its pages and loads neighbours that lie side by side.
/// Point k of a colour in a row stands in column 2k or 2k + 1.
///
/// Half a sweep: the points of the colour `parity` in those rows that are not the edge. `all` and
/// `others` are that colour and the other one, from row `first_row` of the square on; of the other
/// colour the rows above and below are loaded, too.
void sor_relax(std::size_t side, std::size_t parity, share rows, std::size_t first_row, double* all,
               const double* others);

/// What a point of the edge is always, and a point within at first.
double sor_first_value(std::size_t side, std::size_t row, std::size_t column);

}  // namespace apps::nine
