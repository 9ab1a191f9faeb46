// SPDX-License-Identifier: Apache-2.0
// Running programs: one random interleaving of many, or all of a small one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "program.hpp"

namespace page_model {

/// What several runs came to. Only runs without a failure count, but for their steps.
struct totals {
  unsigned long programs = 0, failures = 0, cut_short = 0;
  unsigned long steps = 0, states = 0;
  unsigned long messages = 0, faults = 0, diffs_made = 0, diffs_applied = 0;
};

/// One interleaving of the program, which the seed chooses. Returns what failed, or nothing.
/// Appends the steps to `log` unless that is null.
std::string random_walk(const program& p, std::uint64_t seed, std::optional<rule> broken,
                        totals& sum, std::string* log = nullptr);

/// All interleavings, or those that are found before there are more than `states_max` states.
/// Returns what failed, or nothing.
std::string all_interleavings(const program& p, std::size_t states_max, std::optional<rule> broken,
                              totals& sum);

}  // namespace page_model
