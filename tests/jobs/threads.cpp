// SPDX-License-Identifier: Apache-2.0
// Threads: names good everywhere, moved by themselves and by others, at any time.
#include <unistd.h>

#include <array>
#include <cfenv>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <memory_resource>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "fiber/ticket_table.hpp"

using namespace sojourn;

namespace {

rank_t last() { return rank_count() - 1; }
rank_t next() { return (rank_me() + 1) % rank_count(); }

/// What threads leave behind; on one rank, reached by rpc.
struct board {
  std::vector<long> notes;
  bool enough = false;
  void say_enough() { enough = true; }
  bool is_enough() const { return enough; }
  void note(long value) { notes.push_back(value); }
  rank_t runs_on() const { return rank_me(); }
  long count() const { return static_cast<long>(notes.size()); }
  long sum() const {
    long s = 0;
    for (long n : notes) s += n;
    return s;
  }
};

/// A gate that fibers of any rank wait at: its answers come when it opens.
struct gate {
  bool open = false;
  void pass() const {
    while (!open) yield();
  }
  void let() { open = true; }
};

thread_refusal why_not(thread t, rank_t to) {
  try {
    migrate(t, to);
  } catch (const thread_error& e) {
    return e.why();
  }
  return thread_refusal::none;
}

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

void a_thread_visits_all_ranks_with_its_locals() {
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (unsigned i = 0; i < 4; ++i) all.push_back(spawn(traveller, 1000, i + 1, b));
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), 4);
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  destroy(b);
}

[[gnu::noinline]] void by_switch(int to) { detail::migrate_self_by_switch(to); }

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

/// Notes the rank it is on whenever it is let go on.
void waits_at(global_ptr<gate> first, global_ptr<gate> second, global_ptr<board> to) {
  first.call<&gate::pass>();
  to.call<&board::note>(rank_me());
  second.call<&gate::pass>();
  to.call<&board::note>(rank_me());
}

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

/// Containers of its own heap, and large frames, on a random way.
void carrier(int visits, unsigned seed, global_ptr<board> to) {
  std::minstd_rand random(seed);
  std::pmr::vector<long> numbers(thread_heap());
  std::pmr::map<int, std::pmr::string> names(thread_heap());
  std::pmr::string text("a string that is too long to lie in the frame", thread_heap());
  volatile char large[60000];
  long wrong = 0;
  for (int i = 0; i < visits; ++i) {
    large[i * 37 % sizeof large] = static_cast<char>(i);
    numbers.push_back(i);
    names[i % 50] = "name of number " + std::to_string(i);
    if (i % 3 == 0) names.erase(i % 17);
    auto there = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
    migrate(self(), there);
    wrong += rank_me() != there;
    wrong += large[i * 37 % sizeof large] != static_cast<char>(i);
    wrong += numbers.size() != static_cast<std::size_t>(i) + 1 || numbers.back() != i;
    wrong += text != "a string that is too long to lie in the frame";
    wrong += names.count(i % 50) == 1 &&
             names[i % 50] != std::string_view("name of number " + std::to_string(i));
  }
  for (int i = 0; i < visits; ++i) wrong += numbers[static_cast<std::size_t>(i)] != i;
  to.call<&board::note>(wrong);
}

void heaps_and_large_frames_travel() {
  auto b = make<board>(rank_me());
  std::vector<thread> all;
  for (unsigned i = 0; i < 3; ++i) all.push_back(spawn(carrier, sanitized ? 60 : 200, i + 1, b));
  for (thread t : all) t.join();
  CHECK_EQUAL(b.call<&board::count>(), 3);
  CHECK_EQUAL(b.call<&board::sum>(), 0);
  CHECK_THROWS(error, thread_heap());
  destroy(b);
}

/// What two threads and three ranks tell each other while one of the ranks looks at no messages.
using stage = global_ptr<global_atomic<int>>;

bool is_at(stage s, int least) { return atomic_load(s) >= least; }
void wait_in_the_dispatcher(stage s, int least) {
  while (!is_at(s, least)) yield();
}
void wait_deaf(stage s, int least) {
  while (!is_at(s, least)) usleep(200);
}

constexpr std::size_t block_bytes = 2u << 20;  // left memory of this length is given back at once

/// Its heap is of rank 2; it ends there.
void is_read_late(stage s) {
  std::pmr::vector<char> block(block_bytes, 'a', thread_heap());
  migrate(self(), 0);
  wait_in_the_dispatcher(s, 1);
  atomic_store(s, 2);
  migrate(self(), 1);
  migrate(self(), 2);
}
/// It comes to rank 0 in the place of that, and stays until rank 0 has heard what became of it.
void comes_in_its_place(stage s) {
  std::pmr::vector<char> block(block_bytes, 'b', thread_heap());
  atomic_store(s, 5);
  migrate(self(), 0);
  wait_in_the_dispatcher(s, 7);
  bool whole = true;
  for (char c : block) whole = whole && c == 'b';
  atomic_store(s, whole ? 8 : 9);
}

