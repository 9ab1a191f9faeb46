// SPDX-License-Identifier: Apache-2.0
#include "sojourn/shared/counters.hpp"

#include <iterator>

#include "sojourn/detail/counts.hpp"

namespace sojourn::shared {

namespace {

constexpr const char* names[] = {
    "faults_local",       "faults_remote",
    "faults_joined",      "faults_store",
    "faults_overlapping", "locks_local",
    "locks_remote",       "locks_joined",
    "locks_overlapping",  "barriers",
    "page_messages",      "page_message_bytes",
    "lock_messages",      "lock_message_bytes",
    "barrier_messages",   "barrier_message_bytes",
    "news_messages",      "news_message_bytes",
    "diffs_made",         "diffs_applied",
    "diff_bytes_applied", "twins",
    "pages_fetched",      "notices",
    "intervals",          "collections",
    "page_waits",         "lock_waits",
    "barrier_waits",      "switches_useful",
    "switches_same_page", "switches_tail",
    "switches_idle",      "page_idle_ns",
    "lock_idle_ns",       "barrier_idle_ns",
    "serving_ns",         "faulting_ns",
    "events_local",       "events_remote",
    "event_messages",     "event_message_bytes",
    "event_waits",        "event_idle_ns",
};
static_assert(std::size(names) == counters::count());

}  // namespace

counters counters_now() { return sojourn::detail::counts.shared; }

std::span<const char* const> counter_names() { return names; }

}  // namespace sojourn::shared
