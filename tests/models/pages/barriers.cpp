// SPDX-License-Identifier: Apache-2.0
// Barriers (K3, K4). Threads are counted, because they move: a rank arrives when all threads that
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
  send(r, manager, m);
}

/// Counts an arrival at the manager, and lets all ranks depart at the last one.
void machine::count_arrival(const message& m) {
  rank_state& rank = s.rank[manager];
  raise(rank.arrived_known, m.vector);
  for (int g = 0; g < pages; ++g)
    rank.arrived_versions[g] = std::max(rank.arrived_versions[g], m.versions[g]);
  rank.all_threads_arrived = to_small(rank.all_threads_arrived + m.count);
  rank.all_ranks_arrived = to_small(rank.all_ranks_arrived + m.is_first);
  if (rank.all_threads_arrived != meeting_ || rank.all_ranks_arrived != p_.ranks) return;
  message departure = make(message_kind::departure);
  departure.collects = p_.how == protocol::lmw && p_.collects &&
                       rank.barriers % p_.barriers_a_collection == p_.barriers_a_collection - 1;
  departure.vector = rank.arrived_known;
  departure.versions = rank.arrived_versions;
  rank.all_threads_arrived = rank.all_ranks_arrived = 0;
  rank.arrived_known = {};
  rank.arrived_versions = {};
  for (int r = p_.ranks - 1; r >= 0; --r) send(manager, r, departure);
}

void machine::receive_departure(int r, const message& m) {
  close_interval(r);
  take_in(r, m);
  rank_state& rank = s.rank[r];
  ++rank.epoch;
  ++rank.barriers;
  rank.threads_arrived = rank.threads_told = 0;
  rank.has_arrived = false;
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
