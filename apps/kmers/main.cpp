// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 kmers --form counter
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "kmers/forms.hpp"
#include "kmers/kernel/options.hpp"

namespace {

using namespace apps::kmers;

nlohmann::ordered_json with_messages(nlohmann::ordered_json figures,
                                     const sojourn::counters& spent) {
  figures["messages"] = spent.messages();
  figures["bytes"] = spent.bytes();
  return figures;
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Counts the words of k bases in the reads of a random genome. --form says how: counter, a\n"
      "dist_counter; map, a dist_map that also has what comes before and after a word; walk, "
      "walks\n"
      "from word to word in such a map. kmers_mpi counts by hand for MPI. Every run is checked:\n"
      "against std::unordered_map, and walks against the genome.",
      "kmers");
  settings chosen;
  walk_settings walks;
  std::string form = "counter";
  std::string place = "minimizer";
  apps::json_report json;
  options.add("--form", form, "counter, map or walk").one_of({"counter", "map", "walk"});
  add_options(options, chosen);
  options.add("--walks", walks.walks, "Walks begun by each rank, with --form walk")
      .between(std::uint64_t{1}, std::uint64_t{1} << 32);
  options.add("--steps", walks.steps, "Steps of a walk, at most")
      .between(std::uint64_t{1}, std::uint64_t{1} << 32);
  options.add("--place", place, "minimizer or hash: which rank has a word, with --form walk")
      .one_of({"minimizer", "hash"});
  apps::add_via(options, walks.how);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    check_options(chosen);
    json.open();
    walks.by_minimizer = place == "minimizer";
    const std::vector<std::uint8_t> genome = genome_of(chosen);
    const int ranks = sojourn::rank_count();
    if (form == "walk") {
      const walk_result r = run_walk(chosen, walks, genome);
      const double ns = r.seconds * 1e9 * ranks / static_cast<double>(r.steps);
      apps::say(
          json.readable(),
          fmt::format("kmers, walks via {} by {}: {} steps on {} ranks; all on the genome\n"
                      "{:.3f} ms, {:.1f} ns a step of a rank, {:.3f} messages a step\n",
                      apps::name_of(walks.how), place, r.steps, ranks, r.seconds * 1e3, ns,
                      static_cast<double>(r.spent.messages()) / static_cast<double>(r.steps)));
      json.write(with_messages({{"form", form},
                                {"via", apps::name_of(walks.how)},
                                {"place", place},
                                {"ranks", ranks},
                                {"steps", r.steps},
                                {"seconds", r.seconds}},
                               r.spent));
      return 0;
    }
    const result r = form == "map" ? run_map(chosen, genome) : run_counter(chosen, genome);
    double seconds_alone = 0;
    const bool wrong =
        sojourn::rank_me() == 0 && r.all != count_alone(chosen, genome, ranks, seconds_alone);
    if (sojourn::broadcast(wrong)) throw apps::refusal(1, "std::unordered_map counts otherwise");
    apps::say(json.readable(), report_text(chosen, form, ranks, r.seconds, r.all));
    json.write(
        with_messages(report_json(chosen, form, ranks, r.seconds, seconds_alone, r.all), r.spent));
    return 0;
  });
}
