// SPDX-License-Identifier: Apache-2.0
#include "migrate/threads.hpp"

#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/scheduler.hpp"
#include "fiber/ticket_table.hpp"
#include "fiber/timers.hpp"
#include "memory/address_map.hpp"
#include "memory/thread_arena.hpp"
#include "message/dispatcher.hpp"
#include "message/message_reader.hpp"
#include "message/programs.hpp"
#include "migrate/ship.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/tasks.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

namespace {

/// A request that a thread move.
struct ask {
  ticket_id thread;
  ticket_id answer;  ///< Takes a stay_reason.
  int to;
  std::uint8_t by_hint;  ///< Sent to the rank where the asker found the thread before.
};
struct question {
  ticket_id thread;
  std::uint32_t homecomings;  ///< How many bases the asking rank has ever sent to this home.
};
struct news {
  int to;
  std::uint32_t moves;
};

/// The bases that are fibers of this rank, by the thread's id. In the runtime's memory, so that its
/// addresses left on stacks are not taken for pointers of the program.
class thread_table {
 public:
  piece* find(ticket_id thread) const {
    if (count_ == 0) return nullptr;
    for (piece* p = buckets_[bucket(thread)]; p != nullptr; p = p->next_thread) {
      if (p->thread == thread) return p;
    }
    return nullptr;
  }
  void insert(piece* p) {
    if (count_ == size_) grow();
    ++count_;
    piece*& first = buckets_[bucket(p->thread)];
    p->next_thread = first;
    first = p;
  }
  void erase(piece* p) {
    if (count_ == 0) return;
    for (piece** link = &buckets_[bucket(p->thread)]; *link != nullptr;
         link = &(*link)->next_thread) {
      if (*link != p) continue;
      *link = p->next_thread;
      --count_;
      return;
    }
  }

 private:
  std::size_t bucket(ticket_id thread) const { return (thread ^ thread >> 40) & (size_ - 1); }
  void grow() {
    std::size_t old_size = std::exchange(size_, size_ == 0 ? 256 : 2 * size_);
    piece** old = std::exchange(buckets_, runtime_array<piece*>(size_));
    for (std::size_t i = 0; i < old_size; ++i) {
      for (piece* p = old[i]; p != nullptr;) {
        piece* next = p->next_thread;
        piece*& first = buckets_[bucket(p->thread)];
        p->next_thread = first;
        first = p;
        p = next;
      }
    }
  }

