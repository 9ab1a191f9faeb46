// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 em3d --variant bulk --form rpc
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "em3d/forms.hpp"
#include "em3d/kernel/options.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Electromagnetic waves on an irregular graph (EM3D): each step updates all E nodes from the\n"
      "H nodes they depend on, and then all H nodes. --form says how values of other ranks are\n"
      "read: by calling methods there, or by one-sided loads, gets and puts; --variant in which\n"
      "portions. em3d_mpi is the same for MPI. Every run is compared with one loop over the whole\n"
      "graph, and says where its time went.",
      "em3d");
  apps::em3d::settings chosen;
  std::string form = "rpc";
  apps::json_report json;
  options.add("--form", form, "rpc, onesided, or signal: puts with signals, of --variant bulk")
      .one_of({"rpc", "onesided", "signal"});
  apps::em3d::add_options(options, chosen);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    apps::em3d::check_settings(chosen, sojourn::rank_count());
    json.open();
    if (form == "signal" && chosen.variant != "bulk") {
      throw apps::refusal(2, "--form signal is of --variant bulk alone");
    }
    const auto r = form == "rpc"      ? apps::em3d::run_rpc(chosen)
                   : form == "signal" ? apps::em3d::run_put_and_signal(chosen)
                                      : apps::em3d::run_onesided(chosen);
    if (!r.fault.empty()) throw apps::refusal(1, r.fault);
    const int ranks = sojourn::rank_count();
    apps::say(json.readable(), apps::em3d::report_text(chosen, form, ranks, r.seconds, r.split));
    auto figures = apps::em3d::report_json(chosen, form, ranks, r.seconds, r.split);
    figures["messages"] = r.spent.messages();
    figures["bytes"] = r.spent.bytes();
    figures["unit_costs"] = to_json(r.costs);
    json.write(figures);
    return 0;
  });
}
