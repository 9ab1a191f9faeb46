// SPDX-License-Identifier: Apache-2.0
// Starting a job: N processes of one program, or of several, on this host, which are watched until
// all have ended. This is what `sojourn run` does; programs that start jobs themselves may use it
// too. Ranks do not need it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sojourn {

/// Whether each rank gets a core of its own.
enum class binding {
  automatic,  ///< When the job may use at least as many cores as it has ranks.
  wanted,     ///< The same, with a warning when there are too few.
  off,
};

/// One program of a job of several: ranks that follow each other.
struct launch_part {
  int rank_count = 1;
  std::vector<std::string> command;  ///< The program, looked up along PATH, and its arguments.
};

struct launch_options {
  int rank_count = 1;                ///< Of the whole job, 1 to 1024.
  std::vector<std::string> command;  ///< The program, looked up along PATH, and its arguments.
  /// The file to be executed, if it is not the one that the first word of `command` names; the
  /// program gets that word as its name all the same. Empty: the file that the word names.
  std::string file = {};
  /// The programs of a job of several, in the order of their ranks; empty: all ranks run `command`.
  /// plan_launch makes `rank_count` their sum, and `command` the first one's.
  std::vector<launch_part> parts = {};
  binding bind = binding::automatic;
  bool label = false;      ///< Put "[rank] " before each line that a rank writes.
  bool share_heap = true;  ///< Ranks map each other's objects; otherwise they send messages only.
  /// The hosts as --hosts takes them, and the command that reaches them as --agent does: for
  /// reports, which say how to run the job again. Empty: this host, and ssh.
  std::string hosts = {};
  std::string agent = {};
  /// The checkpoint that the job goes on from, as the program named it; empty: none.
  std::string restore = {};
  /// Report what all ranks wait for when none has made progress for so many seconds. 0: never. A
  /// job that is proven to hang is reported, and ended, at once in any case.
  double watchdog_seconds = 10;
  /// How many seconds the other ranks go on when one has ended in the middle of the job; their
  /// waits for it fail with rank_lost. Never less than a tenth.
  double grace_seconds = 0.1;
  /// Is called with each report of a hang as JSON; may be empty.
  std::function<void(const std::string& json)> on_hang_report = {};
};

/// A program of a job, with its ranks.
struct planned_part {
  int first_rank = 0;
  int rank_count = 1;
  std::vector<std::string> command;
  std::string program;  ///< The file that will be executed.
};

/// What a job would be: the checked options, and what follows from them and from this host.
struct launch_plan {
  launch_options options;
  std::string program;              ///< The file that rank 0 executes.
  std::vector<planned_part> parts;  ///< At least one; together they have all ranks, in order.
  int first_here = 0;               ///< The ranks of this host, which follow each other: …
  int ranks_here = 1;               ///< … all, unless the job has several hosts.
  int cores = 1;                    ///< Cores that the job may use here, at least 1.
  std::vector<int> core_of_rank;    ///< The core of each rank of this host. Empty: not bound.
  std::string warning;  ///< One sentence about what was asked for and is not possible, or "".
};

/// The part of `plan` that a rank belongs to, by its place in launch_plan::parts.
std::size_t part_of_rank(const launch_plan& plan, int rank);

/// A place where the program forks (sojourn/fork.hpp), and how its children fared; sums over all
/// ranks. The costs are estimates in instructions: of a link at each fork, and of walks over the
/// frames of each child that blocked (docs/forks.md).
struct fork_figures {
  std::string place;  ///< "`search` (uts.cpp:31)"
  std::uint64_t forks = 0;
  std::uint64_t blocked = 0;
  int ranks = 0;         ///< How many ranks forked there.
  int linked_ranks = 0;  ///< How many ranks used links for these forks at the end.
  std::uint64_t cost_of_links = 0;
  std::uint64_t cost_of_walks = 0;
};

