// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 --balance steal uts --tree T3
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "common/balance_option.hpp"
#include "uts/search.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Searches a tree whose parts differ in size unpredictably (Unbalanced Tree Search),\n"
      "with threads that begin on rank 0. What gets them to other ranks is load balance: try\n"
      "--policy none, steal and diffuse. Checked: nodes, leaves and depth are the published ones.",
      "uts");
  std::string name = "T1";
  std::uint32_t grain = apps::uts::search_options{}.grain;
  bool alone = false;
  apps::balance_option policy;
  apps::json_report json;
  std::vector<std::string> names;
  for (const auto& t : apps::uts::published_trees()) names.emplace_back(t.name);
  options
      .add("--tree", name,
           "T1, T1L, T1XL (geometric: 4 million, 102 million, 1.6 billion nodes), "
           "T3 or T3L (binomial: 4 million, 111 million)")
      .one_of(names);
  options.add("--grain", grain, "Nodes that a thread searches").between(1u, 1u << 30);
  options.add_flag("--alone", alone,
                   "Search by a loop on rank 0, without threads, to compare with");
  policy.add_to(options);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    policy.apply();
    const apps::uts::published_tree& wanted = *apps::uts::find_tree(name);
    const auto r = alone ? apps::uts::search_by_loop(wanted.tree)
                         : apps::uts::search({.tree = wanted.tree, .grain = grain});
    if (r.found != wanted.size) {
      throw apps::refusal(
          1, fmt::format("{} has {} nodes, {} leaves and depth {}, but {}, {} and {} were found",
                         name, wanted.size.nodes, wanted.size.leaves, wanted.size.depth,
                         r.found.nodes, r.found.leaves, r.found.depth));
    }
    const char* how = alone ? "alone" : sojourn::name_of(sojourn::balance_now());
    const double share = static_cast<double>(r.busiest) / static_cast<double>(r.found.nodes);
    apps::say(
        json.readable(),
        fmt::format("{}, {} ranks, policy {}\n{:>12} {:>12} {:>8} {:>9} {:>12} {:>9} {:>10} {:>9}\n"
                    "{:>12} {:>12} {:>8} {:>9.3f} {:>12.2f} {:>9} {:>10} {:>8.0f}%\n",
                    name, sojourn::rank_count(), how, "nodes", "leaves", "depth", "seconds",
                    "Mnodes/s", "threads", "handed on", "busiest", r.found.nodes, r.found.leaves,
                    r.found.depth, r.seconds, static_cast<double>(r.found.nodes) * 1e-6 / r.seconds,
                    r.threads, r.spent.threads_handed_over, share * 100));
    json.write({{"tree", name},
                {"ranks", sojourn::rank_count()},
                {"policy", how},
                {"grain", grain},
                {"nodes", r.found.nodes},
                {"leaves", r.found.leaves},
                {"depth", r.found.depth},
                {"seconds", r.seconds},
                {"threads", r.threads},
                {"busiest_share", share},
                {"threads_handed_over", r.spent.threads_handed_over},
                {"steal_requests", r.spent.steal_requests},
                {"steals_empty", r.spent.steals_empty},
                {"handovers_damped", r.spent.handovers_damped},
                {"balance_messages", r.spent.balance_messages}});
    return 0;
  });
}
