// SPDX-License-Identifier: Apache-2.0
#include "job/cores.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <optional>
#include <string>

#include "base/kernel_files.hpp"
#include "job/segment.hpp"
#include "sojourn/errors.hpp"

namespace sojourn::detail {
namespace {

int whole_cores(long quota, long period) {
  if (quota <= 0 || period <= 0) return INT_MAX;
  return static_cast<int>(std::clamp((quota + period - 1) / period, 1L, long{INT_MAX}));
}

}  // namespace

std::vector<int> affinity_cores() {
  // The kernel refuses a set smaller than its own, which may be larger than cpu_set_t.
  for (int count = CPU_SETSIZE; count <= cores_max; count *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<std::size_t>(count));
    if (set == nullptr) break;
    std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(count));
    std::vector<int> cores;
    bool ok = sched_getaffinity(0, bytes, set) == 0;
    bool too_small = !ok && errno == EINVAL;
    for (int core = 0; ok && core < count; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), bytes, set)) cores.push_back(core);
    }
    CPU_FREE(set);
    if (!cores.empty()) return cores;
    if (!too_small) break;
  }
  return {0};
}

int quota_cores() {
  int least = INT_MAX;
  for (const std::string& folder : control_group_folders("")) {
    least = std::min(least, cores_of_quota(read_line(folder + "/cpu.max")));
  }
  for (const std::string& folder : control_group_folders("cpu")) {
    std::optional<long> quota = parse_number(read_line(folder + "/cpu.cfs_quota_us"));
    std::optional<long> period = parse_number(read_line(folder + "/cpu.cfs_period_us"));
    if (quota && period) least = std::min(least, whole_cores(*quota, *period));
  }
  return least;
}

int cores_of_quota(std::string_view text) {
  std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return INT_MAX;
  std::optional<long> quota = parse_number(text.substr(0, space));
  std::optional<long> period = parse_number(text.substr(space + 1));
  return quota && period ? whole_cores(*quota, *period) : INT_MAX;
}

int cores_to_count_on(int allowed) {
  const char* text = std::getenv("SOJOURN_CORES");
  if (text == nullptr) return allowed;
  const std::optional<long> cores = parse_number(text);
  if (!cores || *cores < 1 || *cores > rank_count_max) {
    throw error("SOJOURN_CORES=" + std::string(text) + " is not a number of cores from 1 to " +
                std::to_string(rank_count_max));
  }
  return static_cast<int>(*cores);
}

}  // namespace sojourn::detail
