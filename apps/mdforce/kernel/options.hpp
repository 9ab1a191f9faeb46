// SPDX-License-Identifier: Apache-2.0
// The command line and the report of MD-Force.
#pragma once

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "mdforce/kernel/atoms.hpp"

namespace apps::mdforce {

inline void add_options(CLI::App& options, settings& chosen) {
  options.add_option("--atoms", chosen.atoms, "In the whole job")
      ->check(CLI::Range(1u, 200'000u))
      ->capture_default_str();
  options
      .add_option("--layout", chosen.layout,
                  "Which rank has which atoms: random, any; orb, those of a part of space, by "
                  "orthogonal recursive bisection")
      ->check(CLI::IsMember({"random", "orb"}))
      ->capture_default_str();
  options
      .add_option("--cutoff", chosen.cutoff,
                  "Atoms further apart have no forces on each other; in angstrom")
      ->check(number_between(1, 30))
      ->capture_default_str();
  options.add_option("--steps", chosen.steps, "How often all forces are computed")
      ->check(CLI::Range(1u, 100'000u))
      ->capture_default_str();
  options.add_option("--seed", chosen.seed, "Of the chain, and of the random layout")
      ->capture_default_str();
}

/// Throws refusal: there are fewer atoms than ranks.
inline void check_settings(const settings& chosen, int ranks) {
  if (chosen.atoms < static_cast<std::uint32_t>(ranks)) {
    throw refusal(2, fmt::format("--atoms: {} are too few for {} ranks", chosen.atoms, ranks));
  }
}

}  // namespace apps::mdforce
