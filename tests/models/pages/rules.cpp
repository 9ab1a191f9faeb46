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
  return (protocols >> static_cast<unsigned>(p) & 1) != 0;
}

namespace {
constexpr unsigned lmw = 1u << static_cast<unsigned>(protocol::lmw);
constexpr unsigned lsw = 1u << static_cast<unsigned>(protocol::lsw);
constexpr unsigned seq = 1u << static_cast<unsigned>(protocol::seq);
}  // namespace

const std::array<rule_description, rules> all_rules{{
    {rule::one_diff_per_interval, "one_diff_per_interval", "L1", lmw},
    {rule::protect_at_close, "protect_at_close", "L2, S1", lmw | lsw},
    {rule::close_before_notices, "close_before_notices", "L3", lmw},
    {rule::flush_before_applying, "flush_before_applying", "L4", lmw},
    {rule::ask_from_first_lacking, "ask_from_first_lacking", "L6", lmw},
    {rule::fetch_until_nothing_lacks, "fetch_until_nothing_lacks", "L7", lmw},
    {rule::apply_in_order, "apply_in_order", "L7", lmw},
    {rule::apply_own_diffs_too, "apply_own_diffs_too", "L8", lmw},
    {rule::serve_the_twin, "serve_the_twin", "L10", lmw},
    {rule::protect_when_first_served, "protect_when_first_served", "L11", lmw},
    {rule::page_only_if_it_has_all, "page_only_if_it_has_all", "L12", lmw},
    {rule::page_has_own, "page_has_own", "L13", lmw},
    {rule::hold_later_epochs, "hold_later_epochs", "X1", lmw},
    {rule::agree_on_readers, "agree_on_readers", "X2", lmw},
    {rule::drop_at_exclusive, "drop_at_exclusive", "X2", lmw},
    {rule::drop_fetches_in_flight, "drop_fetches_in_flight", "X2", lmw},
    {rule::exclusive_only_if_valid, "exclusive_only_if_valid", "X2", lmw},
    {rule::refetch_before_arrival, "refetch_before_arrival", "X3", lmw},
    {rule::keep_where_last_written, "keep_where_last_written", "G1", lmw},
    {rule::drop_at_collection, "drop_at_collection", "G1", lmw},
    {rule::wait_for_fetches_before_done, "wait_for_fetches_before_done", "G2", lmw},
    {rule::no_fetch_after_done, "no_fetch_after_done", "G2", lmw},
    {rule::notice_lost_pages, "notice_lost_pages", "S2", lsw},
    {rule::count_at_transfer, "count_at_transfer", "S2", lsw},
    {rule::stamp_closed_version, "stamp_closed_version", "S3", lsw},
    {rule::check_version_on_arrival, "check_version_on_arrival", "S4", lsw},
    {rule::one_request_per_page, "one_request_per_page", "S5, Q1", lsw | seq},
    {rule::use_before_leaving, "use_before_leaving", "S6, Q2", lsw | seq},
    {rule::count_acknowledgements, "count_acknowledgements", "Q1", seq},
    {rule::decide_data_at_home, "decide_data_at_home", "Q1", seq},
    {rule::hold_in_order, "hold_in_order", "Q3", seq},
    {rule::hold_by_thread, "hold_by_thread", "Q3", seq},
    {rule::move_with_notices, "move_with_notices", "K2", lmw | lsw},
    {rule::ask_for_what_others_know, "ask_for_what_others_know", "K6", lmw},
}};

std::optional<rule> rule_named(std::string_view name) {
  for (const rule_description& r : all_rules) {
    if (name == r.name) return r.which;
  }
  return std::nullopt;
}

}  // namespace page_model
