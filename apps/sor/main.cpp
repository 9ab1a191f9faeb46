// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 sor --block 128
#include "common/application.hpp"
#include "sor/relaxation.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Relaxes a square grid whose blocks are dealt out to the ranks (SOR). An iteration forks a\n"
      "child for each point, which calls its four neighbours and computes the new value, and then\n"
      "one that puts it in place. Children inside a block end where they began; those at its edge\n"
      "wait for other ranks. SOJOURN_EXECUTION=heap gives each a context of its own from the\n"
      "start, to compare. Every run is compared with one loop over the whole grid.",
      "sor");
  apps::sor::settings chosen;
  apps::json_report json;
  options.add("--size", chosen.size, "Rows of the grid, and columns").between(3u, 4096u);
  options.add("--block", chosen.block, "Rows of a block, and columns").between(1u, 4096u);
  options.add("--iterations", chosen.iterations, "Iterations that are measured")
      .between(1u, 1'000'000u);
  options.add("--warm-up", chosen.warm_up, "Iterations before those").between(0u, 1'000'000u);
  options.add("--seed", chosen.seed, "Seed of the values at the beginning");
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    if (chosen.block > chosen.size) {
      throw apps::refusal(
          2, fmt::format("--block {} is more than --size {}", chosen.block, chosen.size));
    }
    json.open();
    const auto [measured, fault] = apps::sor::relax(chosen);
    if (!fault.empty()) throw apps::refusal(1, fault);
    const int ranks = sojourn::rank_count();
    const apps::sor::layout where(chosen, ranks);
    apps::say(json.readable(),
              fmt::format("sor: {0} x {0} points in blocks of {1} x {1} on {2} ranks ({3} x {4}), "
                          "{5} iterations, verified\n{6:.3f} ms an iteration\n{7}",
                          chosen.size, chosen.block, ranks, where.processor_rows(),
                          where.processor_columns(), chosen.iterations,
                          measured.seconds / chosen.iterations * 1e3, measured.text()));
    nlohmann::ordered_json figures = {{"size", chosen.size},
                                      {"block", chosen.block},
                                      {"ranks", ranks},
                                      {"iterations", chosen.iterations}};
    measured.add_to(figures);
    json.write(figures);
    return 0;
  });
}