  piece** buckets_ = nullptr;
  std::size_t size_ = 0;
  std::size_t count_ = 0;
};

struct hint {
  ticket_id thread;
  int rank;
};
constexpr std::size_t hint_count = 1024;

struct late_question {
  question asked;
  int from;
};

struct {
  thread_table here;
  hint* hints = nullptr;
  // Requests for threads that have not started here yet, or are on their way.
  std::unordered_multimap<ticket_id, ask> kept;
  // How many bases came home to this rank, by the rank that sent them; and how many this rank sent
  // home, by that home.
  std::uint32_t* homecomings_from = nullptr;
  std::uint32_t* homecomings_to = nullptr;
  std::vector<late_question> late_questions;
  thread_extra* free_extras = nullptr;
} threads;

/// Bytes of a table of numbers, one for each rank.
std::size_t rank_words() { return static_cast<std::size_t>(job.count) * sizeof(std::uint32_t); }

hint& hint_of(ticket_id thread) { return threads.hints[thread % hint_count]; }

thread_extra* new_extra() {
  if (threads.free_extras == nullptr) {
    constexpr std::size_t at_once = 64;
    auto* fresh = runtime_array<thread_extra>(at_once);
    for (std::size_t i = 0; i < at_once; ++i) {
      fresh[i].next_free = threads.free_extras;
      threads.free_extras = &fresh[i];
    }
  }
  thread_extra* extra = threads.free_extras;
  threads.free_extras = extra->next_free;
  *extra = {};
  return extra;
}
void free_extra(piece* p) {
  if (p->extra == nullptr) return;
  p->extra->next_free = threads.free_extras;
  threads.free_extras = std::exchange(p->extra, nullptr);
}
constexpr stay_reason moved{thread_refusal::none, ""};
constexpr stay_reason waits_here{thread_refusal::waits_here,
                                 "it waits for something that only its rank can tell it"};
constexpr stay_reason has_finished{thread_refusal::finished, "the thread has ended"};
constexpr stay_reason is_unknown{
    thread_refusal::unknown,
    "there is no such thread: it was joined, or has ended detached, or never was one"};

constexpr stay_reason runs_other{thread_refusal::other_program, "the rank runs another program"};

std::string refusal_text(const stay_reason& why, int to) {
  if (why.kind == thread_refusal::unknown || why.kind == thread_refusal::finished) return why.text;
  std::string reason =
      why.kind == thread_refusal::other_program ? why_no_stack_goes(job.me, to) : why.text;
  return format("the thread does not move to rank %d: %s", to, reason.c_str());
}

/// The texts are literals, at the same addresses in all ranks of this program; a rank of another
/// program is sent the whole sentence.
void answer(const ask& a, const stay_reason& why) {
  if (why.kind != thread_refusal::none && runs_other_program(home_of(a.answer))) {
    thread_error refused(why.kind, refusal_text(why, a.to));
    return send_exception(a.answer, std::make_exception_ptr(refused));
  }
  send_result(a.answer, &why, sizeof why);
}

void send_ask(int to, const ask& a) {
  send_reply(to, runtime_message::thread_ask, 0, a.thread, &a, sizeof a);
}

void handle(const ask& a);

/// Handles a request for a base that is here and suspended.
void move_from_here(piece* p, const ask& a) {
  if (a.to == job.me) return answer(a, moved);
  if (runs_other_program(a.to)) return answer(a, runs_other);
  if (p->departs_to != no_rank) {
    // It is about to leave: the request follows it.
    threads.kept.emplace(a.thread, a);
    return;
  }
  if (const stay_reason* why = reason_whole_stays(p)) return answer(a, *why);
  if (p->word == 0) {
    if (p->waits == wait_cause::ticket) {
      // It will ask for the result again where it arrives.
      find_ticket(p->waits_for)->waiter = nullptr;
    } else if (p->waits != wait_cause::timer || !cancel_timer(p)) {
      return answer(a, waits_here);
    }
    p->waits = wait_cause::none;
    make_ready(p, goes_anywhere);
  }
  extra_of(p).asked_to_move = a.answer;
  p->departs_to = a.to;
}

/// Handles a request at home, which knows where to pass it on to.
void ask_on_from_home(const ask& a) {
  const ticket* t = find_ticket(a.thread);
  if (t == nullptr || t->thread_at < 0) return answer(a, is_unknown);
  if (t->has != outcome::none) return answer(a, has_finished);
  if (t->thread_at != job.me) return send_ask(t->thread_at, a);
  threads.kept.emplace(a.thread, a);  // it has not started, or its bytes are still coming
}

void ask_home(const ask& a) {
  if (home_of(a.thread) == job.me) return ask_on_from_home(a);
  ask again = a;
  again.by_hint = false;
  send_ask(home_of(a.thread), again);
}

void handle_soon(ticket_id thread);

/// Handles a request that has reached this rank.
void handle(const ask& a) {
  if (piece* p = threads.here.find(a.thread); p != nullptr) {
    if (p != running_piece()) return move_from_here(p, a);
    // The thread itself took this message, while it waited in place for an answer.
    threads.kept.emplace(a.thread, a);
    return handle_soon(a.thread);
  }
  int home = home_of(a.thread);
  if (a.by_hint || home == job.me) return ask_home(a);
  threads.kept.emplace(a.thread, a);
  question q{a.thread, threads.homecomings_to[home]};
  send_reply(home, runtime_message::thread_query, 0, a.thread, &q, sizeof q);
}

/// Calls `then` with each request kept for `thread`, and keeps them no longer.
template <class Then>
void with_kept(ticket_id thread, Then then) {
  if (threads.kept.empty()) [[likely]]
    return;
  auto [first, last] = threads.kept.equal_range(thread);
  std::vector<ask> asks;
  for (auto a = first; a != last; ++a) asks.push_back(a->second);
  threads.kept.erase(first, last);
  for (const ask& a : asks) then(a);
}

/// True when not all bases that the asking rank had sent home before the question have arrived.
/// Bases sent after it may have: bases and questions use different queues.
bool is_early(const question& q, int from) {
  return static_cast<std::int32_t>(q.homecomings - threads.homecomings_from[from]) > 0;
}

/// Handles the requests kept for `thread` later, when what runs now has left its stack.
void handle_soon(ticket_id thread) {
  struct handling : task {
    ticket_id thread;
    static void run(task* self) {
      const std::unique_ptr<handling> of(static_cast<handling*>(self));
      with_kept(of->thread, handle);
    }
  };
  post_task(new handling{{&handling::run, nullptr}, thread});
}

void consider(const question& q, int from) {
  const ticket* t = find_ticket(q.thread);
  bool on_its_way = t != nullptr && t->has == outcome::none && t->thread_at == from;
  if (!on_its_way) send_reply(from, runtime_message::thread_stale, 0, q.thread, nullptr, 0);
}

void on_ask(arrival& message, const ask& a) {
  (void)checked_ticket(message, a.thread);
  (void)checked_ticket(message, a.answer);
  (void)checked_rank(message, a.to);
  wire().consume(message);
  handle(a);
}

void on_moved(arrival& a, const news& n) {
  ticket* t = find_ticket(a.ticket);
  (void)checked_rank(a, n.to);
  wire().consume(a);
  if (t == nullptr || n.moves <= t->thread_moves) return;
  t->thread_at = static_cast<std::int16_t>(n.to);
  t->thread_moves = n.moves;
}

void on_query(arrival& a, const question& q) {
  int from = a.source;
  wire().consume(a);
  // A base that `from` sent home before this message may still be in another queue.
  if (is_early(q, from)) {
    threads.late_questions.push_back({q, from});
    return;
  }
  consider(q, from);
}

void on_stale(arrival& a) {
  ticket_id thread = checked_ticket(a, a.ticket);
  wire().consume(a);
  with_kept(thread, ask_home);
}

/// A thread's base is about to leave for `to`.
void base_departs(piece* p, int to) {
  threads.here.erase(p);
  thread_departs(p->thread, ++p->moves, to);
}

/// The turn of a ready piece that was asked to move has come. Called on the scheduler's stack.
bool departs(piece* p) {
  int to = std::exchange(p->departs_to, no_rank);
  ticket_id asked = std::exchange(p->extra->asked_to_move, 0);
  ticket_id thread = p->thread;
  if (p->word != goes_anywhere) {
    // Its next statement is for this rank: say, it came for an object here. It is asked again after
    // it has run.
    threads.kept.emplace(thread, ask{thread, asked, to, false});
    handle_soon(thread);
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

void is_here(piece* p) {
  threads.here.insert(p);
  if (threads.kept.empty()) [[likely]]
    return;
  handle_soon(p->thread);  // the piece is not suspended yet
}

void is_gone(piece* p) {
  threads.here.erase(p);
  free_extra(p);
}

/// Sends a thread that moves itself, which is then resumed with `runs_there`. When that is refused,
/// it is resumed here with the reason's address.
void leave_or_stay(piece* left, int to) {
  const stay_reason* refused = reason_whole_stays(left);
  if (refused != nullptr) {
    ++counts.migrations_refused;
    make_ready_first(left, reinterpret_cast<long>(refused));
    return;
  }
  base_moves_itself(left, to);
  send_whole(left, to);
}

long move_self(std::uint64_t to, std::uint64_t, std::uint64_t sp) {
  leave_or_stay(suspend_running(sp), static_cast<int>(to));
  abandon_stack();
}

[[noreturn]] void refuse(const stay_reason& why, rank_t to) {
  throw thread_error(why.kind, refusal_text(why, to));
}

void migrate_self(int to) {
  if (to == job.me) return;
  if (runs_other_program(to)) refuse(runs_other, to);
  // Earlier calls may have used up this rank's weight of the finish scope.
  scopes_on_wire.gather();
  if (to == job.me) return;
  long word = capture_stack(move_self, static_cast<std::uint64_t>(to), 0);
  if (word != runs_there) refuse(*reinterpret_cast<const stay_reason*>(word), to);
}

void migrate_base(ticket_id thread, int to) {
  if (home_of(thread) >= job.count) refuse(is_unknown, job.me);
  ask a{thread, ticket_open(), to, false};
  ticket_id answer_at = a.answer;
  const hint& known = hint_of(thread);
  if (threads.here.find(thread) != nullptr) {
    handle(a);
  } else if (known.thread == thread && known.rank != job.me) {
    a.by_hint = true;
    send_ask(known.rank, a);
  } else {
    ask_home(a);
  }
  stay_reason r;  // Its text lies in the program, at one address in all ranks.
  ticket_take(answer_at, &r, sizeof r);
  if (r.kind != thread_refusal::none) refuse(r, to);
  hint_of(thread) = {thread, to};
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
    throw error("the thread is being joined by another fiber already: one joins, and tells others");
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

/// What is asked of a thread's home. Sent as a message, not as a call of a function, because a rank
/// of another program may ask.
enum class home_question : std::uint64_t { join, detach, finished, where };
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

std::int64_t ask_its_home(ticket_id thread, home_question question) {
  if (thread == 0) throw thread_error(thread_refusal::unknown, "this names no thread");
  home_request r{thread, question};
  int home = home_of(thread);
  if (home == job.me) return answer_here(r);
  if (home >= job.count) refuse(is_unknown, job.me);
  outgoing out = begin_fixed_request(home, sizeof r, true);
  std::memcpy(out.payload, &r, sizeof r);
  commit_request(home, handler_number(fixed_handler::thread_home), out.ticket);
  return take_value<std::int64_t>(out.ticket);
}

// A thread_error as bytes: the reason, then the text.
std::size_t encode_error(const void* exception, char* bytes, std::size_t room) {
  const auto& e = *static_cast<const thread_error*>(exception);
  bytes[0] = static_cast<char>(e.why());
  std::size_t size = std::min(std::strlen(e.what()), room - 1);
  std::memcpy(bytes + 1, e.what(), size);
  return size + 1;
}
[[noreturn]] void rethrow_error(const char* bytes, std::size_t size) {
  if (size == 0) throw malformed_message("a thread_error of no bytes is malformed");
  throw thread_error(static_cast<thread_refusal>(bytes[0]), std::string(bytes + 1, size - 1));
}
[[maybe_unused]] const bool error_travels =
    register_exception({&typeid(thread_error), 0, encode_error, rethrow_error});

}  // namespace

thread_extra& extra_of(piece* p) {
  if (p->extra == nullptr) p->extra = new_extra();
  return *p->extra;
}

void attach_threads() {
  threads.hints = runtime_array<hint>(hint_count);
  threads.homecomings_from = runtime_array<std::uint32_t>(static_cast<std::size_t>(job.count));
  threads.homecomings_to = runtime_array<std::uint32_t>(static_cast<std::size_t>(job.count));
  on_message<ask, on_ask>(runtime_message::thread_ask);
  on_message<news, on_moved>(runtime_message::thread_moved);
  on_message<question, on_query>(runtime_message::thread_query);
  on_message(runtime_message::thread_stale, on_stale);
  on_request(fixed_handler::thread_home, on_home_request, true);
  on_thread = {departs, is_here, is_gone};
}

ticket_id thread_open(int rank) {
  ticket* t = open_ticket(-1);
  t->thread_at = static_cast<std::int16_t>(rank);
  t->thread_moves = 0;
  return t->id;
}

void thread_begins(ticket_id thread, const thread_options& options) {
  piece* p = running_piece();
  p->thread = thread;
  const bool gives_turn = thread_started(p, options);
  if (options.pinned) p->pinned = true;
  p->shares_stack = options.shared_stack;
  if (!options.name.empty()) extra_of(p).name = options.name;
  if (gives_turn) [[unlikely]]
    give_turn();
}

namespace {

/// Gives the heap's memory back to the ranks that own it.
void end_heap(thread_arena* heap) {
  for (const page_range& extent : thread_arena::end(heap)) {
    send_reply(addresses.arenas_home(extent.address), runtime_message::extent_returns, 0, 0,
               &extent, sizeof extent);
  }
}

}  // namespace

namespace {

/// The base of the running thread. `what`: name of the public function that asks.
piece* running_base(const char* what) {
  piece* p = running_piece();
  if (p == nullptr || p->thread == 0) {
    throw error(format("%s: what runs is no thread: start it with spawn", what));
  }
  bool is_base = p->result == 0 || p->is_thread_base();
  if (!is_base) p = threads.here.find(p->thread);
  if (p == nullptr) {
    throw error(
        format("%s: what belongs to a thread is where its oldest frames are, and this activation "
               "of it is elsewhere",
               what));
  }
  return p;
}

}  // namespace

void set_affinity_of_running_thread(int rank) {
  extra_of(running_base("set_affinity")).balance.affinity = static_cast<std::int16_t>(rank);
}

std::pmr::memory_resource* heap_of_running_thread() {
  thread_extra& extra = extra_of(running_base("thread_heap"));
  if (extra.heap == nullptr) extra.heap = thread_arena::make();
  return extra.heap;
}

void thread_ends() {
  piece* p = running_piece();
  ticket_id thread = p->thread;
  if (p->extra != nullptr && p->extra->heap != nullptr) end_heap(p->extra->heap);
  if (p->is_thread_base()) threads.here.erase(p);
  free_extra(p);
  p->thread = 0;
  with_kept(thread, ask_home);
}

std::size_t trailer_bytes(const piece* p) {
  bool has_extra = p->extra != nullptr && p->is_thread_base();
  return sizeof(thread_trailer) + (has_extra ? sizeof(thread_extra) : 0);
}

void write_trailer(const piece* p, std::byte* room) {
  bool has_extra = p->extra != nullptr && p->is_thread_base();
  if (has_extra) {
    std::memcpy(room, p->extra, sizeof(thread_extra));
    room += sizeof(thread_extra);
  }
  thread_trailer t{p->thread, p->moves, has_extra};
  std::memcpy(room, &t, sizeof t);
}

void read_trailer(piece* p, const arrival& a, message_reader& from) {
  const auto t = from.take_last<thread_trailer>();
  p->thread = checked_ticket(a, t.thread);
  p->moves = t.moves;
  if (!t.has_extra) return;
  p->extra = new_extra();
  *p->extra = from.take_last<thread_extra>();
}

void thread_departs(ticket_id thread, std::uint32_t moves, int to) {
  int home = home_of(thread);
  if (home == job.me) {
    ticket* t = find_ticket(thread);
    if (t == nullptr) return;
    t->thread_at = static_cast<std::int16_t>(to);
    t->thread_moves = moves;
  } else if (to == home) {
    ++threads.homecomings_to[home];  // the arrival of the thread itself tells home
  } else {
    news n{to, moves};
    send_reply(home, runtime_message::thread_moved, 0, thread, &n, sizeof n);
  }
}

void thread_arrives(ticket_id thread, std::uint32_t moves, int from) {
  if (home_of(thread) != job.me) return;
  if (ticket* t = find_ticket(thread); t != nullptr) {
    t->thread_at = static_cast<std::int16_t>(job.me);
    t->thread_moves = moves;
  }
  ++threads.homecomings_from[from];
  if (threads.late_questions.empty()) [[likely]]
    return;
  auto due = [&](const late_question& q) { return q.from == from && !is_early(q.asked, from); };
  for (const late_question& q : threads.late_questions) {
    if (due(q)) consider(q.asked, q.from);
  }
  std::erase_if(threads.late_questions, due);
}

void ask_on(ticket_id thread) { with_kept(thread, handle); }

void base_moves_itself(piece* p, int to) {
  base_departs(p, to);
  // Answered as if it had gone where it was asked to, and then on at once: a thread that keeps
  // moving may never stand still to be moved.
  with_kept(p->thread, [](const ask& a) { answer(a, moved); });
}

void base_announced(const piece* p, int from) { thread_arrives(p->thread, p->moves, from); }

void base_arrives(piece* p, int from, bool announced) {
  threads.here.insert(p);
  if (!announced) thread_arrives(p->thread, p->moves, from);
  if (p->extra != nullptr) handover_arrives(p->extra->balance, from);
  with_kept(p->thread, handle);
}

void save_threads(file_writer& to) {
  SOJOURN_CHECK(threads.late_questions.empty(), "a question about a thread waits for a message");
  to.put(threads.kept.size());
  for (const auto& [thread, asked] : threads.kept) to.put(asked);
  to.bytes(threads.homecomings_from, rank_words());
  to.bytes(threads.homecomings_to, rank_words());
}

void load_threads(file_reader& from) {
  for (auto left = from.get<std::size_t>(); left > 0; --left) {
    ask asked = from.get<ask>();
    threads.kept.emplace(asked.thread, asked);
  }
  from.bytes(threads.homecomings_from, rank_words());
  from.bytes(threads.homecomings_to, rank_words());
}

void save_thread(const piece* p, file_writer& to) {
  to.put(p->extra != nullptr);
  if (p->extra == nullptr) return;
  to.put(*p->extra);
  if (p->extra->heap != nullptr) p->extra->heap->save(to);
}

void load_thread(piece* p, file_reader& from) {
  if (p->is_thread_base()) threads.here.insert(p);
  if (!from.get<bool>()) return;
  p->extra = new_extra();
  from.get(*p->extra);
  if (p->extra->heap != nullptr) p->extra->heap = thread_arena::load(from);
}

void migrate_self_by_switch(int to) {
  if (runs_other_program(to)) refuse(runs_other, to);
  if (to != job.me) scopes_on_wire.gather();
  long word = runs_there;
  if (to != job.me) {
    word = leave(
        [](piece* left, void* context) { leave_or_stay(left, *static_cast<int*>(context)); }, &to);
  }
  // Read job.me again: this may run on another rank now.
  if (job.me != to && word != runs_there) refuse(*reinterpret_cast<const stay_reason*>(word), to);
}

}  // namespace sojourn::detail

namespace sojourn {

thread self() {
  const detail::piece* p = detail::running_piece();
  return p == nullptr ? thread() : thread::of_id(p->thread);
}

std::pmr::memory_resource* thread_heap() { return detail::heap_of_running_thread(); }

inline_string<23> this_thread_name() {
  const detail::piece* p = detail::running_piece();
  return p == nullptr || p->extra == nullptr ? inline_string<23>() : p->extra->name;
}

void name_this_thread(const inline_string<23>& name) {
  detail::piece* p = detail::running_piece();
  if (p == nullptr || p->thread == 0) throw error("what runs is no thread, and can have no name");
  detail::extra_of(p).name = name;
}

void set_affinity(affinity to) {
  detail::set_affinity_of_running_thread(to ? to.where() : detail::no_rank);
}

void thread::join() {
  if (id_ != 0 && self() == *this) throw error("a thread joins itself, and would wait for ever");
  detail::ask_its_home(id_, detail::home_question::join);
}
void thread::detach() { detail::ask_its_home(id_, detail::home_question::detach); }
bool thread::finished() const {
  return detail::ask_its_home(id_, detail::home_question::finished) != 0;
}
rank_t thread::where() const {
  return static_cast<rank_t>(detail::ask_its_home(id_, detail::home_question::where));
}

void migrate(thread t, rank_t to) {
  if (to < 0 || to >= rank_count()) {
    throw error(detail::format("there is no rank %d to migrate to: this job has ranks 0 to %d", to,
                               rank_count() - 1));
  }
  if (!t) throw thread_error(thread_refusal::unknown, "this names no thread");
  if (t != self()) return detail::migrate_base(t.id(), to);
  const detail::piece* p = detail::running_piece();
  // It runs on the stack of a handler that is no fiber yet, or is the thread's base.
  bool is_base = p->result == 0 || p->is_thread_base();
  if (is_base) return detail::migrate_self(to);
  detail::migrate_base(t.id(), to);
  if (to != rank_me() && !detail::migrate_activations(to, via::migrate.all())) {
    throw thread_error(thread_refusal::stays,
                       "the thread's base has moved; the activation that asked for it stays");
  }
}

}  // namespace sojourn
