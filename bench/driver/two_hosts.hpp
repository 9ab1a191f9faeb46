// SPDX-License-Identifier: Apache-2.0
//
// The two hosts of the benchmark net, and what is started on them.
#pragma once

#include <fmt/format.h>

#include <string>

#include "driver/benchmarks.hpp"

namespace bench {

/// Starts what is measured on the two hosts, each on a core of its own.
class pair_of_hosts {
 public:
  pair_of_hosts(const installation& here, const net_settings& asked) : here_(here), asked_(asked) {
    if (asked.hosts.size() != 2) throw failure("net needs two hosts: --hosts A,B");
  }

  bool are_this_machine() const { return asked_.agent.empty(); }

  arguments job(const std::string& program, int ranks_a_host = 1, bool is_bound = true) const {
    arguments words{
        here_.program("sojourn"),
        "run",
        "--hosts",
        fmt::format("{}:{},{}:{}", asked_.hosts[0], ranks_a_host, asked_.hosts[1], ranks_a_host),
        "--agent",
        is_bound ? bound_agent() : agent(),
        "--watchdog",
        "60"};
    if (!is_bound) words.emplace_back("--no-bind");
    words.push_back(here_.program(program));
    return words;
  }

  arguments encrypted_job(const std::string& program) const {
    arguments words = job(program);
    words.insert(words.end() - 1, "--encrypt");
    return words;
  }

  /// The same over UCX, whose TCP it uses.
  arguments ucx_job(const std::string& program) const {
    arguments words = job(program);
    words.insert(words.end() - 1, {"--net", "ucx"});
    words.insert(words.begin(), {"env", "UCX_TLS=tcp"});
    return words;
  }

  arguments mpi_job(const std::string& peer, int ranks_a_host = 1) const {
    arguments words{"mpirun",    "--allow-run-as-root",
                    "--bind-to", "none",
                    "--mca",     "pml",
                    "ob1",       "--mca",
                    "btl",       "self,tcp"};
    if (are_this_machine()) {
      words.insert(words.end(), {"--oversubscribe", "--mca", "btl_tcp_if_include", "lo"});
    } else {
      words.insert(words.end(), {"--mca", "plm_rsh_agent", asked_.agent, "-H",
                                 fmt::format("{}:{},{}:{}", asked_.hosts[0], ranks_a_host,
                                             asked_.hosts[1], ranks_a_host)});
    }
    for (const std::string& word :
         {std::string("-n"), std::to_string(2 * ranks_a_host), here_.program(peer)})
      words.push_back(word);
    return words;
  }

  /// Words that run a program on one of the hosts.
  arguments on(std::size_t host, arguments command) const {
    if (are_this_machine()) return command;
    // More words may follow.
    arguments words{"/bin/sh", "-c",
                    fmt::format("exec {} {} \"$0\" \"$@\"", asked_.agent, asked_.hosts[host])};
    words.insert(words.end(), command.begin(), command.end());
    return words;
  }
  std::string name_of_first() const { return are_this_machine() ? "127.0.0.1" : asked_.hosts[0]; }

 private:
  std::string agent() const { return are_this_machine() ? "sh -c 'exec \"$@\"'" : asked_.agent; }
  /// Two hosts that are one machine would bind their only rank to the same core.
  std::string bound_agent() const {
    return fmt::format("sh -c 'core=1; if [ $0 = {} ]; then core=0; fi; {}'", asked_.hosts[0],
                       are_this_machine() ? "exec taskset -c $core \"$@\""
                                          : "exec " + asked_.agent + " $0 taskset -c $core \"$@\"");
  }

  const installation& here_;
  const net_settings& asked_;
};

/// How long it takes until a host that vanishes is named. `breaks`: as net_settings has it.
void measure_losses(report& result, const settings& chosen, const pair_of_hosts& two,
                    const std::string& breaks);

}  // namespace bench
