// SPDX-License-Identifier: Apache-2.0
// Threads are moved by themselves and by others, at any time.
#include <array>
#include <cfenv>
#include <chrono>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "sojourn/detail/migrate_by_switch.hpp"
#include "threads.hpp"

namespace threads {

namespace {

struct shape {
  virtual ~shape() = default;
  virtual double area() const = 0;
};
struct square : shape {
  double side;
  explicit square(double s) : side(s) {}
  double area() const override { return side * side; }
};

double sum_of(const std::array<double, 40>& values) {
  double sum = 0;
  for (double v : values) sum += v;
  return sum;
}

/// Visits ranks in random order with locals of every kind, and sees that they came along.
void traveller(int visits, unsigned seed, global_ptr<board> to) {
  std::minstd_rand random(seed);
  std::array<double, 40> numbers{};
  std::string name = "traveller";  // short: its characters are in the frame
  square tile(3);
  const shape* base = &tile;
  std::fesetround(FE_UPWARD);
  volatile double third = 1.0;
  const double up = third / 3.0;
  long wrong = 0;
  for (int i = 0; i < visits; ++i) {
    numbers[static_cast<std::size_t>(i) % numbers.size()] += i;
    rank_t there = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
    thread me = self();
    migrate(self(), there);
    wrong += rank_me() != there || self() != me;
    wrong += name != "traveller" || base != &tile || base->area() != 9;
    wrong += std::fegetround() != FE_UPWARD || third / 3.0 != up;
    try {
      if (i % 7 == 0) throw i;
    } catch (int thrown) {
      wrong += thrown != i;
      // An exception in flight belongs to its rank.
      if (rank_count() > 1) {
        wrong += why_not(self(), next()) != thread_refusal::handles_exception;
        wrong += rank_me() != there;
      }
    }
  }
  std::fesetround(FE_TONEAREST);
  wrong += sum_of(numbers) != static_cast<double>(visits) * (visits - 1) / 2;
  to.call<&board::note>(wrong);
}

}  // namespace

void a_thread_visits_all_ranks_with_its_locals() {
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (unsigned i = 0; i < 4; ++i) all.push_back(spawn(traveller, 1000, i + 1, b));
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), 4);
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  destroy(b);
}

namespace {

[[gnu::noinline]] void by_switch(int to) { detail::migrate_self_by_switch(to); }

}  // namespace

void both_approaches_go_on_with_the_next_statement() {
  auto b = make<board>(rank_me());
  thread t = spawn(
      [](global_ptr<board> to) {
        long wrong = 0;
        for (int i = 0; i < 50; ++i) {
          rank_t there = next();
          by_switch(there);
          wrong += rank_me() != there;
          there = next();
          migrate(self(), there);
          wrong += rank_me() != there;
        }
        to.call<&board::note>(wrong);
      },
      b);
  t.join();
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  destroy(b);
}

namespace {

/// Notes the rank it is on whenever it is let go on.
void waits_at(global_ptr<gate> first, global_ptr<gate> second, global_ptr<board> to) {
  first.call<&gate::pass>();
  to.call<&board::note>(rank_me());
  second.call<&gate::pass>();
  to.call<&board::note>(rank_me());
}

}  // namespace

void another_one_is_moved_while_it_waits() {
  if (rank_me() != 0) return;
  for (rank_t asked_from = 0; asked_from < rank_count(); ++asked_from) {
    auto b = make<board>(0);
    auto first = make<gate>(0);
    auto second = make<gate>(last());
    thread t = spawn_on(last(), waits_at, first, second, b);
    auto move = [](thread::id_type id, rank_t to) { migrate(thread::of_id(id), to); };
    for (rank_t to = 0; to < rank_count(); ++to) rpc(asked_from, move, t.id(), to).get();
    // Home may hear of a move after the asker.
    while (t.where() != last()) yield();
    rpc(asked_from, move, t.id(), 0).get();
    while (t.where() != 0) yield();
    first.call<&gate::let>();
    while (b.call<&board::count>() < 1) yield();
    rpc(asked_from, move, t.id(), last()).get();
    second.call<&gate::let>();
    t.join();
    CHECK_EQUAL(b.call<&board::sum>(), last());
    destroy(b);
    destroy(first);
    destroy(second);
  }
}

void one_that_is_ready_is_moved() {
  if (rank_me() != 0) return;
  auto b = make<board>(0);
  auto g = make<gate>(0);
  thread t = spawn(
      [](global_ptr<gate> at, global_ptr<board> to) {
        rank_t here = rank_me();
        while (rank_me() == here && !at.local()->open) yield();
        to.call<&board::note>(rank_me());
      },
      g, b);
  yield();
  migrate(t, last());
  g.call<&gate::let>();
  t.join();
  CHECK_EQUAL(b.call<&board::sum>(), last());
  destroy(g);
  destroy(b);
}

