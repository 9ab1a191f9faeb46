// SPDX-License-Identifier: Apache-2.0
#include "launcher/binding.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "base/kernel_files.hpp"
#include "job/cores.hpp"

namespace sojourn::detail {

std::vector<int> parse_core_list(std::string_view text) {
  std::vector<int> cores;
  while (!text.empty()) {
    std::size_t comma = std::min(text.find(','), text.size());
    std::string_view part = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    std::size_t dash = part.find('-');
    std::optional<long> first = parse_number(part.substr(0, dash));
    std::optional<long> last =
        dash == std::string_view::npos ? first : parse_number(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= cores_max) return {};
    for (long core = *first; core <= *last; ++core) cores.push_back(static_cast<int>(core));
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
