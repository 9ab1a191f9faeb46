// SPDX-License-Identifier: Apache-2.0
// The uniform grid of cells that two of the water programs divide the cube into. A cell is as wide
// as the cutoff at least, so molecules act on none but those of their own cell and the 26 around
// it. Cells are numbered x first and dealt out to threads in that order: a thread has whole layers
// but for the ends, next to those of the threads before and after it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "nine/kernel/machine.hpp"
#include "nine/kernel/water_physics.hpp"

namespace apps::nine::water {

/// What both programs compute. The small cube has four cells along a side, the other one seven, so
/// that few bounds of cells lie where the lattice has molecules.
inline input cells_input(problem_size size) {
  return size == problem_size::small ? input{.per_side = 6, .cutoff = 4.6, .steps = 40}
                                     : input{.per_side = 16, .cutoff = 7, .steps = 120};
}

class cell_grid {
 public:
  explicit cell_grid(const input& in)
      : per_side_(static_cast<std::size_t>(in.side() / in.cutoff)),
        per_angstrom_(static_cast<double>(per_side_) / in.side()) {}

  std::size_t cells() const { return per_side_ * per_side_ * per_side_; }

  std::size_t cell_of(const sites& position) const {
    const vec oxygen = position.at[0];
    return number(along(oxygen.x), along(oxygen.y), along(oxygen.z));
  }

  /// The 26 cells around one. They are different where three cells lie along a side at least.
  std::array<std::size_t, 26> around(std::size_t cell) const {
    const std::size_t n = per_side_;
    const std::size_t x = cell % n;
    const std::size_t y = cell / n % n;
    const std::size_t z = cell / (n * n);
    std::array<std::size_t, 26> found{};
    std::size_t count = 0;
    for (const std::size_t k : {n - 1, std::size_t{0}, std::size_t{1}}) {
      for (const std::size_t j : {n - 1, std::size_t{0}, std::size_t{1}}) {
        for (const std::size_t i : {n - 1, std::size_t{0}, std::size_t{1}}) {
          if (i == 0 && j == 0 && k == 0) continue;
          found[count++] = number((x + i) % n, (y + j) % n, (z + k) % n);
        }
      }
    }
    return found;
  }

 private:
  std::size_t along(double x) const {
    // A coordinate just below zero may have come in as the side itself.
    return std::min(static_cast<std::size_t>(x * per_angstrom_), per_side_ - 1);
  }
  std::size_t number(std::size_t x, std::size_t y, std::size_t z) const {
    return x + per_side_ * (y + per_side_ * z);
  }

  std::size_t per_side_;
  double per_angstrom_;
};

}  // namespace apps::nine::water
