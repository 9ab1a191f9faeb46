// SPDX-License-Identifier: Apache-2.0
#include "migrate/thread/threads.hpp"

#include "base/check.hpp"
#include "base/saved_file.hpp"
#include "fiber/block.hpp"
#include "fiber/hooks.hpp"
#include "fiber/scheduler.hpp"
#include "memory/address_map.hpp"
#include "memory/thread_arena.hpp"
#include "message/dispatcher.hpp"
#include "message/programs.hpp"
#include "migrate/gate.hpp"
#include "migrate/hooks.hpp"
#include "migrate/ship.hpp"
#include "migrate/thread/balance.hpp"
#include "migrate/thread/handovers.hpp"
#include "migrate/thread/thread_asks.hpp"
#include "migrate/thread/thread_home.hpp"
#include "migrate/thread/thread_refusal.hpp"
#include "migrate/thread_table.hpp"
#include "migrate/thread_trailer.hpp"
#include "sojourn/counters.hpp"
#include "sojourn/detail/migrate_by_switch.hpp"
#include "sojourn/via.hpp"

namespace sojourn::detail {

namespace {

void is_here(piece* p) {
  threads_here.insert(p);
  if (kept_asks.empty()) [[likely]]
    return;
  handle_kept_soon(p->thread);  // the piece is not suspended yet
}

void is_gone(piece* p) {
  threads_here.erase(p);
  free_extra(p);
}

void base_moves_itself(piece* p, int to) {
  base_departs(p, to);
  // Requests to move this thread are answered as if the thread had gone where they asked, and then
  // here or there by itself: a thread that keeps moving may never stand still to be moved.
  with_kept(p->thread, answer_moved);
}

void base_announced(const piece* p, int from) { thread_arrives(p->thread, p->moves, from); }

void base_arrives(piece* p, int from, bool announced) {
  threads_here.insert(p);
  if (!announced) thread_arrives(p->thread, p->moves, from);
  if (p->extra != nullptr) handover_arrives(p->extra->balance, from);
  with_kept(p->thread, handle);
}

/// Sends a thread that moves itself, or tells it why it cannot leave.
void leave_or_stay(piece* left, int to) {
  const stay_reason* refused = reason_whole_stays(left);
  if (refused != nullptr) {
    ++counts.migrations_refused;
    left->refused = refused;
    make_ready_first(left, resumed::stayed);
    return;
  }
  base_moves_itself(left, to);
  send_whole(left, to);
}

long move_self(std::uint64_t to, std::uint64_t, std::uint64_t sp) {
  leave_or_stay(suspend_running(sp), static_cast<int>(to));
  abandon_stack();
}

void migrate_self(int to) {
  if (to == job.me) return;
  if (takes_no_stacks(to)) refuse(runs_other, to);
  // Earlier calls may have used up this rank's weight of the finish scope.
  on_dispatch.scopes.gather();
  if (to == job.me) return;
  const resumed word{capture_stack(move_self, static_cast<std::uint64_t>(to), 0)};
  if (word == resumed::stayed) refuse(*running_piece()->refused, to);
}

/// Gives the heap's memory back to the ranks that own it.
void end_heap(thread_arena* heap) {
  for (const page_range& extent : thread_arena::end(heap)) {
    send_reply(addresses.arenas_home(extent.address), runtime_message::extent_returns, 0, 0,
               &extent, sizeof extent);
  }
}

/// The base of the running thread. `what`: name of the public function that asks.
piece* running_base(const char* what) {
  piece* p = running_piece();
  if (p == nullptr || p->thread == 0) {
    throw error(format("%s: the caller is not a thread: start it with spawn", what));
  }
  bool is_base = p->result == 0 || p->is_thread_base();
  if (!is_base) p = threads_here.find(p->thread);
  if (p == nullptr) {
    throw error(
        format("%s: the thread's heap and affinity are on the rank of its oldest frames, and this "
               "activation of it runs on another rank",
               what));
  }
  return p;
}

}  // namespace

void attach_threads() {
  attach_thread_home();
  attach_thread_asks();
  on_fiber.thread = {base_departs_as_asked, is_here, is_gone};
  on_migrate.base = {base_moves_itself, base_announced, base_arrives};
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
  if (p->is_thread_base()) threads_here.erase(p);
  free_extra(p);
  p->thread = 0;
  with_kept(thread, ask_home);
}

void save_threads(file_writer& to) {
  kept_asks.save(to);
  save_homecomings(to);
}

void load_threads(file_reader& from) {
  kept_asks.load(from);
  load_homecomings(from);
}

void migrate_self_by_switch(int to) {
  if (takes_no_stacks(to)) refuse(runs_other, to);
  if (to != job.me) on_dispatch.scopes.gather();
  resumed word = resumed::there;
  if (to != job.me) {
    word = leave(
        [](piece* left, void* context) { leave_or_stay(left, *static_cast<int*>(context)); }, &to);
  }
  if (word == resumed::stayed) refuse(*running_piece()->refused, to);
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
  if (p == nullptr || p->thread == 0)
    throw error("only a thread can have a name, and the caller is not one: start it with spawn");
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
  if (!t) throw thread_error(thread_refusal::unknown, "this thread object names no thread");
  if (t != self()) return detail::migrate_base(t.id(), to);
  const detail::piece* p = detail::running_piece();
  // A handler that is no fiber yet, or the base of a thread: the whole thread is here.
  bool is_base = p->result == 0 || p->is_thread_base();
  if (is_base) return detail::migrate_self(to);
  detail::migrate_base(t.id(), to);
  if (to != rank_me() && !detail::migrate_activations(to, via::migrate.all())) {
    throw thread_error(
        thread_refusal::stays,
        "the thread's oldest frames have moved; the activation that asked for this stays");
  }
}

}  // namespace sojourn
