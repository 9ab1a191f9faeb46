// SPDX-License-Identifier: Apache-2.0
#include "break_rule.hpp"

#include <iterator>

#include "fiber/rules.hpp"

namespace cut_rules {

namespace {

using sojourn::detail::rule;

struct rule_name {
  std::string_view name;
  rule named;
};
constexpr rule_name rules[] = {
    {"evict_before_run", rule::evict_before_run},
    {"ancestors_in_place", rule::ancestors_in_place},
    {"exceptions_at_marks", rule::exceptions_at_marks},
    {"exceptions_per_piece", rule::exceptions_per_piece},
    {"ticket_per_cut", rule::ticket_per_cut},
    {"gate", rule::gate},
    {"by_reference_stays", rule::by_reference_stays},
};
static_assert(std::size(rules) == static_cast<std::size_t>(rule::count_));

}  // namespace

bool break_rule(std::string_view name) {
  for (const rule_name& r : rules) {
    if (r.name != name) continue;
    sojourn::detail::broken_rule = r.named;
    return true;
  }
  return false;
}

}  // namespace cut_rules
