// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 em3d_flow --form forward
#include <algorithm>
#include <optional>

#include "common/application.hpp"
#include "em3d/kernel/options.hpp"
#include "em3d_flow/flows.hpp"

namespace {

struct form {
  const char* name;
  apps::em3d_flow::result (*run)(const apps::em3d::settings&);
};
constexpr form forms[] = {{"pull", apps::em3d_flow::run_pull},
                          {"push", apps::em3d_flow::run_push},
                          {"forward", apps::em3d_flow::run_forward}};

/// Of neighbours that are placed without regard to where the node is.
std::uint32_t remote_at_random(int ranks) {
  return static_cast<std::uint32_t>((100 * (ranks - 1) + ranks / 2) / ranks);
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "The waves of em3d, fine-grained: a child for each node (EM3D). --form pull: it reads the\n"
      "values that the node depends on; push: it writes the node's value to all that depend on "
      "it;\n"
      "forward: it sends one message, which goes through all of them, and the last one replies.\n"
      "SOJOURN_EXECUTION=heap gives each child a context of its own from the start, to compare.\n"
      "Every run is compared with one loop over the whole graph.",
      "em3d_flow");
  apps::em3d::settings chosen{.nodes = 8192, .degree = 16, .steps = 10, .warm_up = 1};
  std::string name = "pull";
  std::optional<std::uint32_t> remote;
  apps::json_report json;
  options.add("--form", name, "pull, push or forward").one_of({"pull", "push", "forward"});
  options.add("--nodes", chosen.nodes, "Nodes in the whole job, half E and half H")
      .between(2u, 1'000'000u);
  options.add("--degree", chosen.degree, "Neighbours that a node depends on").between(1u, 100u);
  options.add("--remote", remote, "Percent of the neighbours that lie on other ranks")
      .between(0u, 100u)
      .default_text("as many as when they are placed at random");
  options.add("--steps", chosen.steps, "Updates of all nodes that are measured")
      .between(1u, 1'000'000u);
  options.add("--warm-up", chosen.warm_up, "Updates before those").between(0u, 1'000'000u);
  options.add("--seed", chosen.seed, "Seed of the random graph");
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    const int ranks = sojourn::rank_count();
    apps::em3d::check_settings(chosen, ranks);
    chosen.remote = remote.value_or(remote_at_random(ranks));
    json.open();
    const auto run =
        std::ranges::find_if(forms, [&](const form& f) { return name == f.name; })->run;
    const auto [measured, fault] = run(chosen);
    if (!fault.empty()) throw apps::refusal(1, fault);
    apps::say(json.readable(),
              fmt::format("em3d_flow {}: {} nodes of degree {} on {} ranks, {}% remote, {} steps, "
                          "verified\n{:.3f} ms a step\n{}",
                          name, chosen.nodes, chosen.degree, ranks, chosen.remote, chosen.steps,
                          measured.seconds / chosen.steps * 1e3, measured.text()));
    nlohmann::ordered_json figures = {{"form", name},
                                      {"ranks", ranks},
                                      {"nodes", chosen.nodes},
                                      {"degree", chosen.degree},
                                      {"remote_percent", chosen.remote},
                                      {"steps", chosen.steps}};
    measured.add_to(figures);
    json.write(figures);
    return 0;
  });
}
