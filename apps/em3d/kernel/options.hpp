// SPDX-License-Identifier: Apache-2.0
// The command line and the report that all forms of EM3D share.
#pragma once

#include <fmt/format.h>

#include <string>

#include "common/command_line.hpp"
#include "common/time_split.hpp"
#include "em3d/kernel/graph.hpp"

namespace apps::em3d {

inline void add_options(command_line& options, settings& chosen) {
  options
      .add("--variant", chosen.variant,
           "How remote values are read: base, one by one where they are needed; ghost, each "
           "once a step, many at a time; bulk, all of a rank together")
      .one_of({"base", "ghost", "bulk"});
  options.add("--nodes", chosen.nodes, "Nodes in the whole job, half E and half H")
      .between(2u, 10'000'000u);
  options.add("--degree", chosen.degree, "Neighbours of a node").between(1u, 1000u);
  options.add("--remote", chosen.remote, "Percent of the neighbours that lie on other ranks")
      .between(0u, 100u);
  options.add("--steps", chosen.steps, "Updates of all nodes that are measured")
      .between(1u, 1'000'000u);
  options.add("--warm-up", chosen.warm_up, "Updates before those").between(0u, 1'000'000u);
  options.add("--seed", chosen.seed, "Seed of the random graph");
}

/// Throws refusal: there are fewer nodes of a kind than ranks.
inline void check_settings(const settings& chosen, int ranks) {
  if (chosen.nodes / 2 < static_cast<std::uint32_t>(ranks)) {
    throw refusal(2, fmt::format("--nodes: {} are too few for {} ranks, each of which needs an E "
                                 "node and an H node",
                                 chosen.nodes, ranks));
  }
}

inline std::string report_text(const settings& s, const std::string& form, int ranks,
                               double seconds, const time_split& split) {
  const double edges = static_cast<double>(s.nodes / 2 * 2) * s.degree * s.steps / ranks;
  return fmt::format(
      "em3d {}, {}: {} nodes of degree {} on {} ranks, {}% remote, {} steps, verified\n"
      "{:.3f} ms a step, {:.2f} ns an edge of a rank\n{}",
      s.variant, form, s.nodes, s.degree, ranks, s.remote, s.steps, seconds / s.steps * 1e3,
      seconds / edges * 1e9, to_text(split));
}

inline nlohmann::ordered_json report_json(const settings& s, const std::string& form, int ranks,
                                          double seconds, const time_split& split) {
  return {{"variant", s.variant}, {"form", form},       {"ranks", ranks},
          {"nodes", s.nodes},     {"degree", s.degree}, {"remote_percent", s.remote},
          {"steps", s.steps},     {"seconds", seconds}, {"split", to_json(split)}};
}

}  // namespace apps::em3d
