// SPDX-License-Identifier: Apache-2.0
// The environment variables that Sojourn reads, and suggestions for misspelt ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// The least number of insertions, deletions, replacements and swaps of neighbours that turns `a`
/// into `b`.
std::size_t edits_between(std::string_view a, std::string_view b);

/// True when `name` may be a misspelt name that takes this many edits to correct.
bool is_near(std::string_view name, std::size_t edits);

/// True for a variable that changes what a job does when it is run again: the settings of users and
/// of tests. False for variables that the launcher sets for each job, or that ./dev reads.
bool is_setting_of_a_run(std::string_view name);

/// What SOJOURN_SHARE says, or true. Throws sojourn::error when it says neither on nor off.
bool shares_heap();

/// A sentence for each variable of this process's environment that begins with SOJOURN_ and that
/// nobody reads.
std::vector<std::string> unknown_settings();

}  // namespace sojourn::detail
