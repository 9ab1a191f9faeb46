// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 gups --form rpc
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "gups/forms.hpp"
#include "gups/kernel/options.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Random updates of a table that is spread over the ranks (GUPS, RandomAccess): each rank\n"
      "xors numbers of a random stream into the words that they name. --form says how: rpc, a\n"
      "call for each, many in one message; batch, a method that gets many of them at once; plain,\n"
      "each in a message of its own; onesided, an atomic operation for each. gups_mpi is the same "
      "for MPI. Every run is checked: the same\n"
      "updates once more, in one loop, give the first table.",
      "gups");
  apps::gups::settings chosen;
  std::string form = "rpc";
  apps::json_report json;
  options.add("--form", form, "rpc, batch, plain or onesided")
      .one_of({"rpc", "batch", "plain", "onesided"});
  apps::gups::add_options(options, chosen);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const auto r = form == "onesided" ? apps::gups::run_onesided(chosen)
                   : form == "batch"  ? apps::gups::run_batch(chosen)
                                      : apps::gups::run_rpc(chosen, form == "rpc");
    if (!r.fault.empty()) throw apps::refusal(1, r.fault);
    const int ranks = sojourn::rank_count();
    apps::say(json.readable(), apps::gups::report_text(chosen, form, ranks, r.seconds, r.split));
    auto figures = apps::gups::report_json(chosen, form, ranks, r.seconds, r.split);
    figures["messages"] = r.spent.messages();
    figures["bytes"] = r.spent.bytes();
    json.write(figures);
    return 0;
  });
}
