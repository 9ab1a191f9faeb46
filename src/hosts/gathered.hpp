// SPDX-License-Identifier: Apache-2.0
// A job on several hosts whose agents are there already, without a command that starts them: they
// have the job's secret, and come to the head by themselves.
#pragma once

#include "hosts/addresses.hpp"
#include "hosts/proof.hpp"
#include "hosts/starting_line.hpp"
#include "sojourn/jobs/hosts.hpp"

namespace sojourn::detail {

struct gathering {
  job_secret secret;
  listener door;  ///< Where the head listens; the head closes it.
};

/// As launch_on_hosts(). The agent of the first host is a child of this process, the others come.
launch_result launch_with(const gathering& agents, const hosts_options& options);

/// As run_agent(), which reads the line from standard input.
int run_agent(const starting_line& start);

}  // namespace sojourn::detail
