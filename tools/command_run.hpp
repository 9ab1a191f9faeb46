// SPDX-License-Identifier: Apache-2.0
// `sojourn run`: reads its command line, starts the job, reports its counters.
#pragma once

#include <string>
#include <vector>

#include "sojourn/jobs/hosts.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::tools {

/// What the command line of `sojourn run` asks for.
struct run_request {
  launch_options options;
  bool stats = false;
  bool shared_report = false;
  std::string shared_report_json;
  std::string stats_json;       ///< File, or "".
  std::string report;           ///< The same.
  std::string balance;          ///< The policy of load balance, or "": the environment says which.
  std::string cache_bytes;      ///< As SOJOURN_CACHE_BYTES, or "".
  std::string main_stack_kib;   ///< Or "", the same.
  std::string fiber_stack_kib;  ///< The same.
  std::vector<host_ranks> hosts;         ///< Empty: this one.
  std::string hosts_given_as;            ///< For errors.
  std::optional<allocation> given = {};  ///< Where the hosts are those of the scheduler.
  std::string ports = {};                ///< As SOJOURN_PORTS, or "".
  std::string net = {};                  ///< As SOJOURN_NET, or "".
  bool encrypt = false;
  std::string network = {};  ///< As SOJOURN_NETWORK, or "".
  bool dry_run = false;
  bool says_ranks = false;  ///< Not as many as cores.
  std::string help;         ///< Not empty: show this and do nothing else.
};

/// Reads the words after `sojourn run`. Throws sojourn::error with one sentence.
run_request parse_run(const std::vector<std::string>& words);

/// Reads a number of ranks. Throws sojourn::error with one sentence.
int parse_rank_count(const std::string& text);

/// What --dry-run prints.
std::string describe_plan(const launch_plan& plan);

/// Runs the command; the result is the exit status. Throws sojourn::error with one sentence when
/// nothing was started.
int run_command(const std::vector<std::string>& words);

}  // namespace sojourn::tools
