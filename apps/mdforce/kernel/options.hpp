// SPDX-License-Identifier: Apache-2.0
// The command line and the report of MD-Force.
#pragma once

#include <fmt/format.h>

#include "common/command_line.hpp"
#include "mdforce/kernel/atoms.hpp"

namespace apps::mdforce {

inline void add_options(command_line& options, settings& chosen) {
  options.add("--atoms", chosen.atoms, "Atoms in the whole job").between(1u, 200'000u);
  options
      .add("--layout", chosen.layout,
           "Which rank has which atoms: random, any; orb, those of one part of space, by "
           "orthogonal recursive bisection")
      .one_of({"random", "orb"});
  options
      .add("--cutoff", chosen.cutoff,
           "Atoms further apart have no forces on each other; in angstrom")
      .between(1, 30);
  options.add("--steps", chosen.steps, "How often all forces are computed").between(1u, 100'000u);
  options.add("--seed", chosen.seed, "Seed of the chain, and of the random layout");
}

/// Throws refusal: there are fewer atoms than ranks.
inline void check_settings(const settings& chosen, int ranks) {
  if (chosen.atoms < static_cast<std::uint32_t>(ranks)) {
    throw refusal(2, fmt::format("--atoms: {} are too few for {} ranks", chosen.atoms, ranks));
  }
}

}  // namespace apps::mdforce
