// SPDX-License-Identifier: Apache-2.0
// Starts agents: runs the command that is to start one on another host, or, where agents come by
// themselves, makes a child of this process the one of this host. The pipes that stand in place of
// its standard descriptors are the only way to it that is there from the beginning.
#pragma once

#include <sys/types.h>

#include <string>

#include "sojourn/jobs/hosts.hpp"

namespace sojourn::detail {

/// What a shell runs to start the agent of `host`.
std::string starting_command(const hosts_options& options, const host_ranks& host);

/// A process, and this process's ends of its pipes, which do not block.
struct agent_starter {
  pid_t pid;
  int input;
  int output;
  int errors;
};

/// `command`: for a shell; "" for an agent in the child itself. The child leads a process group of
/// its own, and ends when this process does. Throws sojourn::error.
agent_starter start_agent(const std::string& command);

}  // namespace sojourn::detail
