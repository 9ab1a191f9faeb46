// SPDX-License-Identifier: Apache-2.0
// Is a spectrum the transform of the signal? By one processor, which has all of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fft/kernel/part.hpp"

namespace apps::fft {

/// Relative errors: of a vector's length, where it is one.
struct errors {
  std::optional<double>
      fftw;            ///< Distance from what FFTW computes, where it was there to build with.
  double inverse = 0;  ///< Distance of the inverse transform from the signal.
  double energy = 0;   ///< Of Parseval's sum.
  double bins = 0;     ///< Of the worst of some bins that are summed up by the definition.
};

/// An error of a bit and a half per step would be the worst case; the mean is far below.
inline double bound(const layout& l) { return (2 + l.log2_points) * 0x1p-52; }

/// Puts what a processor's block ended as where it belongs in a spectrum of all bins.
void put_in_order(const layout& l, int processor, const complex* block,
                  std::vector<complex>& spectrum);

errors compare(const layout& l, std::uint64_t seed, const std::vector<complex>& spectrum);

/// What is wrong, in a sentence; nothing when all is within bound().
std::optional<std::string> fault(const layout& l, const errors& e);

std::string to_text(const layout& l, const errors& e);

}  // namespace apps::fft
