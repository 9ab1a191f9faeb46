// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/thread_asks.hpp"

#include <memory>
#include <utility>

#include "base/saved_file.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_waits.hpp"
#include "fiber/timers.hpp"
#include "memory/runtime_resource.hpp"
#include "message/dispatcher.hpp"
#include "message/inbound.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "migrate/gate.hpp"
#include "migrate/ship.hpp"
#include "migrate/thread/handovers.hpp"
#include "migrate/thread/thread_home.hpp"
#include "migrate/thread/thread_refusal.hpp"
#include "migrate/thread_trailer.hpp"
#include "sojourn/detail/tasks.hpp"

namespace sojourn::detail {

ask_list kept_asks;

namespace {

/// Where a fiber of this rank found a thread the last time.
struct hint {
  ticket_id thread;
  int rank;
};
constexpr std::size_t hint_count = 1024;
hint* hints = nullptr;
hint& hint_of(ticket_id thread) { return hints[thread % hint_count]; }

/// A rank of this program is sent the address of the text; a rank of another program, where that
/// address means nothing, is sent the whole sentence.
void answer(const thread_ask& a, const stay_reason& why) {
  if (why.kind != thread_refusal::none && runs_other_program(home_of(a.answer))) {
    return send_exception(a.answer, std::make_exception_ptr(refusal(why, a.to)));
  }
  send_result(a.answer, &why, sizeof why);
}

void send_ask(int to, const thread_ask& a) {
  send_reply(to, runtime_message::thread_ask, 0, a.thread, &a, sizeof a);
}

/// Handles a request for a base that is here and suspended.
void move_from_here(piece* p, const thread_ask& a) {
  if (a.to == job.me) return answer(a, moved);
  if (takes_no_stacks(a.to)) return answer(a, runs_other);
  // The base is about to leave: the request is kept, and then follows it.
  if (p->departs_to != no_rank) return kept_asks.keep(a);
  if (const stay_reason* why = reason_whole_stays(p)) return answer(a, *why);
  if (p->word == resumed::not_yet) {
    if (p->waits == wait_cause::ticket) {
      // The fiber is woken; where it arrives, it will ask for the result again.
      stop_waiting(p);
      cancel_timer(p);
    } else if (p->waits != wait_cause::timer || !cancel_timer(p)) {
      return answer(a, waits_here);
    }
    p->waits = wait_cause::none;
    make_ready(p, resumed::anywhere);
  }
  extra_of(p).asked_to_move = a.answer;
  p->departs_to = a.to;
}

/// Handles a request on the thread's home, which does not have the base.
void act_as_home(const thread_ask& a) {
  const known_thread known = known_here(a.thread);
  switch (home_decides(known, job.me)) {
    case step_at_home::is_unknown:
      return answer(a, is_unknown);
    case step_at_home::has_ended:
      return answer(a, has_finished);
    case step_at_home::keeps:
      return kept_asks.keep(a);
    case step_at_home::passes_on:
      return send_ask(known.location.at, a);
  }
}

void on_ask(arrival& message, const thread_ask& a) {
  (void)checked_ticket(message, a.thread);
  (void)checked_ticket(message, a.answer);
  (void)checked_rank(message, a.to);
  wire().consume(message);
  handle(a);
}

void on_stale(arrival& a) {
  ticket_id thread = checked_ticket(a, a.ticket);
  wire().consume(a);
  with_kept(thread, ask_home);
}

}  // namespace

std::vector<thread_ask> ask_list::take(ticket_id thread) {
  auto [first, last] = asks_.equal_range(thread);
  std::vector<thread_ask> asks;
  for (auto a = first; a != last; ++a) asks.push_back(a->second);
  asks_.erase(first, last);
  return asks;
}

void ask_list::save(file_writer& to) const {
  to.put(asks_.size());
  for (const auto& [thread, asked] : asks_) to.put(asked);
}

void ask_list::load(file_reader& from) {
  for (auto left = from.get<std::size_t>(); left > 0; --left) keep(from.get<thread_ask>());
}

void attach_thread_asks() {
  hints = runtime_array<hint>(hint_count);
  on_message<thread_ask, on_ask>(runtime_message::thread_ask);
  on_message(runtime_message::thread_stale, on_stale);
}

void answer_moved(const thread_ask& a) { answer(a, moved); }

void ask_home(const thread_ask& a) {
  if (home_of(a.thread) == job.me) return act_as_home(a);
  thread_ask again = a;
  again.by_hint = false;
  send_ask(home_of(a.thread), again);
}

void handle(const thread_ask& a) {
  if (piece* p = threads_here.find(a.thread); p != nullptr) {
    if (p != running_piece()) return move_from_here(p, a);
    // The thread itself took this message, while it waited for an answer without leaving its stack:
    // the request must wait until it has left.
    kept_asks.keep(a);
    return handle_kept_soon(a.thread);
  }
  if (asks_home(a.by_hint != 0, home_of(a.thread) == job.me)) return ask_home(a);
  kept_asks.keep(a);
  question_home(a.thread);
}

void ask_on(ticket_id thread) { with_kept(thread, handle); }

void handle_kept_soon(ticket_id thread) {
  struct handling : task {
    ticket_id thread;
    static void run(task* self) {
      const std::unique_ptr<handling> of(static_cast<handling*>(self));
      with_kept(of->thread, handle);
    }
  };
  post_task(new handling{{&handling::run, nullptr}, thread});
}

bool base_departs_as_asked(piece* p) {
  int to = std::exchange(p->departs_to, no_rank);
  ticket_id asked = std::exchange(p->extra->asked_to_move, 0);
  ticket_id thread = p->thread;
  if (p->word != resumed::anywhere) {
    // The thread's next statement may need this rank, for example because the thread came for an
    // object here. So the request is handled again after the thread has run.
    kept_asks.keep({thread, asked, to, false});
    handle_kept_soon(thread);
    return false;
  }
  place(p);
  const stay_reason* why = reason_whole_stays(p);
  if (asked == 0) handover_departs(p->extra->balance, to, why == nullptr);
  if (why == nullptr) {
    base_departs(p, to);
    send_whole(p, to);
  } else {
    make_ready_first(p, p->word);
  }
  if (asked != 0) answer({thread, asked, to, false}, why == nullptr ? moved : *why);
  with_kept(thread, handle);
  return true;
}

void migrate_base(ticket_id thread, int to) {
  if (home_of(thread) >= job.count) refuse(is_unknown, job.me);
  thread_ask a{thread, ticket_open(), to, false};
  ticket_id answer_at = a.answer;
  const hint& known = hint_of(thread);
  if (threads_here.find(thread) != nullptr) {
    handle(a);
  } else if (known.thread == thread && known.rank != job.me) {
    a.by_hint = true;
    send_ask(known.rank, a);
  } else {
    ask_home(a);
  }
  stay_reason r;  // Its text lies in the program, at one address on all ranks.
  ticket_take(answer_at, &r, sizeof r);
  if (r.kind != thread_refusal::none) refuse(r, to);
  hint_of(thread) = {thread, to};
}

}  // namespace sojourn::detail
