// SPDX-License-Identifier: Apache-2.0
// What this process and its children are limited to.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <string>

#include "base/check.hpp"
#include "base/kernel_files.hpp"
#include "doctor/checks.hpp"
#include "doctor/trial.hpp"
#include "fiber/ticket_table.hpp"
#include "job/cores.hpp"
#include "launcher/process.hpp"
#include "memory/address_map.hpp"
#include "memory/stack_slots.hpp"
#include "sojourn/jobs/launcher.hpp"

namespace sojourn::detail {
namespace {

constexpr int fewest_ranks = 2;

rlimit limit_of(decltype(RLIMIT_AS) which) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  getrlimit(which, &limit);
  return limit;
}

std::string amount(rlim_t value, unsigned shift, const char* unit) {
  if (value == RLIM_INFINITY) return "unlimited";
  return format("%llu%s", static_cast<unsigned long long>(value >> shift), unit);
}

/// "run `ulimit -v unlimited`", or who else can raise it.
std::string how_to_raise(const rlimit& limit, const char* option, const char* value, rlim_t wanted,
                         const char* name) {
  std::string command = format("run `ulimit %s %s`", option, value);
  if (limit.rlim_max >= wanted || geteuid() == 0) return command;
  return command + format(
                       "; the hard limit is too low, so root must raise it first (%s in "
                       "/etc/security/limits.conf, or the batch system's or container's options)",
                       name);
}

/// The map of a small job, as the environment asks for it; the default one when the environment's
/// is refused.
address_map map_of_job() {
  try {
    return map_from_environment(fewest_ranks);
  } catch (const std::exception&) {
    return address_map::divide(address_map::default_base, address_map::default_bytes, fewest_ranks,
                               std::size_t{256} << 10);
  }
}

rlim_t region_bytes() { return map_of_job().bytes; }

/// Starts, at once, as many processes as a job of `ranks` ranks has processes and threads.
attempt_result start_processes(int ranks) {
  for (int task = 0; task < 2 * ranks; ++task) {
    // These processes end with the attempt.
    if (fork_helper([] { pause(); }) < 0) return failed("fork");
  }
  return {};
}

}  // namespace

finding check_address_space_limit() {
  rlimit limit = limit_of(RLIMIT_AS);
  finding f{"limit on address space", severity::ok, amount(limit.rlim_cur, 20, " MiB"), ""};
  if (limit.rlim_cur >= region_bytes()) return f;
  f.level = severity::failure;
  f.found += format(", and the region takes %s", amount(region_bytes(), 20, " MiB").c_str());
  f.remedy = how_to_raise(limit, "-v", "unlimited", RLIM_INFINITY, "as") +
             ", or choose a smaller region (see 'address range')";
  return f;
}

finding check_data_limit() {
  rlimit limit = limit_of(RLIMIT_DATA);
  finding f{"limit on data", severity::ok, amount(limit.rlim_cur, 20, " MiB"), ""};
  rlim_t stacks = map_of_job().main_stack_bytes + address_map::worker_stack_bytes;
  rlim_t tables =
      (sizeof(ticket) << ticket_array::index_bits) + map_of_job().slot_count() * sizeof(stack_slot);
  rlim_t need = tables + stacks + (rlim_t{16} << 20);
  if (limit.rlim_cur >= need) return f;
  f.level = severity::failure;
  f.found += format(", and a rank's tables and stacks take %llu MiB, touched or not",
                    static_cast<unsigned long long>(need >> 20));
  f.remedy = how_to_raise(limit, "-d", "unlimited", RLIM_INFINITY, "data");
  return f;
}

finding check_file_size_limit() {
  rlimit limit = limit_of(RLIMIT_FSIZE);
  finding f{"limit on file size", severity::ok, amount(limit.rlim_cur, 10, " KiB"), ""};
  // The heap is one file without a name.
  if (limit.rlim_cur >= region_bytes()) return f;
  f.level = severity::failure;
  f.found += ", and shared memory counts as a file as long as the heap's addresses";
  f.remedy = how_to_raise(limit, "-f", "unlimited", RLIM_INFINITY, "fsize") +
             ", or set SOJOURN_REGION_GIB to a smaller region";
  return f;
}

