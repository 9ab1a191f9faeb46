// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <array>
#include <utility>

#include "lmw.hpp"
#include "lsw.hpp"
#include "seq.hpp"

namespace page_model {

void fail(const char* what) { throw failure{what}; }

const char* name_of(message_kind kind) {
  constexpr std::array names{
      "none",          "lock_request",    "lock_forward",  "lock_grant",      "arrival",
      "departure",     "arrive_with_all", "thread_move",   "collection_done", "collection_go",
      "page_request",  "page_reply",      "diff_request",  "diff_reply",      "token_request",
      "token_forward", "token_grant",     "read_request",  "read_forward",    "read_reply",
      "ask",           "forward_read",    "forward_write", "invalidate",      "acknowledge",
      "data",          "allow",           "confirm"};
  return names[static_cast<std::size_t>(kind)];
}

namespace {
/// What the message is about, as the log tells it.
std::string subject_of(const message& m) {
  switch (m.what) {
    case message_kind::arrival:
    case message_kind::departure:
    case message_kind::arrive_with_all:
    case message_kind::collection_done:
    case message_kind::collection_go:
      return "";
    case message_kind::lock_request:
    case message_kind::lock_forward:
    case message_kind::lock_grant:
      return ", lock " + std::to_string(m.about);
    case message_kind::thread_move:
      return ", thread " + std::to_string(m.about);
    default:
      return ", page " + std::to_string(m.about);
  }
}
}  // namespace

std::unique_ptr<machine> make_machine(const program& p, std::optional<rule> broken) {
  switch (p.how) {
    case protocol::lmw:
      return std::make_unique<lmw_machine>(p, broken);
    case protocol::lsw:
      return std::make_unique<lsw_machine>(p, broken);
    case protocol::seq:
      return std::make_unique<seq_machine>(p, broken);
  }
  fail("no such protocol");
}

machine::machine(const program& p, std::optional<rule> broken)
    : p_(p), broken_(broken), has_barriers_(p.has_barriers()), meeting_(p.meeting()) {
  for (int t = 0; t < p_.threads; ++t)
    s.thread[t].rank = to_small(p_.rank[static_cast<std::size_t>(t)]);
  for (int r = 0; r < p_.ranks; ++r) {
    for (int l = 0; l < locks; ++l) {
      lock_state& lock = s.rank[r].lock[l];
      const int manager = l % p_.ranks;
      lock.has_token = r == manager;
      lock.last_asker = to_small(manager);
    }
  }
}

void machine::start() {
  for (int r = 0; r < p_.ranks; ++r) {
    if (threads_here(r) == 0) maybe_arrive(r);
  }
}

// --- steps ---------------------------------------------------------------------------------------

void machine::list_actions(std::vector<action>& actions) const {
  using enum action::kind;
  actions.clear();
  for (int t = 0; t < p_.threads; ++t) {
    const instruction next = next_of(t);
    if (s.thread[t].waits != waiting_for::nothing || next.what == operation::end) continue;
    actions.push_back({run, t, 0, 0});
    if (next.what == operation::unlock && p_.has_fair_locks) {
      const lock_state& lock = s.rank[s.thread[t].rank].lock[next.operand];
      if (!lock.waiting.is_empty() && lock.next_rank.has_value())
        actions.push_back({run_unlock_for_rank, t, 0, 0});
    }
  }
  for (int from = 0; from < p_.ranks; ++from) {
    for (int to = 0; to < p_.ranks; ++to) {
      const auto& way = s.way[from][to];
      if (!way.is_empty() && deliverable(to, way.front()))
        actions.push_back({deliver, 0, from, to});
    }
  }
}

void machine::act(const action& a) {
  switch (a.what) {
    case action::kind::run:
      return run(a.thread, false);
    case action::kind::run_unlock_for_rank:
      return run(a.thread, true);
    case action::kind::deliver: {
      const message m = s.way[a.from][a.to].pop();
      if (log != nullptr)
        note("rank ", a.to, " gets ", name_of(m.what), " from rank ", a.from, subject_of(m));
      return receive(a.to, a.from, m);
    }
  }
}

void machine::check_end() const {
  for (int t = 0; t < p_.threads; ++t) check(next_of(t).what == operation::end, "deadlock");
  for (int from = 0; from < p_.ranks; ++from) {
    for (int to = 0; to < p_.ranks; ++to)
      check(s.way[from][to].is_empty(), "a message cannot be delivered at the end");
  }
}

// --- messages ------------------------------------------------------------------------------------

bool machine::deliverable(int to, const message& m) const {
  return !keeps(rule::hold_later_epochs) || m.epoch <= s.rank[to].epoch;
}

message machine::make_notices(message_kind what, int r, int about) const {
  message m = make(what, about);
  m.vector = s.rank[r].known;
  m.versions = s.rank[r].versions;
  return m;
}

void machine::send(int from, int to, message m) {
  m.epoch = s.rank[from].epoch;
  ++counted_.messages;
  if (from == to) return receive(to, from, m);
  auto& way = s.way[from][to];
  check(!way.is_full(), "too many messages are on their way");
  way.push(m);
}

void machine::receive(int r, int from, const message& m) {
  switch (m.what) {
    case message_kind::lock_request:
    case message_kind::lock_forward:
    case message_kind::lock_grant:
      return receive_lock_message(r, m);
    case message_kind::arrival:
      return receive_arrival(from, m);
    case message_kind::departure:
      return receive_departure(r, m);
    case message_kind::arrive_with_all:
      return arrive_with_all(r);
    case message_kind::thread_move:
      for (int q = 0; q < p_.ranks; ++q)
        check(s.rank[r].known[q] >= m.base[q], "records are missing that a thread does not bring");
      if (keeps(rule::move_with_notices)) take_in(r, m);
      s.thread[m.about].waits = waiting_for::nothing;
      return;
    default:
      return receive_protocol_message(r, from, m);
  }
}

// --- threads -------------------------------------------------------------------------------------

instruction machine::next_of(int t) const {
  const instructions& code = p_.code[static_cast<std::size_t>(t)];
  const std::size_t position = s.thread[t].position;
  return position < code.size() ? code[position] : instruction{};
}

bool machine::waits_for(const thread_state& t, int r, int page) const {
  return t.rank == r && t.waits == waiting_for::page && t.page == page;
}
bool machine::anyone_waits(int r, int page) const {
  for (int t = 0; t < p_.threads; ++t) {
    if (waits_for(s.thread[t], r, page)) return true;
  }
  return false;
}
bool machine::anyone_waits_to_store(int r, int page) const {
  for (int t = 0; t < p_.threads; ++t) {
    if (waits_for(s.thread[t], r, page) && s.thread[t].stores) return true;
  }
  return false;
}
void machine::wake(int r, int page, bool also_stores) {
  for (int t = 0; t < p_.threads; ++t) {
    thread_state& thread = s.thread[t];
    if (waits_for(thread, r, page) && (also_stores || !thread.stores))
      thread.waits = waiting_for::nothing;
  }
}

void machine::run(int t, bool rank_first) {
  const instruction i = next_of(t);
  bool is_done = false;
  switch (i.what) {
    case operation::load:
      is_done = load(t, i.operand);
      break;
    case operation::store:
    case operation::increment:
    case operation::flip:
      is_done = store(t, i);
      break;
    case operation::increment_two:
      is_done = increment_two(t, i.operand, i.second);
      break;
    case operation::lock:
      is_done = lock(t, i.operand);
      break;
    case operation::unlock:
      is_done = unlock(t, i.operand, rank_first);
      break;
    case operation::barrier:
      is_done = arrive(t);
      break;
    case operation::move:
      is_done = move(t, i.operand);
      break;
    case operation::end:
      break;
  }
  if (is_done) ++s.thread[t].position;
}

/// Whether thread t may access the page. If not, it faults, and waits from now on.
bool machine::has_access(int t, int page, access wanted) {
  thread_state& thread = s.thread[t];
  if (page_at(thread.rank, page).may >= wanted) return true;
  thread.waits = waiting_for::page;
  thread.page = to_small(page);
  thread.stores = wanted == access::store;
  ++counted_.faults;
  note("thread ", t, " on rank ", thread.rank, " faults on page ", page, " for ",
       thread.stores ? "a store" : "a load");
  fault(thread.rank, page, thread.stores);
  return false;
}

void machine::check_value(int r, int variable) {
  check(page_at(r, page_of(variable)).data[word_of(variable)] == s.expected[variable],
        "a load saw an old value");
}
void machine::set(int r, int variable, int value) {
  s.expected[variable] = to_small(value);
  page_at(r, page_of(variable)).data[word_of(variable)] = s.expected[variable];
}

bool machine::load(int t, int variable) {
  const int page = page_of(variable);
  if (!has_access(t, page, access::load)) return false;
  const int r = s.thread[t].rank;
  note("thread ", t, " on rank ", r, " loads variable ", variable, ": ",
       page_at(r, page).data[word_of(variable)]);
  check_value(r, variable);
  used(r, page);
  return true;
}

bool machine::store(int t, const instruction& i) {
  const int variable = i.operand;
  const int page = page_of(variable);
  if (!has_access(t, page, access::store)) return false;
  const int r = s.thread[t].rank;
  int value = i.second;
  if (i.what != operation::store) {
    check_value(r, variable);
    const int old = s.expected[variable];
    value = to_small(i.what == operation::increment ? old + 1 : old ^ 1);
  }
  note("thread ", t, " on rank ", r, " stores to variable ", variable, ": ", value);
  set(r, variable, value);
  used(r, page);
  return true;
}

bool machine::increment_two(int t, int one, int other) {
  const int r = s.thread[t].rank;
  int first = page_of(one);
  int second = page_of(other);
  if (first > second && keeps(rule::hold_in_order)) std::swap(first, second);
  if (!has_access(t, first, access::store)) return false;
  if (page_at(r, second).may != access::store) hold(r, first, t);
  if (!has_access(t, second, access::store)) return false;
  for (int variable : {one, other}) {
    check_value(r, variable);
    const int value = to_small(s.expected[variable] + 1);
    note("thread ", t, " on rank ", r, " increments, as one of two, variable ", variable, ": ",
         value);
    set(r, variable, value);
  }
  end_hold(r, first, t);
  used(r, first);
  if (second != first) used(r, second);
  return true;
}

bool machine::move(int t, int to) {
  thread_state& thread = s.thread[t];
  const int from = thread.rank;
  if (to == from) return true;
  // What the thread itself has stored must be there where it goes on, so it releases here and
  // acquires there.
  close_interval(from);
  message m = make_notices(message_kind::thread_move, from, t);
  m.base = s.rank[from].collected;
  thread.waits = waiting_for::arrival;
  thread.rank = to_small(to);
  note("thread ", t, " leaves rank ", from, " for rank ", to);
  send(from, to, m);
  // The threads that are left may all have arrived at the barrier.
  maybe_arrive(from);
  return true;
}

}  // namespace page_model