/// A place in the program that calls objects of other ranks; sums over all ranks. Costs are
/// estimates for a call, where a call to the owner (rpc) costs 1 (docs/automatic.md).
struct call_figures {
  std::string place;   ///< "`lookup` (btree.cpp:120)"
  std::string method;  ///< "node::child"
  std::string said;    ///< The word in the program: "rpc", … "automatic".
  std::string now;     ///< What the place came to at the end, on most ranks, if it chose by itself;
                       ///< otherwise the word in the program or in SOJOURN_VIA.
  /// Calls of objects on other ranks, by what was done: rpc, migrate, cache, fetch. Calls that
  /// found a copy, or the object, on their rank are none of them.
  std::array<std::uint64_t, 4> calls{};
  std::string bringing;          ///< "cache" or "fetch": what it would be here; "": neither.
  double cost_of_migrating = 0;  ///< Below 0: not known.
  double cost_of_bringing = 0;   ///< The same, of a copy or of the object.
  double calls_a_migration = 0;  ///< So many calls were then made without a message, the first
                                 ///< included. Below 0: not known.
  double calls_a_bringing = 0;
  std::uint64_t changes = 0;  ///< How often it has taken another way.

  std::uint64_t all_calls() const { return calls[0] + calls[1] + calls[2] + calls[3]; }
};

/// What became of a job.
struct launch_result {
  /// 0 when every rank ended well; the first failing rank's exit status, or 128 + its signal; 1
  /// when nothing could happen in the job any more; 128 + signal when a signal to the launcher
  /// ended the job; 141 when the launcher's standard output was closed.
  int status = 0;
  int failed_rank = -1;        ///< The rank that ended the job by failing, or -1.
  double elapsed_seconds = 0;  ///< From the start of the first rank to the end of the last.
  /// counters[rank][i] counts what counter_names()[i] says, and, behind those,
  /// shared::counter_names(). All 0 for a program without Sojourn.
  std::vector<std::vector<std::uint64_t>> counters;
  /// With SOJOURN_STATS=on, where the ranks that ended well forked, 32 places at most.
  std::vector<fork_figures> forks;
  /// The same of the places where they called objects of other ranks, 64 places at most.
  std::vector<call_figures> calls;
};

/// `word` so that a shell reads it back: quoted where needed, and as $'\x1b' where it has control
/// characters.
std::string shell_word(const std::string& word);

/// `text` as it may be shown on a terminal: control characters but newlines and tabs, and bytes
/// that are no UTF-8, as "\x1b".
std::string printable(const std::string& text);

/// The command that runs such a job, with the SOJOURN_ settings of this process's environment.
std::string command_line(const launch_options& options);

/// A sentence for each variable in this process's environment that begins with SOJOURN_ but is no
/// setting of Sojourn, with the name that was probably meant.
std::vector<std::string> unknown_settings();

/// Cores that processes started from here may use: by affinity, or by the CPU quota of the control
/// group when that is less. At least 1.
int cores_allowed();

/// How many ranks wrote the checkpoint `path`, and so how many go on from it. Errors: `error`, with
/// one sentence, when there is none of that name.
int checkpoint_rank_count(const std::string& path);

/// The hosts of the job that wrote the checkpoint, as parse_hosts() takes them, or "" when the job
/// named none. Errors: as checkpoint_rank_count().
std::string checkpoint_hosts(const std::string& path);

/// Checks the options against this host and says what would be run. Starts nothing.
/// Errors: `error`, with one sentence, for a bad number of ranks or a program that cannot be run.
launch_plan plan_launch(launch_options options);

/// Runs the job and returns when all ranks have ended. Forwards their output by whole lines to this
/// process's standard output and standard error; rank 0 reads this process's standard input. A rank
/// that dies ends the job within a second, with a report on standard error. SIGINT, SIGTERM and
/// SIGHUP end the job: SIGTERM to all ranks, SIGKILL half a second later or at a second signal. At
/// SIGUSR1 and SIGQUIT it reports on standard error everything that the job waits for; a second
/// SIGQUIT within two seconds ends the job. It reports a job in which nothing can happen any more,
/// and ends it. When the last rank has ended, it also ends the processes that ranks have left
/// running.
///
/// Requires: this process has one thread, which lives until launch() returns: the ranks die with
/// it, and then a child of this process, the job's guard, ends what they have started.
/// Blocks those signals and SIGCHLD meanwhile. Not for use by ranks.
/// Errors: `error`, with one sentence, when the ranks could not be started; none is left then.
launch_result launch(const launch_plan& plan);

}  // namespace sojourn
