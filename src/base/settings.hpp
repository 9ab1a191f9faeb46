// SPDX-License-Identifier: Apache-2.0
// The environment variables that Sojourn reads, and suggestions for misspelt ones.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace sojourn::detail {

/// The fewest insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
std::size_t edits_between(std::string_view a, std::string_view b);

/// True when `name` may be a misspelling that takes this many edits to correct.
bool is_near(std::string_view name, std::size_t edits);

/// True of a variable that changes what a job does when it is run again: users' settings and those
/// of tests, not what the launcher sets for each job, nor what ./dev reads.
bool is_setting_of_a_run(std::string_view name);

/// What SOJOURN_SHARE says, or true. Throws sojourn::error when that is neither on nor off.
bool shares_heap();

/// A sentence for each variable of this process's environment that begins with SOJOURN_ and that
/// nobody reads.
std::vector<std::string> unknown_settings();

}  // namespace sojourn::detail
