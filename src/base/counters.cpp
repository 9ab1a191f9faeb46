// SPDX-License-Identifier: Apache-2.0
#include "sojourn/counters.hpp"

#include "sojourn/detail/running.hpp"

namespace sojourn {

namespace detail {

counts_page counts;

counters counts_page::now() const {
  counters all = *this;
  all.calls_local += methods >> method_guard::depth_bits;
  return all;
}

}  // namespace detail

counters counters_now() { return detail::counts.now(); }

namespace {

constexpr const char* names[] = {
    "requests_sent",
    "request_bytes",
    "replies_sent",
    "reply_bytes",
    "migrations",
    "migration_bytes",
    "migration_copies",
    "collective_messages",
    "collective_bytes",
    "bulk_messages",
    "bulk_bytes",
    "bulk_copies",
    "calls_local",
    "calls_remote",
    "migrations_refused",
    "scan_warnings",
    "cuts",
    "images_out",
    "images_in",
    "fibers_made",
    "switches",
    "handlers_run",
    "suspensions_for_room",
    "sleeps",
    "wakeups_sent",
    "exceptions_sent",
    "balance_messages",
    "balance_bytes",
    "steal_requests",
    "steals_empty",
    "threads_handed_over",
    "handovers_damped",
    "marshalled_bytes",
    "marshal_copies",
    "messages_refused",
    "name_cache_hits",
    "name_cache_misses",
    "bundles_sent",
    "calls_bundled",
    "forks",
    "forks_blocked",
    "forks_on_heap",
    "steals",
    "steals_refused",
    "shared_messages",
    "shared_bytes",
    "cache_hits",
    "cache_misses",
    "copies_given",
    "copies_taken_back",
    "copies_evicted",
    "objects_moved",
    "moves_refused",
    "calls_relayed",
    "copy_messages",
    "copy_bytes",
    "versions_published",
    "versions_pushed",
    "replica_misses",
    "replica_messages",
    "replica_bytes",
    "calls_not_bundled",
    "upkeep_messages",
    "upkeep_bytes",
};
static_assert(std::size(names) == counters::count());

template <class Op>
void each(counters& a, const counters& b, Op op) {
  auto x = a.values();
  auto y = b.values();
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = op(x[i], y[i]);
  a = __builtin_bit_cast(counters, x);
}

}  // namespace

counters& counters::operator-=(const counters& before) {
  each(*this, before, [](std::uint64_t a, std::uint64_t b) { return a - b; });
  return *this;
}

counters& counters::operator+=(const counters& other) {
  each(*this, other, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  return *this;
}

std::span<const char* const> counter_names() { return names; }

}  // namespace sojourn