finding check_stack_limit() {
  rlimit limit = limit_of(RLIMIT_STACK);
  finding f{"limit on stack", severity::ok, amount(limit.rlim_cur, 10, " KiB"), ""};
  f.found += limit.rlim_cur == RLIM_INFINITY
                 ? "; libraries lie elsewhere then, which is allowed for"
                 : "; fibers have stacks of their own";
  if (limit.rlim_cur < (rlim_t{256} << 10)) {
    f.level = severity::warning;
    f.remedy = how_to_raise(limit, "-s", "8192", rlim_t{8} << 20, "stack");
  }
  return f;
}

finding check_locked_memory_limit() {
  rlimit limit = limit_of(RLIMIT_MEMLOCK);
  return {"limit on locked memory", severity::ok,
          amount(limit.rlim_cur, 10, " KiB") + "; Sojourn locks none", ""};
}

finding check_open_files_limit() {
  rlimit limit = limit_of(RLIMIT_NOFILE);
  finding f{"limit on open files", severity::ok, amount(limit.rlim_max, 0, ""), ""};
  rlim_t fewest = open_files_needed(0);
  int ranks_most = limit.rlim_max == RLIM_INFINITY || limit.rlim_max > fewest + 2 * rank_count_max
                       ? rank_count_max
                       : static_cast<int>((std::max(limit.rlim_max, fewest) - fewest) / 2);
  f.found += format(", enough for %d ranks", ranks_most);
  int wanted = std::max(cores_allowed(), fewest_ranks);
  if (ranks_most >= wanted) return f;
  f.level = ranks_most < fewest_ranks ? severity::failure : severity::warning;
  rlim_t files = open_files_needed(wanted);
  f.remedy = how_to_raise(limit, "-n", std::to_string(files).c_str(), files, "nofile");
  return f;
}

finding check_processes_limit() {
  rlimit limit = limit_of(RLIMIT_NPROC);
  finding f{"limit on processes", severity::ok, amount(limit.rlim_cur, 0, ""), ""};
  f.found += geteuid() == 0 ? ", not applied to root" : " for this user";
  if (std::optional<long> most = control_group_limit("pids.max", "pids", "pids.max")) {
    f.found += format("; the control group allows %ld", *most);
  }
  // A thread counts as a process, and a rank has two.
  int wanted = std::clamp(cores_allowed(), fewest_ranks, 64);
  trial many = try_in_child([&] { return start_processes(wanted); });
  if (many.works()) {
    f.found += format("; enough for %d ranks", wanted);
    return f;
  }
  trial few = try_in_child([&] { return start_processes(fewest_ranks); });
  f.level = few.works() ? severity::warning : severity::failure;
  f.found += format("; too few now for a job of %d ranks, two processes or threads each (%s)",
                    few.works() ? wanted : fewest_ranks, many.reason.c_str());
  f.remedy =
      "raise `ulimit -u` or the control group's pids.max, or end other processes of this "
      "user";
  return f;
}

finding check_cores() {
  int by_affinity = static_cast<int>(affinity_cores().size());
  int by_quota = quota_cores();
  finding f{"cores", severity::ok, "", ""};
  f.found = format("%d for jobs: %d by affinity, ", std::min(by_affinity, by_quota), by_affinity);
  f.found += by_quota >= 1 << 16 ? "no quota" : format("%d by the control group's quota", by_quota);
  if (std::min(by_affinity, by_quota) < 2) {
    f.level = severity::warning;
    f.remedy = "give the machine, container or `taskset` more: ranks take turns on one";
  }
  return f;
}

}  // namespace sojourn::detail
