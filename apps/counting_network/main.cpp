// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 counting_network --via migrate
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "counting_network/counting_network.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Requesters on all ranks draw numbers from an 8x8 bitonic counting network whose balancers\n"
      "lie on the ranks in turn. Checked: exactly 0, 1, ... n-1 were handed out, each once.",
      "counting_network");
  apps::counting_options counting;
  apps::json_report json;
  options
      .add("--requesters", counting.requesters,
           "Requesters in the whole job, spread over the ranks")
      .between(1, 4096);
  options.add("--requests", counting.requests, "Requests of all requesters together")
      .between(std::uint64_t{1}, std::uint64_t{1} << 28);
  options.add("--think", counting.think_cycles, "Cycles between two requests")
      .between(std::uint64_t{0}, apps::think_cycles_max);
  apps::add_via(options, counting.how, counting.in_shared_memory);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    const apps::counting_result result = apps::run_counting(counting);
    if (!result.wrong.empty()) throw apps::refusal(1, result.wrong);
    const char* how = apps::name_of(counting.how, counting.in_shared_memory);
    apps::say(json.readable(),
              fmt::format("counting network, {} ranks, {} requesters, think {} cycles, via {}\n{}"
                          "each of 0 ... {} was handed out once\n",
                          sojourn::rank_count(), counting.requesters, counting.think_cycles, how,
                          apps::to_text(result.measured), counting.requests - 1));
    json.write({{"ranks", sojourn::rank_count()},
                {"requesters", counting.requesters},
                {"think_cycles", counting.think_cycles},
                {"via", how},
                {"figures", apps::to_json(result.measured)}});
    return 0;
  });
}
