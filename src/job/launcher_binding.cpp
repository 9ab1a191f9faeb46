// SPDX-License-Identifier: Apache-2.0
#include "job/launcher_binding.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <fstream>
#include <set>
#include <sstream>

namespace sojourn::detail {
namespace {

constexpr int cores_max = 1 << 16;  // Far above what the kernel supports; ends the search below.

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool parse_number(std::string_view text, long& value) {
  auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  return failure == std::errc() && end == text.data() + text.size();
}

int whole_cores(long quota, long period) {
  if (quota <= 0 || period <= 0) return INT_MAX;
  return static_cast<int>(std::clamp((quota + period - 1) / period, 1L, long{INT_MAX}));
}

/// The least of what `read` says for a control group and the groups around it.
template <class Read>
int least_of_path(std::string path, Read read) {
  int least = INT_MAX;
  while (true) {
    least = std::min(least, read(path));
    std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return least;
    path.resize(slash);
  }
}

int quota_of_unified_group(const std::string& path) {
  return least_of_path(path, [](const std::string& group) {
    return cores_of_quota(read_line("/sys/fs/cgroup" + group + "/cpu.max"));
  });
}

int quota_of_cpu_group(const std::string& controllers, const std::string& path) {
  return least_of_path(path, [&](const std::string& group) {
    std::string folder = "/sys/fs/cgroup/" + controllers + group;
    long quota = 0;
    long period = 0;
    if (!parse_number(read_line(folder + "/cpu.cfs_quota_us"), quota) ||
        !parse_number(read_line(folder + "/cpu.cfs_period_us"), period)) {
      return INT_MAX;
    }
    return whole_cores(quota, period);
  });
}

}  // namespace

std::vector<int> affinity_cores() {
  // The kernel refuses a set smaller than its own; a larger one than fits in cpu_set_t may be due.
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
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {  // "4:cpu,cpuacct:/path", "0::/path"
    std::size_t first = line.find(':');
    std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) {
      least = std::min(least, quota_of_unified_group(path));
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      least = std::min(least, quota_of_cpu_group(controllers, path));
    }
  }
  return least;
}

int cores_of_quota(std::string_view text) {
  std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return INT_MAX;
  long quota = 0;
  long period = 0;
  if (!parse_number(text.substr(0, space), quota) ||
      !parse_number(text.substr(space + 1), period)) {
    return INT_MAX;
  }
  return whole_cores(quota, period);
}

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    std::size_t dash = part.find('-');
    long first = 0;
    long last = 0;
    if (!parse_number(part.substr(0, dash), first)) return {};
    last = first;
    if (dash != std::string_view::npos && !parse_number(part.substr(dash + 1), last)) return {};
    if (first < 0 || last < first || last >= cores_max) return {};
    for (long core = first; core <= last; ++core) cores.push_back(static_cast<int>(core));
  }
  return cores;
}

std::vector<int> hardware_threads_beside(int core) {
  std::vector<int> threads = parse_core_list(read_line(
      "/sys/devices/system/cpu/cpu" + std::to_string(core) + "/topology/thread_siblings_list"));
  return threads.empty() ? std::vector<int>{core} : threads;
}

std::vector<int> binding_order(const std::vector<int>& cores,
                               std::vector<int> (*siblings_of)(int core)) {
  std::vector<int> first_threads;
  std::vector<int> other_threads;
  std::set<int> taken;  // Hardware threads whose physical core has a rank already.
  for (int core : cores) {
    if (taken.count(core) != 0) {
      other_threads.push_back(core);
      continue;
    }
    first_threads.push_back(core);
    for (int thread : siblings_of(core)) taken.insert(thread);
    taken.insert(core);
  }
  first_threads.insert(first_threads.end(), other_threads.begin(), other_threads.end());
  return first_threads;
}

}  // namespace sojourn::detail
