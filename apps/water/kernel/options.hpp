// SPDX-License-Identifier: Apache-2.0
// The command line and the report that all forms of Water share.
#pragma once

#include <fmt/format.h>

#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "water/kernel/molecules.hpp"

namespace apps::water {

inline void add_options(command_line& options, settings& chosen) {
  options
      .add("--variant", chosen.variant,
           "How molecules of other ranks are reached: atomic, each read where a pair needs "
           "it and each pair's force added by itself; prefetch, all of a rank read before "
           "the pairs are computed and all forces returned after")
      .one_of({"atomic", "prefetch"});
  options.add("--molecules", chosen.molecules, "Molecules in the whole job").between(2u, 100'000u);
  options.add("--steps", chosen.steps, "Steps in time that are measured").between(1u, 1'000u);
  options.add("--warm-up", chosen.warm_up, "Steps before those").between(0u, 1'000u);
  options.add("--step-fs", chosen.step_fs, "Length of a step in femtoseconds").between(0.01, 1);
  options.add("--seed", chosen.seed, "Seed of the initial velocities");
}

/// Throws refusal: there are fewer molecules than ranks.
inline void check_settings(const settings& chosen, int ranks) {
  if (chosen.molecules < static_cast<std::uint32_t>(ranks)) {
    throw refusal(2,
                  fmt::format("--molecules: {} are too few for {} ranks", chosen.molecules, ranks));
  }
}

inline std::string report_text(const settings& s, const std::string& form, int ranks,
                               double seconds, const energies& e, const time_split& split) {
  return fmt::format(
      "water {}, {}: {} molecules on {} ranks, {} steps of {} fs, verified\n"
      "intramolecular {:.3f}, intermolecular {:.3f}, kinetic {:.3f}, together {:.3f} kcal/mol\n"
      "{:.3f} ms a step\n{}",
      s.variant, form, s.molecules, ranks, s.steps, s.step_fs, e.intra, e.inter, e.kinetic,
      e.total(), seconds / s.steps * 1e3, to_text(split));
}

inline nlohmann::ordered_json report_json(const settings& s, const std::string& form, int ranks,
                                          double seconds, const energies& e,
                                          const time_split& split) {
  return {{"variant", s.variant},      {"form", form},         {"ranks", ranks},
          {"molecules", s.molecules},  {"steps", s.steps},     {"intramolecular", e.intra},
          {"intermolecular", e.inter}, {"kinetic", e.kinetic}, {"seconds", seconds},
          {"split", to_json(split)}};
}

}  // namespace apps::water
