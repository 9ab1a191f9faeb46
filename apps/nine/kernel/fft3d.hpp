// SPDX-License-Identifier: Apache-2.0
// Diffusion in a periodic cube by Fourier transforms in three dimensions: one forward, then in each
// iteration the spectrum decays a little and is transformed back.
#pragma once

#include <complex>
#include <cstddef>
#include <memory>

#include "nine/kernel/machine.hpp"

namespace apps::nine {

struct fft3d_input {
  std::size_t side;  ///< Points along each edge of the cube: a power of two, 8 at least.
  int iterations;
  double diffusion;  ///< A wave of k periods decays by exp(-4·π²·k²·diffusion) in an iteration.
  /// The field at the beginning.
  std::complex<double> (*first)(std::size_t x, std::size_t y, std::size_t z);
};

std::unique_ptr<application> make_fft3d(const fft3d_input& input);

}  // namespace apps::nine
