// SPDX-License-Identifier: Apache-2.0
#include "mutants.hpp"

namespace simulated {

namespace {

constexpr program_sizes small(protocol_kind kind) { return {.protocol = kind}; }

constexpr program_sizes pinning(protocol_kind kind) { return {.protocol = kind, .pins = 1}; }

constexpr program_sizes large(protocol_kind kind) {
  return {.protocol = kind, .ranks = 5, .threads_of_rank = 4, .steps = 10, .pages = 3};
}

constexpr program_sizes with_events(protocol_kind kind) { return {.protocol = kind, .events = 4}; }

using enum rule;
using enum protocol_kind;

// Those that `shared_programs mutants search --count 60000` found. After a change of
// random_program(), of the order in which a job runs, or of a protocol it tells the new ones. Not
// among them is `page_has_all`, for which no program makes diffs that are long enough, and
// `hold_a_thread` under lsw.
constexpr mutant all[] = {
    {"serve_the_twin", serve_the_twin, small(lmw), 1087, 1},
    {"close_before_learning", close_before_learning, small(lmw), 335, 1},
    {"diff_before_applying", diff_before_applying, small(lmw), 684, 1},
    {"diff_an_interval", diff_an_interval, small(lmw), 4, 1},
    {"apply_in_order", apply_in_order, small(lmw), 14, 1},
    {"fetch_until_nothing_lacks", fetch_until_nothing_lacks, small(lmw), 1362, 1},
    {"apply_own_too", apply_own_too, small(lmw), 189, 1},
    {"hold_later_epochs", hold_later_epochs, small(lmw), 4021, 1},
    {"drop_at_exclusive", drop_at_exclusive, small(lmw), 381, 1},
    {"drop_fetches_in_flight", drop_fetches_in_flight, small(lmw), 4767, 1},
    {"protect_at_share", protect_at_share, small(lmw), 28, 1},
    {"agree_on_readers", agree_on_readers, small(lmw), 3122, 1},
    {"exclusive_only_if_valid", exclusive_only_if_valid, small(lmw), 3447, 1},
    {"no_fetch_after_done", no_fetch_after_done, small(lmw), 5044, 1},
    {"wait_for_fetches_before_done", wait_for_fetches_before_done, small(lmw), 2896, 1},
    {"protect_at_close", protect_at_close, small(lmw), 29, 1},
    {"drop_at_collection", drop_at_collection, small(lmw), 5, 1},
    {"fetch_before_arrival", fetch_before_arrival, small(lmw), 646, 1},
    {"ask_from_first_lacking", ask_from_first_lacking, small(lmw), 1876, 1},
    {"move_with_notices", move_with_notices, small(lmw), 119, 1},
    {"page_has_own", page_has_own, large(lmw), 580326, 1},
    {"depart_by_news", depart_by_news, small(lmw), 350, 1},
    {"ask_for_what_others_know", ask_for_what_others_know, small(lmw), 3465, 1},
    {"protect_at_close", protect_at_close, small(lsw), 32, 1},
    {"notice_lost_pages", notice_lost_pages, small(lsw), 2937, 1},
    {"count_at_transfer", count_at_transfer, small(lsw), 2937, 1},
    {"stamp_closed", stamp_closed, small(lsw), 95, 1},
    {"check_version_on_arrival", check_version_on_arrival, small(lsw), 15805, 1},
    {"use_before_leaving", use_before_leaving, small(lsw), 318, 1},
    {"one_fetch_a_page", one_fetch_a_page, small(lsw), 14, 1},
    {"move_with_notices", move_with_notices, small(lsw), 234, 1},
    {"ordered_hold", ordered_hold, small(lsw), 12130, 1},
    {"depart_by_news", depart_by_news, small(lsw), 949, 1},
    {"use_before_leaving", use_before_leaving, small(seq), 23, 1},
    {"one_fetch_a_page", one_fetch_a_page, small(seq), 4, 1},
    {"count_acknowledgements", count_acknowledgements, small(seq), 1607, 1},
    {"data_by_copyset_at_home", data_by_copyset_at_home, small(seq), 19, 1},
    {"hold_a_thread", hold_a_thread, small(seq), 202, 1},
    {"ordered_hold", ordered_hold, small(seq), 76, 1},
    {"depart_by_news", depart_by_news, small(seq), 80, 1},
    {"pinned_stays", pinned_stays, pinning(lmw), 65, 1},
    {"refresh_pinned", refresh_pinned, pinning(lmw), 27, 1},
    {"pinned_sticks", pinned_sticks, pinning(lmw), 9, 1},
    {"stick_at_share", stick_at_share, pinning(lmw), 21, 1},
    {"keep_pinned_stores", keep_pinned_stores, pinning(lmw), 21, 1},
    {"pinned_stays", pinned_stays, pinning(lsw), 79, 1},
    {"pinned_stays_dirty", pinned_stays_dirty, pinning(lsw), 53, 1},
    {"pinned_stays", pinned_stays, pinning(seq), 230, 1},
    {"release_at_question", release_at_question, with_events(lmw), 9, 1},
    {"acquire_at_answer", acquire_at_answer, with_events(lmw), 9, 1},
    {"close_after_own_release", close_after_own_release, with_events(lmw), 21, 1},
    {"release_at_question", release_at_question, with_events(lsw), 9, 1},
    {"acquire_at_answer", acquire_at_answer, with_events(lsw), 42, 1},
    {"close_after_own_release", close_after_own_release, with_events(lsw), 21, 1},
    {"listen_before_unlock", listen_before_unlock, with_events(lmw), 916, 1},
    {"join_before_arrival", join_before_arrival, with_events(lmw), 99, 1},
};

}  // namespace

std::span<const mutant> mutants() { return all; }

}  // namespace simulated
