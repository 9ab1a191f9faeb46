// SPDX-License-Identifier: Apache-2.0
#include "mutants.hpp"

namespace simulated {

namespace {

constexpr program_sizes small(protocol_kind kind) { return {.protocol = kind}; }
constexpr program_sizes large(protocol_kind kind) {
  return {.protocol = kind, .ranks = 4, .threads_of_rank = 2, .phases = 3, .steps = 8, .pages = 4};
}

using enum rule;
using enum protocol_kind;

// After a change of random_program() `mutants search` tells the new ones.
constexpr mutant all[] = {
    {"serve_the_twin", serve_the_twin, small(lmw), 1, 20000},
    {"close_before_learning", close_before_learning, small(lmw), 1, 20000},
    {"diff_before_applying", diff_before_applying, small(lmw), 1, 20000},
    {"diff_an_interval", diff_an_interval, small(lmw), 1, 20000},
    {"apply_in_order", apply_in_order, small(lmw), 1, 20000},
    {"fetch_until_nothing_lacks", fetch_until_nothing_lacks, small(lmw), 1, 20000},
    {"apply_own_too", apply_own_too, small(lmw), 1, 20000},
    {"hold_later_epochs", hold_later_epochs, small(lmw), 1, 20000},
    {"drop_at_exclusive", drop_at_exclusive, small(lmw), 1, 20000},
    {"drop_fetches_in_flight", drop_fetches_in_flight, small(lmw), 1, 20000},
    {"protect_at_share", protect_at_share, small(lmw), 1, 20000},
    {"exclusive_only_if_valid", exclusive_only_if_valid, small(lmw), 1, 20000},
    {"no_fetch_after_done", no_fetch_after_done, small(lmw), 1, 20000},
    {"wait_for_fetches_before_done", wait_for_fetches_before_done, small(lmw), 1, 20000},
    {"protect_at_close", protect_at_close, small(lmw), 1, 20000},
    {"drop_at_collection", drop_at_collection, small(lmw), 1, 20000},
    {"fetch_before_arrival", fetch_before_arrival, small(lmw), 1, 20000},
    {"ask_from_first_lacking", ask_from_first_lacking, small(lmw), 1, 20000},
    {"page_has_all", page_has_all, small(lmw), 1, 20000},
    {"move_with_notices", move_with_notices, small(lmw), 1, 20000},
    {"protect_at_close", protect_at_close, small(lsw), 1, 20000},
    {"notice_lost_pages", notice_lost_pages, small(lsw), 1, 20000},
    {"count_at_transfer", count_at_transfer, small(lsw), 1, 20000},
    {"stamp_closed", stamp_closed, small(lsw), 1, 20000},
    {"check_version_on_arrival", check_version_on_arrival, small(lsw), 1, 20000},
    {"use_before_leaving", use_before_leaving, small(lsw), 1, 20000},
    {"one_fetch_a_page", one_fetch_a_page, small(lsw), 1, 20000},
    {"move_with_notices", move_with_notices, small(lsw), 1, 20000},
    {"hold_a_thread", hold_a_thread, small(lsw), 1, 20000},
    {"ordered_hold", ordered_hold, small(lsw), 1, 20000},
    {"use_before_leaving", use_before_leaving, small(seq), 1, 20000},
    {"one_fetch_a_page", one_fetch_a_page, small(seq), 1, 20000},
    {"count_acknowledgements", count_acknowledgements, small(seq), 1, 20000},
    {"data_by_copyset_at_home", data_by_copyset_at_home, small(seq), 1, 20000},
    {"hold_a_thread", hold_a_thread, small(seq), 1, 20000},
    {"ordered_hold", ordered_hold, small(seq), 1, 20000},
};

}  // namespace

std::span<const mutant> mutants() { return all; }

}  // namespace simulated
