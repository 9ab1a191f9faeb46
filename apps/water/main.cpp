// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 water --variant prefetch --form rpc
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "water/forms.hpp"
#include "water/kernel/options.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Liquid water by molecular dynamics: forces inside molecules and between all pairs of them.\n"
      "--form says how molecules of other ranks are reached: by calling their methods, or by\n"
      "one-sided loads, gets and puts; --variant in which portions. water_mpi is the same for "
      "MPI.\n"
      "Energies and positions of every run are compared with those that one loop computes, and\n"
      "every run says where its time went.",
      "water");
  apps::water::settings chosen;
  std::string form = "rpc";
  apps::json_report json;
  options.add("--form", form, "rpc, or onesided").one_of({"rpc", "onesided"});
  apps::water::add_options(options, chosen);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    apps::water::check_settings(chosen, sojourn::rank_count());
    json.open();
    const auto r = form == "rpc" ? apps::water::run_rpc(chosen) : apps::water::run_onesided(chosen);
    if (!r.fault.empty()) throw apps::refusal(1, r.fault);
    const int ranks = sojourn::rank_count();
    apps::say(json.readable(),
              apps::water::report_text(chosen, form, ranks, r.seconds, r.last, r.split));
    auto figures = apps::water::report_json(chosen, form, ranks, r.seconds, r.last, r.split);
    figures["messages"] = r.spent.messages();
    figures["bytes"] = r.spent.bytes();
    figures["unit_costs"] = to_json(r.costs);
    json.write(figures);
    return 0;
  });
}
