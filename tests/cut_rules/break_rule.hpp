// SPDX-License-Identifier: Apache-2.0
// Breaks rules on purpose.
#pragma once

#include <string_view>

namespace cut_rules {

/// From now on the rule of that name (fiber/rules.hpp) is broken. False if it is none that this
/// program can break: job_cut_rules_broken can break all, job_cut_rules, which has the library as
/// it is, none.
bool break_rule(std::string_view name);

}  // namespace cut_rules
