// SPDX-License-Identifier: Apache-2.0
#include "message/losses.hpp"

#include <deque>

#include "base/check.hpp"
#include "message/dispatcher_state.hpp"
#include "sojourn/errors.hpp"
#include "sojourn/rank.hpp"
#include "transport/neighbours.hpp"

namespace sojourn::detail {

void note_losses() {
  dispatcher.losses_noted = dispatcher.losses->load();
  for (int rank = 0; rank < job.count; ++rank)
    peer_of(rank).is_noted_lost = near_ranks().lost(rank);
}

void meet_losses() {
  dispatcher.losses_seen = dispatcher.losses_noted;
  for (int rank = 0; rank < job.count; ++rank) {
    peer& p = peer_of(rank);
    if (!p.is_noted_lost || has_ended(rank)) continue;
    p.before_calls |= peer::is_lost;
    if (dispatcher.first_lost == no_rank) dispatcher.first_lost = rank;
    // Fibers are woken, and see for themselves that the rank is lost. Messages of the runtime go on
    // waiting for room.
    for (auto* queue : {&p.senders, &p.callers}) {
      std::deque<pending_send> stay;
      for (const pending_send& s : *queue) {
        if (s.go != wake_sender) {
          stay.push_back(s);
          continue;
        }
        --dispatcher.waiting_senders;
        s.go(s.context);
      }
      queue->swap(stay);
    }
    p.note_senders();
    dispatcher.transport->lose(rank);
    on_dispatch.fail_waits(rank);
  }
}

bool is_lost(int rank) { return has_ended(rank); }

void attach_losses() { dispatcher.losses = &near_ranks().losses(); }

int first_lost_rank() { return dispatcher.first_lost; }

void throw_rank_lost(int rank, const char* to_do) {
  throw rank_lost(
      rank, format("%s needs rank %d, which has ended in the middle of the job", to_do, rank));
}

}  // namespace sojourn::detail
