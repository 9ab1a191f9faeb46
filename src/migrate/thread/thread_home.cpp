// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/thread_home.hpp"

#include <cstring>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/ticket_table.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "migrate/thread/thread_refusal.hpp"

namespace sojourn::detail {

namespace {

struct {
  homecomings counted;
  // The arrays in which `counted` counts.
  std::span<std::uint32_t> sent;
  std::span<std::uint32_t> come;
} home;

void note(ticket& t, const thread_location& location) {
  t.thread_at = static_cast<std::int16_t>(location.at);
  t.thread_moves = location.moves;
}

void answer_question(const location_question& q, int from) {
  if (!is_on_its_way(known_here(q.thread), from)) {
    send_reply(from, runtime_message::thread_stale, 0, q.thread, nullptr, 0);
  }
}

void on_moved(arrival& a, const thread_location& news) {
  ticket* t = find_ticket(a.ticket);
  (void)checked_rank(a, news.at);
  wire().consume(a);
  if (t == nullptr) return;
  thread_location known{t->thread_at, t->thread_moves};
  known.told(news);
  note(*t, known);
}

void on_query(arrival& a, const location_question& q) {
  int from = a.source;
  wire().consume(a);
  if (!home.counted.keep_if_early(q, from)) answer_question(q, from);
}

/// The ticket of a thread whose home is here.
ticket* thread_ticket(ticket_id thread) {
  ticket* t = find_ticket(thread);
  if (t == nullptr || t->thread_at < 0 || t->taken_by == taker::nobody) {
    refuse(is_unknown, job.me);
  }
  return t;
}

/// The same, when no fiber joins the thread yet.
ticket* unjoined_ticket(ticket_id thread) {
  ticket* t = thread_ticket(thread);
  if (t->asked == ticket::joined) {
    throw error("the thread is already being joined by another fiber: only one fiber may join it");
  }
  return t;
}

void join_here(ticket_id thread) {
  unjoined_ticket(thread)->asked = ticket::joined;
  ticket_take(thread, nullptr, 0);
}
void detach_here(ticket_id thread) {
  unjoined_ticket(thread);
  ticket_drop(thread);
}
bool finished_here(ticket_id thread) { return thread_ticket(thread)->has != outcome::none; }
rank_t where_here(ticket_id thread) {
  const ticket* t = thread_ticket(thread);
  if (t->has != outcome::none) refuse(has_finished, job.me);
  return t->thread_at;
}

struct home_request {
  ticket_id thread;
  home_question question;
};

std::int64_t answer_here(const home_request& r) {
  switch (r.question) {
    case home_question::join:
      join_here(r.thread);
      break;
    case home_question::detach:
      detach_here(r.thread);
      break;
    case home_question::finished:
      return finished_here(r.thread);
    case home_question::where:
      return where_here(r.thread);
  }
  return 0;
}

void on_home_request(request& message) {
  home_request r;
  if (message.bytes < sizeof r) return refuse_request(message, sizeof r);
  std::memcpy(&r, message.payload, sizeof r);
  ticket_id asked = message.ticket;
  message.consume();
  send_outcome<std::int64_t>(asked, [&] { return answer_here(r); });
}

}  // namespace

void attach_thread_home() {
  const auto ranks = static_cast<std::size_t>(job.count);
  home.sent = {runtime_array<std::uint32_t>(ranks), ranks};
  home.come = {runtime_array<std::uint32_t>(ranks), ranks};
  home.counted.attach(home.sent, home.come);
  on_message<thread_location, on_moved>(runtime_message::thread_moved);
  on_message<location_question, on_query>(runtime_message::thread_query);
  on_request(fixed_handler::thread_home, on_home_request, true);
}

known_thread known_here(ticket_id thread) {
  const ticket* t = find_ticket(thread);
  if (t == nullptr || t->thread_at < 0) return {};
  return {t->has != outcome::none ? known_thread::ended : known_thread::lives,
          {t->thread_at, t->thread_moves}};
}

ticket_id thread_open(int rank) {
  ticket* t = open_ticket(-1);
  note(*t, {rank, 0});
  return t->id;
}

void thread_departs(ticket_id thread, std::uint32_t moves, int to) {
  const int its_home = home_of(thread);
  const thread_location next{to, moves};
  if (its_home == job.me) {
    if (ticket* t = find_ticket(thread)) note(*t, next);
  } else if (to == its_home) {
    home.counted.base_goes(its_home);  // no message: the arrival of the thread itself tells home
  } else {
    send_reply(its_home, runtime_message::thread_moved, 0, thread, &next, sizeof next);
  }
}

void thread_arrives(ticket_id thread, std::uint32_t moves, int from) {
  if (home_of(thread) != job.me) return;
  if (ticket* t = find_ticket(thread); t != nullptr) note(*t, {job.me, moves});
  home.counted.base_comes(from, answer_question);
}

void question_home(ticket_id thread) {
  const int its_home = home_of(thread);
  const location_question q{thread, home.counted.sent_to(its_home)};
  send_reply(its_home, runtime_message::thread_query, 0, thread, &q, sizeof q);
}

std::int64_t ask_its_home(ticket_id thread, home_question question) {
  if (thread == 0)
    throw thread_error(thread_refusal::unknown, "this thread object names no thread");
  home_request r{thread, question};
  const int its_home = home_of(thread);
  if (its_home == job.me) return answer_here(r);
  if (its_home >= job.count) refuse(is_unknown, job.me);
  outgoing out = begin_fixed_request(its_home, sizeof r, true);
  std::memcpy(out.payload, &r, sizeof r);
  commit_request(its_home, handler_number(fixed_handler::thread_home), out.ticket);
  return take_value<std::int64_t>(out.ticket);
}

void save_homecomings(file_writer& to) {
  SOJOURN_CHECK(!home.counted.keeps_questions(), "a question about a thread is still kept");
  to.bytes(home.come.data(), home.come.size_bytes());
  to.bytes(home.sent.data(), home.sent.size_bytes());
}

void load_homecomings(file_reader& from) {
  from.bytes(home.come.data(), home.come.size_bytes());
  from.bytes(home.sent.data(), home.sent.size_bytes());
}

}  // namespace sojourn::detail
