// SPDX-License-Identifier: Apache-2.0
// The hosts of a job of Slurm, as told by the variables that Slurm sets in the job.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "base/kernel_files.hpp"
#include "base/printable.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/jobs/hosts.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn {

namespace {

using namespace detail;

/// Starts one step on a host, which may use all that the job has there, beside the other steps of
/// the job.
constexpr const char* starter =
    "srun --quiet --nodes=1 --ntasks=1 --overlap --mem=0 --cpu-bind=none --mpi=none --nodelist";

std::string variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// "node[1-3],gpu7", name by name.
std::vector<std::string> names_of(const std::string& list) {
  const std::string command = "scontrol show hostnames " + shell_word(list);
  FILE* const pipe = popen(command.c_str(), "re");
  std::string text;
  std::array<char, 4096> part;
  for (std::size_t n; pipe != nullptr && (n = fread(part.data(), 1, part.size(), pipe)) > 0;)
    text.append(part.data(), n);
  const bool is_told = pipe != nullptr && pclose(pipe) == 0;
  std::vector<std::string> names;
  std::istringstream lines(text);
  for (std::string name; lines >> name;) names.push_back(name);
  if (!is_told || names.empty())
    throw error("the hosts of this allocation of Slurm are not known: `" + command +
                "` fails; name them with --hosts, or give --here to stay on this one");
  return names;
}

/// "2(x3),1" as 2, 2, 2, 1; empty when the text has another form.
std::vector<int> counts_of(const std::string& text) {
  std::vector<int> counts;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    int count = 0;
    int times = 1;
    const bool are_several = std::sscanf(part.c_str(), "%d(x%d", &count, &times) == 2;
    const std::string right =
        std::to_string(count) + (are_several ? "(x" + std::to_string(times) + ")" : "");
    if (part != right || count < 1 || count > 1024 || times < 1 || times > 1 << 20) return {};
    counts.insert(counts.end(), static_cast<std::size_t>(times), count);
  }
  return counts;
}

}  // namespace

std::optional<allocation> allocated_hosts() {
  const std::string list = variable("SLURM_JOB_NODELIST");
  if (variable("SLURM_JOB_ID").empty() || list.empty()) return std::nullopt;
  allocation given{.hosts = {},
                   .starter = starter,
                   .text = "the allocation of Slurm's job " + printable(variable("SLURM_JOB_ID"))};
  // This process is one of several tasks: each of them starts a job of its own, on its host.
  if (parse_number(variable("SLURM_STEP_NUM_TASKS")).value_or(1) > 1) return std::nullopt;
  const std::vector<std::string> names = names_of(list);
  const bool is_this = names.size() == 1 && (names.front() == variable("SLURMD_NODENAME") ||
                                             names.front() == host_name());
  if (is_this) return std::nullopt;
  // In a step, the first variable says how many tasks the step has.
  for (const char* name : {"SLURM_TASKS_PER_NODE", "SLURM_JOB_CPUS_PER_NODE"}) {
    const std::vector<int> counts = counts_of(variable(name));
    if (counts.size() != names.size()) continue;
    for (std::size_t i = 0; i < names.size(); ++i)
      given.hosts.push_back({names[i], counts[i], true});
    return given;
  }
  throw error(
      given.text + " has " + std::to_string(names.size()) +
      " hosts, and neither SLURM_TASKS_PER_NODE=" + printable(variable("SLURM_TASKS_PER_NODE")) +
      " nor SLURM_JOB_CPUS_PER_NODE=" + printable(variable("SLURM_JOB_CPUS_PER_NODE")) +
      " says how many ranks each may have: name them with --hosts, or give --here to stay "
      "on this host");
}

void take_ranks(allocation& given, int ranks) {
  int room = 0;
  for (const host_ranks& host : given.hosts) room += host.ranks;
  if (ranks > room)
    throw error("-n " + std::to_string(ranks) + " asks for " + std::to_string(ranks) +
                " ranks, and " + given.text + " has room for " + std::to_string(room) +
                " tasks: ask Slurm for more, or name the hosts with --hosts, each with its ranks");
  std::vector<host_ranks> taken;
  for (host_ranks host : given.hosts) {
    host.ranks = std::min(host.ranks, ranks);
    ranks -= host.ranks;
    if (host.ranks > 0) taken.push_back(std::move(host));
  }
  given.hosts = std::move(taken);
}

}  // namespace sojourn
