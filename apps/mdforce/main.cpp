// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 2 mdforce --layout orb
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include <cstdint>
#include <string>

#include "common/application.hpp"
#include "mdforce/forces.hpp"
#include "mdforce/kernel/options.hpp"

namespace {

using apps::mdforce::result;
using apps::mdforce::settings;

std::string report_text(const settings& s, const result& r) {
  const auto ratio = [](std::uint64_t a, std::uint64_t b) {
    return b == 0 ? std::string("all local")
                  : fmt::format("{:.2f} : 1", static_cast<double>(a) / static_cast<double>(b));
  };
  const auto pairs = static_cast<double>(r.met.pairs());
  const double ns_a_pair = pairs > 0 ? 1e9 / pairs : 0;
  return fmt::format(
      "mdforce {}: {} atoms on {} ranks, cutoff {} Å, {} steps, verified\n"
      "{:.3f} ms a step, {:.1f} ns a pair; one loop takes {:.3f} ms a step, {:.1f} ns a pair\n"
      "{} pairs: {} of atoms of one rank, {} found the other's coordinates in the cache, {} "
      "fetched\n"
      "them; so {} local invocations and {} remote, {}\n"
      "{} forks: {} blocked, {} had a context on the heap; {} messages\n",
      s.layout, s.atoms, sojourn::rank_count(), s.cutoff, s.steps, r.seconds / s.steps * 1e3,
      r.seconds * ns_a_pair, r.seconds_alone / s.steps * 1e3, r.seconds_alone * ns_a_pair,
      r.met.pairs(), r.met.local, r.met.cached, r.met.fetched, r.local(), r.remote(),
      ratio(r.local(), r.remote()), r.spent.forks, r.spent.forks_blocked, r.spent.forks_on_heap,
      r.spent.messages());
}

nlohmann::ordered_json report_json(const settings& s, const result& r) {
  return {{"layout", s.layout},
          {"ranks", sojourn::rank_count()},
          {"atoms", s.atoms},
          {"cutoff", s.cutoff},
          {"steps", s.steps},
          {"seconds", r.seconds},
          {"seconds_alone", r.seconds_alone},
          {"pairs", r.met.pairs()},
          {"pairs_of_one_rank", r.met.local},
          {"cache_hits", r.met.cached},
          {"cache_misses", r.met.fetched},
          {"local", r.local()},
          {"remote", r.remote()},
          {"forks", r.spent.forks},
          {"forks_blocked", r.spent.forks_blocked},
          {"forks_on_heap", r.spent.forks_on_heap},
          {"messages", r.spent.messages()},
          {"bytes", r.spent.bytes()}};
}

}  // namespace

int main(int argc, char** argv) {
  apps::command_line options(
      "Nonbonded forces between the atoms of a molecule like a protein (MD-Force): a child for\n"
      "each pair of atoms within the cutoff. Coordinates of other ranks' atoms are fetched when a\n"
      "pair first needs them, and cached; forces on such atoms go to their rank together.\n"
      "SOJOURN_EXECUTION=heap gives each child a context of its own, to compare. Every run is\n"
      "compared with one loop over all pairs, and says how often children were just calls.",
      "mdforce");
  settings chosen;
  apps::json_report json;
  apps::mdforce::add_options(options, chosen);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    apps::mdforce::check_settings(chosen, sojourn::rank_count());
    json.open();
    const result r = apps::mdforce::run(chosen);
    if (!r.fault.empty()) throw apps::refusal(1, r.fault);
    apps::say(json.readable(), report_text(chosen, r));
    json.write(report_json(chosen, r));
    return 0;
  });
}