void one_that_sleeps_is_moved() {
  if (rank_me() != 0) return;
  auto b = make<board>(0);
  thread t = spawn(
      [](global_ptr<board> to) {
        auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
        sleep_until(until);
        long early = std::chrono::steady_clock::now() < until;
        to.call<&board::note>(early * 1000 + rank_me());
      },
      b);
  yield();
  migrate(t, last());
  t.join();
  CHECK_EQUAL(b.call<&board::sum>(), last());
  destroy(b);
}

void its_base_moves_while_an_activation_is_away() {
  if (rank_me() != 0 || rank_count() < 2) return;
  auto b = make<board>(0);
  auto g = make<gate>(last());
  thread t = spawn(
      [](global_ptr<gate> at, global_ptr<board> to) {
        rank_t inner = activate(
            [](global_ptr<gate> where) {
              migrate_to(where.where());
              where.call<&gate::pass>();
              return rank_me();
            },
            at);
        to.call<&board::note>(inner * 100 + rank_me());
      },
      g, b);
  while (t.where() != 0) yield();
  for (int i = 0; i < 20; ++i) yield();
  rank_t to = rank_count() > 2 ? 1 : 0;
  migrate(t, to);
  while (t.where() != to) yield();
  g.call<&gate::let>();
  t.join();
  CHECK_EQUAL(b.call<&board::sum>(), last() * 100 + to);
  destroy(g);
  destroy(b);
}

/// A thread follows an access, or says that all of it is to go: home is told as of any move.
void one_that_moved_by_an_access_is_found() {
  if (rank_me() != 0) return;
  auto b = make<board>(last());
  auto g = make<gate>(0);
  for (bool by_access : {true, false}) {
    thread t = spawn(
        [](global_ptr<gate> at, global_ptr<board> to, bool access) {
          if (access) {
            to.call<&board::runs_on>(via::migrate);
          } else {
            migrate_to(to.where(), via::migrate.all());
          }
          at.call<&gate::pass>();
        },
        g, b, by_access);
    while (t.where() != last()) yield();
    migrate(t, 0);
    while (t.where() != 0) yield();
    g.call<&gate::let>();
    t.join();
    g.local()->open = false;
  }
  destroy(g);
  destroy(b);
}

/// A thread that only ever moves itself is moved: as if just before it went on.
void one_that_never_stands_still_is_moved() {
  if (rank_me() != 0 || rank_count() < 2) return;
  static long was_here;  // of each rank
  auto been_on = [](rank_t r) { return rpc(r, [] { return was_here; }).get(); };
  for (rank_t r = 0; r < rank_count(); ++r) rpc(r, [] { was_here = 0; }).get();
  stop_source source;
  thread t = spawn(
      [](stop_token token) {
        while (!token.stop_requested()) {
          ++was_here;
          migrate(self(), next());
        }
      },
      source.token());
  for (int i = 0; i < 100; ++i) CHECK_EQUAL(why_not(t, i % rank_count()), thread_refusal::none);
  // It goes on round all ranks, whoever asks for it meanwhile.
  for (rank_t r = 0; r < rank_count(); ++r) {
    for (const long before = been_on(r); been_on(r) < before + 2;) yield();
  }
  CHECK(!t.finished());
  source.request_stop();
  t.join();
}

/// It has been in a queue of this rank: it locks its mutex here before it goes elsewhere.
void one_whose_wait_has_timed_out_is_moved_later() {
  if (rank_me() != 0) return;
  static mutex guard;
  static condition_variable never_notified;
  static long here_first;
  here_first = 0;
  for (int i = 0; i < 50; ++i) {
    thread t = spawn([] {
      std::unique_lock lock(guard);
      never_notified.wait_for(lock, std::chrono::microseconds(50));
      if (rank_me() != 0) return;
      lock.unlock();
      ++here_first;
    });
    while (!t.finished() && why_not(t, last()) != thread_refusal::none) yield();
    t.join();
  }
  CHECK_EQUAL(here_first, 50);
}

