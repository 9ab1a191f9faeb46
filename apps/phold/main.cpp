// SPDX-License-Identifier: Apache-2.0
// sojourn run -n 4 --balance steal phold --begin one
#include <fmt/format.h>
#include <sojourn/sojourn.hpp>

#include "common/application.hpp"
#include "common/balance_option.hpp"
#include "phold/simulation.hpp"

int main(int argc, char** argv) {
  apps::command_line options(
      "Simulates processes that send each other events (PHOLD). Each process is a thread, which\n"
      "keeps its pending events in its own heap and takes them along when load balance moves it.\n"
      "The checksum is the same on any number of ranks, under every policy; --check compares it\n"
      "with a simulation by one loop.",
      "phold");
  apps::phold::settings chosen;
  std::string begin = "spread";
  bool check = false;
  apps::balance_option policy;
  apps::json_report json;
  options.add("--processes", chosen.processes, "Processes in the whole job").between(1u, 100'000u);
  options.add("--events", chosen.events, "Events of each process in the beginning")
      .between(1u, 10'000u);
  options
      .add("--lookahead", chosen.lookahead, "Least time from an event to the events that it causes")
      .between(1e-6, 1e6);
  options.add("--delay", chosen.mean_delay, "Mean of the random time that is added to --lookahead")
      .between(0, 1e6);
  options.add("--end", chosen.end, "Time at which the simulation ends").between(0, 1e9);
  options.add("--work", chosen.work, "Rounds of computation for an event").between(0u, 1u << 30);
  options.add("--remote", chosen.remote, "Share of events that go to another process")
      .between(0, 1);
  options.add("--seed", chosen.seed, "Seed of all random numbers");
  options.add("--begin", begin, "Where processes begin: spread over the ranks, or on one")
      .one_of({"spread", "one"});
  options.add_flag("--affinity", chosen.affinity,
                   "Each process prefers the rank that has its mailbox");
  options.add_flag("--check", check, "Compare with a simulation by one loop");
  policy.add_to(options);
  json.add_to(options);

  return apps::run_application(options, argc, argv, [&]() -> int {
    json.open();
    policy.apply();
    chosen.spread = begin == "spread";
    const auto r = apps::phold::simulate(chosen);
    if (check) {
      const auto wanted = apps::phold::simulate_alone(chosen);
      if (wanted.events != r.events || wanted.checksum != r.checksum) {
        throw apps::refusal(
            1, fmt::format("{} events with checksum {:016x} were handled, but one loop handles {} "
                           "with {:016x}",
                           r.events, r.checksum, wanted.events, wanted.checksum));
      }
    }
    const char* how = sojourn::name_of(sojourn::balance_now());
    apps::say(json.readable(),
              fmt::format("{} processes on {} ranks, policy {}\n"
                          "{:>10} {:>9} {:>9} {:>12} {:>10} {:>17}\n"
                          "{:>10} {:>9} {:>9.3f} {:>12.0f} {:>10} {:>17}\n",
                          chosen.processes, sojourn::rank_count(), how, "events", "windows",
                          "seconds", "events/s", "handed on", "checksum", r.events, r.windows,
                          r.seconds, static_cast<double>(r.events) / r.seconds,
                          r.spent.threads_handed_over, fmt::format("{:016x}", r.checksum)));
    json.write({{"processes", chosen.processes},
                {"ranks", sojourn::rank_count()},
                {"policy", how},
                {"begin", begin},
                {"events", r.events},
                {"checksum", fmt::format("{:016x}", r.checksum)},
                {"windows", r.windows},
                {"seconds", r.seconds},
                {"events_per_second", static_cast<double>(r.events) / r.seconds},
                {"threads_handed_over", r.spent.threads_handed_over},
                {"steal_requests", r.spent.steal_requests},
                {"steals_empty", r.spent.steals_empty},
                {"handovers_damped", r.spent.handovers_damped},
                {"migration_bytes", r.spent.migration_bytes}});
    return 0;
  });
}
