// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 indexgather --form rpc
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "indexgather/forms.hpp"
#include "indexgather/kernel/options.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Random reads of a table that is spread over the ranks (bale's indexgather). --form says\n"
      "how: rpc, a call there and one back for each, many in one message; onesided, a load for\n"
      "each, all on their way before the first is waited for. indexgather_mpi is the same for\n"
      "MPI. Every run is checked: each word that was read is compared with the table.",
      "indexgather");
  apps::indexgather::settings chosen;
  std::string form = "rpc";
  apps::json_report json;
  options.add("--form", form, "rpc or onesided").one_of({"rpc", "onesided"});
  apps::indexgather::add_options(options, chosen);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const auto r = form == "rpc" ? apps::indexgather::run_rpc(chosen)
                                 : apps::indexgather::run_onesided(chosen);
    if (!r.fault.empty()) throw apps::refusal(1, r.fault);
    const int ranks = sojourn::rank_count();
    apps::say(json.readable(),
              apps::indexgather::report_text(chosen, form, ranks, r.seconds, r.split));
    auto figures = apps::indexgather::report_json(chosen, form, ranks, r.seconds, r.split);
    figures["messages"] = r.spent.messages();
    figures["bytes"] = r.spent.bytes();
    json.write(figures);
    return 0;
  });
}
