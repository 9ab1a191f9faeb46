// SPDX-License-Identifier: Apache-2.0
// Locks (K1, K2, T1, T2). The token of a lock is at one rank. The manager of the lock, which its
// number determines, knows which rank asked last, and forwards the next request to that rank. So
// the ranks that want the lock form a queue.
#include "machine.hpp"

namespace page_model {

bool machine::lock(int t, int number) {
  thread_state& thread = s.thread[t];
  lock_state& lock = s.rank[thread.rank].lock[number];
  if (thread.half_done) {
    thread.half_done = false;
    check(lock.holder.is(t), "a lock was handed to another thread");
    return true;
  }
  if (lock.has_token && !lock.holder.has_value()) {
    take_lock(t, number);
    return true;
  }
  lock.waiting.push(to_small(t));
  thread.waits = waiting_for::lock;
  thread.half_done = true;
  ask_for_lock(thread.rank, number);
  return false;
}

bool machine::unlock(int t, int number, bool rank_first) {
  const int r = s.thread[t].rank;
  lock_state& lock = s.rank[r].lock[number];
  lock.holder.clear();
  note("thread ", t, " on rank ", r, " unlocks lock ", number);
  if (lock.next_rank.has_value() && (lock.waiting.is_empty() || rank_first)) {
    grant_lock(r, number);
    if (!lock.waiting.is_empty()) ask_for_lock(r, number);
  } else if (!lock.waiting.is_empty()) {
    hand_on_lock(r, number);
  }
  return true;
}

void machine::take_lock(int t, int number) {
  const int r = s.thread[t].rank;
  s.rank[r].lock[number].holder.set(t);
  note("thread ", t, " on rank ", r, " has lock ", number);
}

/// Asks for the token, unless it is here or this rank has already asked.
void machine::ask_for_lock(int r, int number) {
  lock_state& lock = s.rank[r].lock[number];
  if (lock.has_token || lock.has_asked) return;
  lock.has_asked = true;
  message m = make(message_kind::lock_request, number);
  m.asker = to_small(r);
  m.vector = s.rank[r].known;
  const int manager = number % p_.ranks;
  send(r, manager, m);
}

/// Hands the lock to the next thread of this rank.
void machine::hand_on_lock(int r, int number) {
  lock_state& lock = s.rank[r].lock[number];
  const int t = lock.waiting.pop();
  take_lock(t, number);
  s.thread[t].waits = waiting_for::nothing;
}

/// Sends the token to the next rank.
void machine::grant_lock(int r, int number) {
  lock_state& lock = s.rank[r].lock[number];
  close_interval(r);
  message m = make_notices(message_kind::lock_grant, r, number);
  m.base = lock.next_known;
  // Older records are gone.
  raise(m.base, s.rank[r].collected);
  const int to = lock.next_rank.value();
  lock.has_token = false;
  lock.next_rank.clear();
  lock.next_known = {};
  send(r, to, m);
}

void machine::receive_lock_message(int r, const message& m) {
  const int number = m.about;
  lock_state& lock = s.rank[r].lock[number];
  switch (m.what) {
    case message_kind::lock_request: {
      const int last = lock.last_asker;
      lock.last_asker = m.asker;
      message forward = m;
      forward.what = message_kind::lock_forward;
      return send(r, last, forward);
    }
    case message_kind::lock_forward:
      check(!lock.next_rank.has_value(), "two ranks wait for one rank's lock");
      lock.next_rank.set(m.asker);
      lock.next_known = m.vector;
      if (lock.has_token && !lock.holder.has_value() && lock.waiting.is_empty())
        grant_lock(r, number);
      return;
    default:  // lock_grant
      for (int q = 0; q < p_.ranks; ++q)
        check(s.rank[r].known[q] >= m.base[q], "records are missing that a lock does not bring");
      take_in(r, m);
      lock.has_token = true;
      lock.has_asked = false;
      check(!lock.waiting.is_empty(), "a lock came, and no thread waits for it");
      return hand_on_lock(r, number);
  }
}

}  // namespace page_model
