// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <iterator>

#include "base/check.hpp"
#include "sojourn/errors.hpp"

extern char** environ;

namespace sojourn::detail {
namespace {

/// The settings that docs/running_jobs.md and its neighbours explain. tests/launcher/settings.sh
/// compares this list with what the sources read.
constexpr std::string_view for_users[] = {
    "SOJOURN_AGGREGATE",
    "SOJOURN_ALLOW",
    "SOJOURN_BALANCE",
    "SOJOURN_CACHE_BYTES",
    "SOJOURN_CHECKED",
    "SOJOURN_CORES",
    "SOJOURN_ENCRYPT",
    "SOJOURN_EXECUTION",
    "SOJOURN_MAIN_STACK_KIB",
    "SOJOURN_NET",
    "SOJOURN_NETWORK",
    "SOJOURN_PORTS",
    "SOJOURN_RANKS_PER_NODE",
    "SOJOURN_READ_MEMORY",
    "SOJOURN_REGION_GIB",
    "SOJOURN_SCAN",
    "SOJOURN_SHARE",
    "SOJOURN_SHARED",
    "SOJOURN_SHARED_DIFFS",
    "SOJOURN_SHARED_FETCH",
    "SOJOURN_SHARED_PROTECTION",
    "SOJOURN_SHARED_REPORT",
    "SOJOURN_SHARED_REPORT_JSON",
    "SOJOURN_STACK_KIB",
    "SOJOURN_STATS",
    "SOJOURN_STEAL",
    "SOJOURN_TRUST",
    "SOJOURN_VIA",
};

/// The settings of tests.
constexpr std::string_view for_tests[] = {
    "SOJOURN_DELAY",         "SOJOURN_SHARED_BELL_US", "SOJOURN_SHARED_PART_BYTES",
    "SOJOURN_SHARED_FAULTS", "SOJOURN_SOAK_MOVES",     "SOJOURN_TEST_HOST"};
constexpr std::string_view for_tests_prefix = "SOJOURN_TEST_";

/// Variables that the launcher sets for each job, that ./dev and its scripts read, or that have no
/// effect on a job which `sojourn run` starts. They are not reported as unknown, and never
/// suggested in place of a misspelt name.
constexpr std::string_view others[] = {
    "SOJOURN_CMAKE_ARGS", "SOJOURN_DELAY_SEEDS", "SOJOURN_JOB",  "SOJOURN_JOB_FDS",
    "SOJOURN_RANK",       "SOJOURN_RANKS",       "SOJOURN_SITE",
};
constexpr std::string_view others_prefixes[] = {"SOJOURN_CHAOS_", "SOJOURN_FUZZ", "SOJOURN_SOAK_"};
constexpr std::string_view prefix = "SOJOURN_";

bool is_among(const auto& names, std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

bool is_known(std::string_view name) {
  return is_setting_of_a_run(name) || is_among(others, name) ||
         std::any_of(std::begin(others_prefixes), std::end(others_prefixes),
                     [&](std::string_view p) { return name.starts_with(p); });
}

}  // namespace

bool shares_heap() {
  const char* share = std::getenv("SOJOURN_SHARE");
  if (share == nullptr || std::string_view(share) == "on") return true;
  if (std::string_view(share) == "off") return false;
  throw error(format("SOJOURN_SHARE=%s is neither on nor off", share));
}

bool is_setting_of_a_run(std::string_view name) {
  return is_among(for_users, name) || is_among(for_tests, name) ||
         name.starts_with(for_tests_prefix);
}

std::size_t edits_between(std::string_view a, std::string_view b) {
  // Row i of the table of distances compares the first i characters of `a` with each prefix of `b`;
  // only the last three rows are kept.
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before_last[j - 2] + 1);
      }
    }
  }
  return row[b.size()];
}

bool is_near(std::string_view name, std::size_t edits) {
  return edits <= std::max<std::size_t>(2, name.size() / 3);
}

std::vector<std::string> unknown_settings() {
  std::vector<std::string> sentences;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view text = *entry;
    std::string_view name = text.substr(0, text.find('='));
    if (!name.starts_with(prefix) || is_known(name)) continue;
    std::string sentence = std::string(name) + " is not a setting of Sojourn";
    std::string_view own = name.substr(prefix.size());
    auto distance = [&](std::string_view known) {
      return edits_between(own, known.substr(prefix.size()));
    };
    std::string_view nearest = *std::min_element(
        std::begin(for_users), std::end(for_users),
        [&](std::string_view a, std::string_view b) { return distance(a) < distance(b); });
    if (is_near(own, distance(nearest))) sentence += "; did you mean " + std::string(nearest) + "?";
    sentences.push_back(std::move(sentence));
  }
  std::sort(sentences.begin(), sentences.end());
  return sentences;
}

}  // namespace sojourn::detail