/// That a heap has been read, its sender hears behind whatever else that rank had to answer. By
/// then the extents may be another thread's, which is here.
void a_heap_may_come_where_another_was_read() {
  const char* share = std::getenv("SOJOURN_SHARE");
  const bool shared = share == nullptr || std::strcmp(share, "off") != 0;
  if (rank_count() < 3 || !shared || !check::system_copies()) return;
  const auto s = broadcast(rank_me() == 0 ? make<global_atomic<int>>(0, 0) : stage(), 0);
  auto nothing = [] {};
  if (rank_me() == 0) {
    std::vector<future<void>> asked;
    // More than are delivered before another rank's requests have a turn.
    for (int i = 0; i < 100; ++i) asked.push_back(rpc(1, nothing));
    atomic_store(s, 1);
    wait_in_the_dispatcher(s, 2);  // the thread has left
    atomic_store(s, 3);
    wait_deaf(s, 6);
    for (auto& a : asked) a.get();
    rpc(1, nothing).get();  // behind the word that the heap was read
    atomic_store(s, 7);
    wait_in_the_dispatcher(s, 8);
    CHECK_EQUAL(atomic_load(s), 8);
  } else if (rank_me() == 1) {
    wait_deaf(s, 3);
  } else if (rank_me() == 2) {
    spawn(is_read_late, s).join();
    thread second = spawn(comes_in_its_place, s);
    wait_in_the_dispatcher(s, 5);  // it has left
    atomic_store(s, 6);
    second.join();
  }
  barrier();
  if (rank_me() == 0) destroy(s);
}

template <std::size_t Bytes>
[[gnu::noinline]] void carry_once(global_ptr<board> to) {
  volatile char frame[Bytes];
  asm volatile("" : : "r"(frame) : "memory");  // all of it, though two bytes are used
  frame[0] = 7;
  frame[Bytes - 1] = 7;
  migrate(self(), next());
  to.call<&board::note>(frame[0] + frame[Bytes - 1]);
}

/// Bytes copied, over bytes of stack that moved, in all ranks together.
template <std::size_t Bytes>
double copies_of_a_move() {
  counters before = counters_now();
  barrier();  // whoever leaves it may begin at once
  auto b = make<board>(rank_me());
  if (rank_me() == 0) spawn(carry_once<Bytes>, b).join();
  barrier();
  auto moved = reduce(counters_now() - before, std::plus<>{});
  destroy(b);
  return static_cast<double>(moved.migration_copies) / static_cast<double>(moved.migration_bytes);
}

void bytes_are_copied_once_or_twice() {
  if (rank_count() < 2 || sanitized) return;
  // From the stack into the transport, and from there into place.
  double small = copies_of_a_move<4096>();
  CHECK(small > 1.9 && small <= 2);
  // Read from the suspended stack into place, where the system allows it.
  double large = copies_of_a_move<100000>();
  bool reads = check::system_copies();
  CHECK(reads ? large > 0.98 && large <= 1 : large > 1.9 && large <= 2);
}

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

long resident_kib() {
  long all = 0, resident = 0;
  std::FILE* f = std::fopen("/proc/self/statm", "re");
  CHECK(f != nullptr && std::fscanf(f, "%ld %ld", &all, &resident) == 2);
  std::fclose(f);
  return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/// Their tokens still say what they came to, on both ranks, and that takes a bit or two.
void stop_sources_leave_no_memory_behind() {
  if (rank_me() != 0) return;
  stop_token first, last_one;
  const auto see = [](int count) {
    for (int i = 0; i < count; ++i) {
      stop_source source;
      CHECK(!rpc(next(), [](stop_token t) { return t.stop_requested(); }, source.token()).get());
      if (i % 2 == 0) source.request_stop();
    }
  };
  const bool slow = sanitized || check::messages_are_delayed();
  see(slow ? 50 : 1000);
  const auto resident_there = [] { return rpc(next(), resident_kib).get(); };
  const long here = resident_kib();
  const long there = resident_there();
  {
    stop_source one, other;
    first = one.token();
    last_one = other.token();
    for (stop_token t : {first, last_one}) {
      CHECK(rpc(next(), [](stop_token u) { return u.stop_possible(); }, t).get());
    }
    one.request_stop();
  }
  see(slow ? 100 : 40'000);
  CHECK(slow || resident_kib() - here < 1500);
  CHECK(slow || resident_there() - there < 1500);
  for (rank_t r : {rank_me(), next()}) {
    CHECK(rpc(r, [](stop_token t) { return t.wait() && t.stop_requested(); }, first).get());
    CHECK(!rpc(r, [](stop_token t) { return t.wait() || t.stop_possible(); }, last_one).get());
  }
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

/// Threads in one stretch of addresses: each has its frames when it runs, in the order of waking.
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
