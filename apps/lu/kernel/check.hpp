// SPDX-License-Identifier: Apache-2.0
// Is L·U the matrix? By one processor, which has all blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lu/kernel/part.hpp"

namespace apps::lu {

/// Up to this size all of A - L·U is computed; a larger one is multiplied with random vectors,
/// which takes n² instead of n³ operations and misses a wrong element in one of 2⁸ runs at most.
inline constexpr std::size_t whole_max = 1024;
inline constexpr int probes = 8;

/// In units of ‖A‖·n·ε, in the infinity norm.
struct residual {
  double value = 0;
  bool is_whole = false;  ///< ‖A - L·U‖; otherwise the largest ‖A·x - L·(U·x)‖, x of -1 and 1.
};
/// Without pivots a diagonally dominant matrix grows by 2 at most, and sums of n products have
/// errors of n·ε, in the worst case. So this is generous, and one block that is stale misses it by
/// far.
inline constexpr double bound = 1;

/// `numbers`: the blocks of processor 0, then those of processor 1, …
residual check(const layout& l, std::uint64_t seed, const std::vector<double>& numbers);

/// What is wrong, in a sentence; nothing when it is within the bound.
std::optional<std::string> fault(const residual& r);

std::string to_text(const residual& r);

}  // namespace apps::lu
