// SPDX-License-Identifier: Apache-2.0
#include "rules.hpp"

namespace page_model {

const char* name_of(protocol p) {
  constexpr std::array names{"lmw", "lsw", "seq"};
  return names[static_cast<std::size_t>(p)];
}

std::optional<protocol> protocol_named(std::string_view name) {
  for (protocol p : all_protocols) {
    if (name == name_of(p)) return p;
  }
  return std::nullopt;
}

bool rule_description::belongs_to(protocol p) const {
  switch (p) {
    case protocol::lmw:
      return lmw;
    case protocol::lsw:
      return lsw;
    case protocol::seq:
      return seq;
  }
  return false;
}

// clang-format off
const std::array<rule_description, rules> all_rules{{
    {rule::one_diff_per_interval,        "one_diff_per_interval",        "L1",     true,  false, false},
    {rule::protect_at_close,             "protect_at_close",             "L2, S1", true,  true,  false},
    {rule::close_before_notices,         "close_before_notices",         "L3",     true,  false, false},
    {rule::flush_before_applying,        "flush_before_applying",        "L4",     true,  false, false},
    {rule::ask_from_first_lacking,       "ask_from_first_lacking",       "L6",     true,  false, false},
    {rule::fetch_until_nothing_lacks,    "fetch_until_nothing_lacks",    "L7",     true,  false, false},
    {rule::apply_in_order,               "apply_in_order",               "L7",     true,  false, false},
    {rule::apply_own_diffs_too,          "apply_own_diffs_too",          "L8",     true,  false, false},
    {rule::serve_the_twin,               "serve_the_twin",               "L10",    true,  false, false},
    {rule::protect_when_first_served,    "protect_when_first_served",    "L11",    true,  false, false},
    {rule::page_only_if_it_has_all,      "page_only_if_it_has_all",      "L12",    true,  false, false},
    {rule::hold_later_epochs,            "hold_later_epochs",            "X1",     true,  false, false},
    {rule::drop_at_exclusive,            "drop_at_exclusive",            "X2",     true,  false, false},
    {rule::drop_fetches_in_flight,       "drop_fetches_in_flight",       "X2",     true,  false, false},
    {rule::exclusive_only_if_valid,      "exclusive_only_if_valid",      "X2",     true,  false, false},
    {rule::refetch_before_arrival,       "refetch_before_arrival",       "X3",     true,  false, false},
    {rule::drop_at_collection,           "drop_at_collection",           "G1",     true,  false, false},
    {rule::wait_for_fetches_before_done, "wait_for_fetches_before_done", "G2",     true,  false, false},
    {rule::no_fetch_after_done,          "no_fetch_after_done",          "G2",     true,  false, false},
    {rule::notice_lost_pages,            "notice_lost_pages",            "S2",     false, true,  false},
    {rule::count_at_transfer,            "count_at_transfer",            "S2",     false, true,  false},
    {rule::stamp_closed_version,         "stamp_closed_version",         "S3",     false, true,  false},
    {rule::check_version_on_arrival,     "check_version_on_arrival",     "S4",     false, true,  false},
    {rule::one_request_per_page,         "one_request_per_page",         "S5, Q1", false, true,  true},
    {rule::use_before_leaving,           "use_before_leaving",           "S6, Q2", false, true,  true},
    {rule::count_acknowledgements,       "count_acknowledgements",       "Q1",     false, false, true},
    {rule::decide_data_at_home,          "decide_data_at_home",          "Q1",     false, false, true},
    {rule::hold_in_order,                "hold_in_order",                "Q3",     false, false, true},
    {rule::hold_by_thread,               "hold_by_thread",               "Q3",     false, false, true},
    {rule::move_with_notices,            "move_with_notices",            "K2",     true,  true,  false},
}};
// clang-format on

std::optional<rule> rule_named(std::string_view name) {
  for (const rule_description& r : all_rules) {
    if (name == r.name) return r.which;
  }
  return std::nullopt;
}

}  // namespace page_model
