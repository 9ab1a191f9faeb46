// SPDX-License-Identifier: Apache-2.0
// Barriers (K3 to K7). Threads are counted, because they move: a rank arrives when all threads that
// are there and take part have arrived, again when more have come, and also when there is none.
// Rank 0 is the manager.
#include "machine.hpp"

#include <algorithm>

namespace page_model {
namespace {
constexpr int manager = 0;
}

bool machine::arrive(int t) {
  thread_state& thread = s.thread[t];
  if (thread.half_done) {
    thread.half_done = false;
    return true;
  }
  thread.half_done = true;
  thread.waits = waiting_for::barrier;
  ++s.rank[thread.rank].threads_arrived;
  maybe_arrive(thread.rank);
  return false;
}

int machine::threads_here(int r) const {
  int count = 0;
  for (int t = 0; t < p_.threads; ++t) {
    const thread_state& thread = s.thread[t];
    count += thread.rank == r && thread.waits != waiting_for::arrival &&
             p_.meets[static_cast<std::size_t>(t)];
  }
  return count;
}

void machine::maybe_arrive(int r) {
  rank_state& rank = s.rank[r];
  if (!has_barriers_ || rank.threads_arrived < threads_here(r)) return;
  const bool is_known = rank.has_arrived && rank.threads_told == rank.threads_arrived;
  if (is_known || !may_arrive(r)) return;
  close_interval(r);
  message m = make_notices(message_kind::arrival, r);
  m.count = to_small(rank.threads_arrived - rank.threads_told);
  m.is_first = !rank.has_arrived;
  rank.has_arrived = true;
  rank.threads_told = rank.threads_arrived;
  rank.told_known = rank.known;
  send(r, manager, m);
}

void machine::arrive_with_all(int r) {
  message m = make_notices(message_kind::arrival, r);
  // No more than it knew when it arrived: that is what goes before its intervals.
  m.vector = s.rank[r].told_known;
  m.bears_all = true;
  send(r, manager, m);
}

/// Notes what has come with an arrival: it is taken in when all are here (K5).
void machine::receive_arrival(int from, const message& m) {
  rank_state& rank = s.rank[manager];
  rank.knows[from] = m.vector;
  raise(rank.mentioned, m.vector);
  // The model of `lsw` knows versions, and no intervals.
  for (int g = 0; g < pages; ++g)
    rank.arrived_versions[g] = std::max(rank.arrived_versions[g], m.versions[g]);
  if (m.bears_all) {
    raise(rank.covered, m.vector);
    rank.asked_for_all.erase(from);
  } else {
    rank.covered[from] = m.vector[from];
    rank.all_threads_arrived = to_small(rank.all_threads_arrived + m.count);
    rank.all_ranks_arrived = to_small(rank.all_ranks_arrived + m.is_first);
  }
  depart_when_all_are_here();
}

void machine::depart_when_all_are_here() {
  const rank_state& rank = s.rank[manager];
  if (rank.all_threads_arrived != meeting_ || rank.all_ranks_arrived != p_.ranks) return;
  if (!asks_for_more()) send_departures();
}

/// Asks ranks for what no arrival has brought (K6). Returns whether answers are to be waited for.
bool machine::asks_for_more() {
  if (!keeps(rule::ask_for_what_others_know)) return false;
  rank_state& rank = s.rank[manager];
  raise(rank.covered, rank.known);
  if (is_at_most(rank.mentioned, rank.covered)) return false;
  bool waits = false;
  for (int r = 0; r < p_.ranks; ++r) {
    if (is_at_most(rank.knows[r], rank.covered)) continue;
    waits = true;
    if (rank.asked_for_all.contains(r)) continue;
    rank.asked_for_all.insert(r);
    send(manager, r, make(message_kind::arrive_with_all));
  }
  return waits;
}

void machine::send_departures() {
  rank_state& rank = s.rank[manager];
  rank.all_threads_arrived = rank.all_ranks_arrived = 0;
  rank.asked_for_all = {};
  message all = make_notices(message_kind::arrival, manager);
  raise(all.vector, rank.covered);
  take_in(manager, all);
  close_interval(manager);
  message departure = make(message_kind::departure);
  departure.collects = p_.how == protocol::lmw && p_.collects &&
                       rank.barriers % p_.barriers_a_collection == p_.barriers_a_collection - 1;
  departure.vector = rank.mentioned = rank.covered = rank.known;
  departure.versions = rank.arrived_versions;
  rank.arrived_versions = {};
  // What a rank is sent is for those, too, to whom it passes it on (K7).
  for (int r = p_.ranks - 1; parent_of(r) != manager; --r) {
    for (int q = 0; q < p_.ranks; ++q)
      rank.knows[parent_of(r)][q] = std::min(rank.knows[parent_of(r)][q], rank.knows[r][q]);
  }
  const table<rank_vector, ranks_max> knows = rank.knows;
  rank.knows = {};
  for (int r = p_.ranks - 1; r > manager; --r) {
    if (parent_of(r) != manager) continue;
    departure.base = knows[r];
    send(manager, r, departure);
  }
  departure.base = {};
  send(manager, manager, departure);
}

void machine::receive_departure(int r, const message& m) {
  rank_state& rank = s.rank[r];
  for (int q = 0; q < p_.ranks; ++q)
    check(rank.known[q] >= m.base[q], "records are missing that a departure does not bring");
  for (int child = p_.ranks - 1; child > r && r != manager; --child) {
    if (parent_of(child) == r) send(r, child, m);
  }
  close_interval(r);
  take_in(r, m);
  ++rank.epoch;
  ++rank.barriers;
  rank.threads_arrived = rank.threads_told = 0;
  rank.has_arrived = false;
  rank.told_known = m.vector;
  if (depart(r, m)) leave_barrier(r);
}

void machine::leave_barrier(int r) {
  note("rank ", r, " leaves the barrier");
  for (int t = 0; t < p_.threads; ++t) {
    thread_state& thread = s.thread[t];
    if (thread.rank == r && thread.waits == waiting_for::barrier)
      thread.waits = waiting_for::nothing;
  }
  // When no thread is here, the rank arrives at the next barrier at once.
  maybe_arrive(r);
}

}  // namespace page_model
