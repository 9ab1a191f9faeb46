// SPDX-License-Identifier: Apache-2.0
// Starting a job whose ranks are on several hosts. This is what `sojourn run --hosts` does.
// (docs/cluster.md)
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sojourn/launcher.hpp"

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
/// Decides how many ranks each host has: without -n (`ranks_given`), as many as the user says of
/// the host, or one; with it, `ranks` in all, which the hosts' numbers must have as their sum, or,
/// where no host has one, which all hosts share evenly; hosts without ranks are left out.
/// `given_as`: how the hosts were given ("--hostfile F"; "": as --hosts), for the error. Requires:
/// there is a host. Errors: `error`, when the numbers contradict each other.
void share_ranks(std::vector<host_ranks>& hosts, int ranks, bool ranks_given,
                 const std::string& given_as = "");

/// Hosts that the site's scheduler has given to this process.
struct allocation {
  std::vector<host_ranks> hosts;  ///< With as many ranks as it has given room for.
  std::string starter;            ///< As hosts_options has it; …
  bool is_overheard = true;       ///< … the same.
  std::string text;               ///< "the allocation of Slurm's job 12"
};

/// None outside of an allocation of Slurm, and where it is this host alone. Errors: `error`, when
/// Slurm does not say which hosts they are.
std::optional<allocation> allocated_hosts();
/// Leaves so many ranks, from the first host on. Errors: `error`, when there is no room for them.
void take_ranks(allocation& given, int ranks);

struct hosts_options {
  launch_options job;  ///< `rank_count` is the sum over the hosts.
  std::vector<host_ranks> hosts;
  /// A command that runs another one on a host, called as `COMMAND HOST sojourn agent`, by a shell.
  std::string starter = "ssh -o BatchMode=yes";
  /// Others may read what this command passes on, as they cannot with ssh: the job's secret is told
  /// as it is to processes that srun, mpirun or mpiexec has started (docs/trust.md).
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
