// SPDX-License-Identifier: Apache-2.0
// Threads: joined by names that are good everywhere, many at once, and asked to stop.
#include <stdexcept>
#include <string>
#include <vector>

#include "fiber/ticket_table.hpp"
#include "threads.hpp"

using namespace threads;

namespace {

void runs_and_is_joined() {
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(spawn_on((rank_me() + i) % rank_count(),
                           [](global_ptr<board> to, long value) { to.call<&board::note>(value); },
                           b, static_cast<long>(i)));
  }
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), 100);
  CHECK_EQUAL(b.call<&board::sum>(), 99 * 100 / 2);
  destroy(b);
}

void an_exception_reaches_who_joins() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    thread t = spawn_on(r, [] { throw std::out_of_range("too far"); });
    CHECK_THROWS(std::out_of_range, t.join());
    // Thrown after a move, caught in an older frame, and thrown on.
    thread mover = spawn_on(r, [] {
      try {
        [](rank_t home) {
          migrate(self(), next());
          if (rank_count() == 1 || rank_me() != home) throw std::domain_error("elsewhere");
        }(rank_me());
      } catch (const std::domain_error& e) {
        throw std::length_error(std::string(e.what()) + " caught");
      }
    });
    CHECK_THROWS(std::length_error, mover.join());
  }
}

void the_name_is_good_everywhere() {
  CHECK(!self());
  auto b = make<board>(0);
  auto g = make<gate>(0);
  thread t = spawn_on(
      last(),
      [](global_ptr<gate> at, global_ptr<board> to) {
        to.call<&board::note>(static_cast<long>(self().id()));
        at.call<&gate::pass>();
      },
      g, b);
  // Joined from another rank than the one that started it.
  thread joiner = spawn_on(next(), [](thread::id_type id) { thread::of_id(id).join(); }, t.id());
  CHECK(!t.finished());
  CHECK_EQUAL(t.where(), last());
  g.call<&gate::let>();
  joiner.join();
  CHECK_EQUAL(b.call<&board::sum>(), static_cast<long>(t.id()));
  try {
    t.join();
    CHECK(false && "joined twice");
  } catch (const thread_error& e) {
    CHECK_EQUAL(e.why(), thread_refusal::unknown);
  }
  CHECK_EQUAL(why_not(t, 0), thread_refusal::unknown);
  CHECK_EQUAL(why_not(thread(), 0), thread_refusal::unknown);
  CHECK_THROWS(error, migrate(t, rank_count()));
  // An id that never was one, at home anywhere.
  for (rank_t r : {0, rank_count() - 1, rank_count()}) {
    thread no = thread::of_id(static_cast<thread::id_type>(r) << 48 | 0x123456);
    CHECK_EQUAL(why_not(no, 0), thread_refusal::unknown);
    CHECK_THROWS(thread_error, no.join());
  }
  destroy(g);
  destroy(b);
}

void a_finished_one_is_known_until_joined() {
  thread t = spawn_on(last(), [] {});
  while (!t.finished()) yield();
  CHECK_EQUAL(why_not(t, 0), thread_refusal::finished);
  CHECK_EQUAL(rpc(
                  next(), [](thread::id_type id) { return why_not(thread::of_id(id), 0); }, t.id())
                  .get(),
              thread_refusal::finished);
  CHECK_THROWS(thread_error, t.where());
  t.join();
  CHECK_THROWS(thread_error, t.finished());
}

void a_detached_one_is_forgotten() {
  auto b = make<board>(0);
  barrier();
  // Of other claims, messages that close a few may still be on their way.
  const std::size_t tickets = sojourn::detail::tickets_open();
  for (int i = 0; i < 10; ++i) {
    thread t = spawn_on(next(), [](global_ptr<board> to) { to.call<&board::note>(1); }, b);
    if (i % 2 == 0) {
      t.detach();
    } else {
      while (!t.finished()) yield();
      t.detach();
    }
    CHECK_THROWS(thread_error, t.join());
    CHECK_THROWS(thread_error, t.detach());
  }
  while (b.call<&board::count>() < 10) yield();
  // Its ticket is given back when the news of its end is here.
  for (int i = 0; i < 10'000 && sojourn::detail::tickets_open() > tickets; ++i) {
    rpc(next(), [] {}).get();
  }
  CHECK(sojourn::detail::tickets_open() <= tickets);
  destroy(b);
}

/// One fiber joins, wherever it has been moved meanwhile; the others are told.
void one_fiber_joins() {
  if (rank_me() != 0) return;
  for (int round = 0; round < 20; ++round) {
    auto g = make<gate>(0);
    thread t = spawn_on(last(), [](global_ptr<gate> at) { at.call<&gate::pass>(); }, g);
    thread joiner = spawn([](thread::id_type id) { thread::of_id(id).join(); }, t.id());
    while (why_not(joiner, round % 2 == 0 ? last() : 0) != thread_refusal::none) yield();
    CHECK_THROWS(error, t.join());
    CHECK_THROWS(error, t.detach());
    g.call<&gate::let>();
    joiner.join();
    CHECK_THROWS(thread_error, t.finished());
    destroy(g);
  }
  thread alone = spawn([] {
    CHECK_THROWS(error, self().join());
    activate(
        [](rank_t there) {
          migrate_to(there);
          CHECK_THROWS(error, self().join());
        },
        last());
  });
  alone.join();
}

