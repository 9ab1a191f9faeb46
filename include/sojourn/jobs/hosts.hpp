// SPDX-License-Identifier: Apache-2.0
// Starting a job whose ranks are on several hosts. This is what `sojourn run --hosts` does.
// (docs/cluster.md)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sojourn/jobs/launcher.hpp"

namespace sojourn {

/// A host of a job: ranks that follow each other.
struct host_ranks {
  std::string name;      ///< As ssh takes it: "node7", "user@node7", "fd00::7".
  int ranks = 1;         ///< 1 to 1024.
  bool counted = false;  ///< The user has said how many.
};

/// "a:2,b:2", "a,b", "[fd00::1]:4,b". Errors: `error`, with one sentence.
std::vector<host_ranks> parse_hosts(const std::string& list);
/// A file with a host a line: `name`, `name:4` or `name slots=4`; `#` begins a comment. Errors:
/// `error`, with one sentence that has the line's number.
std::vector<host_ranks> read_hostfile(const std::string& path);
/// The same hosts as parse_hosts() reads them, each with its number of ranks.
std::string hosts_text(const std::vector<host_ranks>& hosts);
/// Decides how many ranks each host has. Without -n (`ranks_given` is false): as many as the user
/// says for that host, or one. With -n: `ranks` in all. If the user gives numbers for hosts, their
/// sum must be `ranks` (a host without a number counts as one); if not, all hosts share them
/// evenly, and hosts that get none are left out. `given_as`: how the hosts were given ("--hostfile
/// F"; "": as --hosts), for the error. Requires: there is a host. Errors: `error`, when the numbers
/// contradict each other.
void share_ranks(std::vector<host_ranks>& hosts, int ranks, bool ranks_given,
                 const std::string& given_as = "");

/// Hosts that the site's scheduler has given to this process.
struct allocation {
  std::vector<host_ranks> hosts;  ///< Each with as many ranks as the allocation has room for there.
  std::string starter;            ///< As in hosts_options; …
  bool is_overheard = true;       ///< … the same.
  std::string text;               ///< "the allocation of Slurm's job 12"
};

/// The hosts of the allocation of Slurm in which this process runs; none outside of an allocation,
/// and when the allocation is this host alone. Errors: `error`, when Slurm does not say which hosts
/// they are.
std::optional<allocation> allocated_hosts();
/// Reduces the allocation to its first `ranks` ranks. Errors: `error`, when it has room for fewer.
void take_ranks(allocation& given, int ranks);

struct hosts_options {
  launch_options job;  ///< `rank_count` is the sum over the hosts.
  std::vector<host_ranks> hosts;
  /// A command that runs another one on a host, called as `COMMAND HOST sojourn agent`, by a shell.
  std::string starter = "ssh -o BatchMode=yes";
  /// True when others may read what this command passes on (with ssh they cannot). The agents then
  /// get the job's secret as processes do that srun, mpirun or mpiexec has started (docs/trust.md).
  bool is_overheard = false;
  /// The `sojourn` command on the other hosts; empty: the path of this process's own file.
  std::string command = {};
};

/// What would be started on each host, a line for each, as --dry-run shows it.
std::string describe_hosts(const hosts_options& options);

/// As launch(), over several hosts: starts an agent on each, which starts the host's ranks there
/// and watches them as launch() does. Rank 0 reads this process's standard input. A host that
/// cannot be reached any more ends the job, as a rule after two seconds. A job that could not be
/// started has the status 2, after a sentence on standard error; nothing is left then on any host.
/// Errors: `error`, with one sentence, when not even agents could be started. Requires: as
/// launch(). Not for use by ranks.
launch_result launch_on_hosts(const hosts_options& options);

/// The agent of one host: what `sojourn agent` does. Reads from standard input who has started it;
/// returns the exit status.
int run_agent();

}  // namespace sojourn