void refusals_say_why() {
  if (rank_count() < 2) return;
  auto g = make<gate>(rank_me());
  auto refused = [&](thread t) { return why_not(t, next()); };
  auto after_start = [](thread t) {
    for (int i = 0; i < 20; ++i) yield();
    return t;
  };
  thread stays = spawn(
      [](global_ptr<gate> at) {
        stay here;
        while (!at.local()->open) yield();
      },
      g);
  CHECK_EQUAL(refused(after_start(stays)), thread_refusal::stays);
  thread pinned = spawn_on(
      rank_me(), thread_options{.name = "pinned one", .pinned = true},
      [](global_ptr<gate> at) {
        CHECK(this_thread_name() == "pinned one");
        CHECK_EQUAL(why_not(self(), next()), thread_refusal::pinned);
        while (!at.local()->open) yield();
      },
      g);
  CHECK_EQUAL(refused(after_start(pinned)), thread_refusal::pinned);
  thread catches = spawn(
      [](global_ptr<gate> at) {
        try {
          throw 1;
        } catch (int) {
          while (!at.local()->open) yield();
        }
      },
      g);
  CHECK_EQUAL(refused(after_start(catches)), thread_refusal::handles_exception);
  thread in_method = spawn([](global_ptr<gate> at) { at.call<&gate::pass>(); }, g);
  CHECK_EQUAL(refused(after_start(in_method)), thread_refusal::in_method);
  thread in_finish = spawn(
      [](global_ptr<gate> at) {
        finish([at] { rpc_ff(next(), [](global_ptr<gate> p) { p.call<&gate::pass>(); }, at); });
      },
      g);
  CHECK_EQUAL(refused(after_start(in_finish)), thread_refusal::stays);
  thread initialises = spawn(
      [](global_ptr<gate> at) {
        static const long value = [](global_ptr<gate> gate_here) {
          while (!gate_here.local()->open) yield();
          return 1L;
        }(at);
        CHECK_EQUAL(value, 1);
      },
      g);
  CHECK_EQUAL(refused(after_start(initialises)), thread_refusal::initialises);
  static sojourn::mutex guard;
  thread locks = spawn(
      [](global_ptr<gate> at) {
        std::lock_guard lock(guard);
        CHECK_EQUAL(why_not(self(), next()), thread_refusal::holds_lock);
        while (!at.local()->open) yield();
      },
      g);
  CHECK_EQUAL(refused(after_start(locks)), thread_refusal::holds_lock);
  static latch opened(1);
  thread waits = spawn([] { opened.wait(); });
  CHECK_EQUAL(refused(after_start(waits)), thread_refusal::waits_here);
  opened.count_down();
  g.call<&gate::let>();
  for (thread t : {stays, pinned, catches, in_method, in_finish, initialises, locks, waits}) {
    t.join();
  }
  destroy(g);
}

namespace {

/// Threads that move, wait, yield and call while all ranks move them at random: whatever happens,
/// each does what it has to do, and nothing is lost.
void worker(int steps, unsigned seed, global_ptr<board> to) {
  std::minstd_rand random(seed);
  long sum = 0;
  long expected = 0;
  // Some have a heap, and come later than others that left behind them.
  if (seed % 3 == 0) (void)thread_heap()->allocate(50'000);
  // On until it has been moved often enough, however slowly that goes.
  for (int i = 0; i < steps || !to.call<&board::is_enough>(); ++i) {
    switch (random() % 6) {
      case 5:
        // Whoever moves it meanwhile, the method runs where its object is.
        sum -= to.call<&board::runs_on>(via::migrate) == to.where() ? 0 : 1'000'000;
        break;
      case 0:
        migrate(self(), static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())));
        break;
      case 1:
        yield();
        break;
      case 2: {
        auto r = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
        auto f = rpc(r, [](int x) { return x + 1; }, i);
        if (random() % 2 == 0) yield();
        sum += f.get() - 1 - i;
        break;
      }
      case 3:
        sum += activate(
            [](rank_t there, int x) {
              migrate_to(there);
              yield();
              return x;
            },
            static_cast<rank_t>(random() % static_cast<unsigned>(rank_count())), 0);
        break;
      default:
        sum += i;
        expected += i;
    }
  }
  to.call<&board::note>(sum - expected);
}

}  // namespace

void random_moves_lose_nothing() {
  const std::uint64_t migrations_before = counters_now().migrations;
  constexpr int threads = 24;
  const int steps = sanitized ? 60 : 200;
  auto b = make<board>(rank_me());
  std::vector<thread> mine;
  for (int i = 0; i < threads; ++i) {
    mine.push_back(spawn_on((rank_me() + i) % rank_count(), worker, steps,
                            static_cast<unsigned>(rank_me() * 1000 + i + 1), b));
  }
  // Asked from everywhere.
  std::minstd_rand random(static_cast<unsigned>(rank_me()) + 7);
  int moved = 0;
  int not_moved = 0;
  while (b.call<&board::count>() < threads) {
    thread t = mine[random() % mine.size()];
    auto to = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
    auto from = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
    auto why = rpc(
                   from, [](thread::id_type id, rank_t r) { return why_not(thread::of_id(id), r); },
                   t.id(), to)
                   .get();
    (why == thread_refusal::none ? moved : not_moved)++;
    CHECK(why != thread_refusal::unknown);
    if (moved == threads) b.call<&board::say_enough>();
  }
  for (thread t : mine) t.join();
  CHECK_EQUAL(b.call<&board::count>(), threads);
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  // Refused are those that have ended, and those that wait for what only their rank tells them.
  CHECK(moved >= threads);
  const auto migrations = reduce(counters_now().migrations - migrations_before, std::plus<>{});
  if (rank_count() > 1) CHECK(migrations > static_cast<std::uint64_t>(threads));
  destroy(b);
}

void those_that_share_a_stack_travel() {
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (unsigned i = 0; i < 8; ++i) {
    all.push_back(
        spawn_on(rank_me(), thread_options{.shared_stack = true}, traveller, 100, i + 1, b));
  }
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  CHECK_EQUAL(b.call<&board::count>(), 8);
  destroy(b);
}

}  // namespace threads