void a_name_goes_along() {
  auto b = make<board>(rank_me());
  thread t = spawn_on(
      next(), thread_options{.name = "walker"},
      [](global_ptr<board> to) {
        long wrong = this_thread_name() != "walker";
        migrate(self(), next());
        wrong += this_thread_name() != "walker";
        name_this_thread("runner");
        migrate(self(), next());
        wrong += this_thread_name() != "runner";
        to.call<&board::note>(wrong);
      },
      b);
  t.join();
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  destroy(b);
}

void many_wait_and_wake_in_order() {
  if (rank_me() != 0) return;
  // Emulators have little room for stacks.
  const int count = sanitized || !check::system_copies() ? 300 : 3000;
  auto b = make<board>(0);
  auto opener = make<gate>(last());
  std::vector<thread> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(spawn(
        [](global_ptr<gate> at, global_ptr<board> to, long n) {
          rpc(at.where(), [](global_ptr<gate> g) { g.call<&gate::pass>(); }, at).get();
          to.call<&board::note>(n);
        },
        opener, b, static_cast<long>(i)));
  }
  opener.call<&gate::let>();
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), count);
  CHECK_EQUAL(b.call<&board::sum>(), static_cast<long>(count) * (count - 1) / 2);
  destroy(opener);
  destroy(b);
}

/// Threads in one range of addresses: each has its frames when it runs, in the order of waking.
void many_share_one_stack() {
  const int count = sanitized ? 500 : 20000;
  static latch opened(1);
  static long started;
  static long woken;
  static long wrong;
  started = woken = wrong = 0;
  std::vector<thread> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(spawn_on(
        rank_me(), thread_options{.shared_stack = true},
        [](long n) {
          volatile long mine[24];
          for (long& slot : const_cast<long(&)[24]>(mine)) slot = n;
          ++started;
          opened.wait();
          wrong += woken++ != n;
          for (volatile long& slot : mine) wrong += slot != n;
        },
        static_cast<long>(i)));
  }
  while (started < count) yield();
  opened.count_down();
  for (thread t : all) t.join();
  CHECK_EQUAL(woken, count);
  CHECK_EQUAL(wrong, 0);
}

void one_is_asked_to_stop_wherever_it_is() {
  auto b = make<board>(rank_me());
  stop_source source;
  std::vector<thread> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(spawn(
        [](stop_token token, global_ptr<board> to, bool waits) {
          migrate(self(), next());
          if (waits) {
            migrate(self(), next());
            token.wait();
          }
          while (!token.stop_requested()) migrate(self(), next()), yield();
          to.call<&board::note>(1);
        },
        source.token(), b, i % 2 == 0));
  }
  for (int i = 0; i < 200; ++i) yield();
  CHECK(source.request_stop());
  CHECK(!source.request_stop());
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::sum>(), 4);
  CHECK(source.token().stop_requested());
  stop_token none;
  CHECK(!none.stop_requested() && !none.stop_possible());
  stop_token orphan;
  {
    stop_source gone;
    orphan = gone.token();
    CHECK(orphan.stop_possible());
  }
  CHECK(!orphan.stop_possible() && !orphan.wait() && !orphan.stop_requested());
  destroy(b);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a thread runs and is joined", runs_and_is_joined);
    check::claim("an exception reaches who joins", an_exception_reaches_who_joins);
    check::claim("the name is good everywhere", the_name_is_good_everywhere);
    check::claim("a finished one is known until joined", a_finished_one_is_known_until_joined);
    check::claim("a detached one is forgotten", a_detached_one_is_forgotten);
    check::claim("one fiber joins", one_fiber_joins);
    check::claim("a thread visits all ranks with its locals",
                 a_thread_visits_all_ranks_with_its_locals);
    check::claim("both approaches go on with the next statement",
                 both_approaches_go_on_with_the_next_statement);
    check::claim("another one is moved while it waits", another_one_is_moved_while_it_waits);
    check::claim("one that is ready is moved", one_that_is_ready_is_moved);
    check::claim("one that sleeps is moved", one_that_sleeps_is_moved);
    check::claim("its base moves while an activation is away",
                 its_base_moves_while_an_activation_is_away);
    check::claim("one that moved by an access is found", one_that_moved_by_an_access_is_found);
    check::claim("one that never stands still is moved", one_that_never_stands_still_is_moved);
    check::claim("one whose wait has timed out is moved later",
                 one_whose_wait_has_timed_out_is_moved_later);
    check::claim("refusals say why", refusals_say_why);
    check::claim("a name goes along", a_name_goes_along);
    check::claim("heaps and large frames travel", heaps_and_large_frames_travel);
    check::claim("a heap may come where another was read", a_heap_may_come_where_another_was_read);
    check::claim("bytes are copied once or twice", bytes_are_copied_once_or_twice);
    check::claim("random moves lose nothing", random_moves_lose_nothing);
    check::claim("many wait and wake", many_wait_and_wake_in_order);
    check::claim("many share one stack", many_share_one_stack);
    check::claim("those that share a stack travel", those_that_share_a_stack_travel);
    check::claim("one is asked to stop wherever it is", one_is_asked_to_stop_wherever_it_is);
    check::claim("stop sources leave no memory behind", stop_sources_leave_no_memory_behind);
    return check::verdict();
  });
}
