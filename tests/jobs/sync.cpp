// SPDX-License-Identifier: Apache-2.0
// Mutexes, condition variables, semaphores and latches: between the fibers of each rank, and with
// activations that migrate.
#include <array>
#include <chrono>
#include <deque>
#include <mutex>
#include <random>
#include <vector>

#include "check.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

void yields(int n) {
  for (int i = 0; i < n; ++i) yield();
}

void (*body_of_fibers)(int);
int begun = 0;
/// Runs fn(i) in `count` fibers of this rank, begun in this order. Returns when each has begun: has
/// run until it first waited.
std::vector<future<void>> fibers(int count, void (*fn)(int)) {
  body_of_fibers = fn;
  begun = 0;
  std::vector<future<void>> all;
  for (int i = 0; i < count; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](int n) {
          ++begun;
          body_of_fibers(n);
        },
        i));
  }
  while (begun < count) yield();
  return all;
}
void join(std::vector<future<void>> all) {
  for (auto& f : all) f.get();
}

// A rank's own: each rank has another.
constinit mutex guard;
constinit condition_variable changed;
int inside = 0;
long total = 0;
std::vector<int> order;

void a_mutex_excludes() {
  total = 0;
  join(fibers(50, [](int i) {
    for (int n = 0; n < 20; ++n) {
      std::lock_guard lock(guard);
      CHECK_EQUAL(++inside, 1);
      long before = total;
      yields((i + n) % 4);
      total = before + 1;
      --inside;
    }
  }));
  CHECK_EQUAL(total, 1000);
  CHECK(guard.try_lock());
  CHECK(!guard.try_lock());
  guard.unlock();
}

void waiters_are_served_in_order() {
  order.clear();
  guard.lock();
  auto all = fibers(40, [](int i) {
    std::lock_guard lock(guard);
    order.push_back(i);
    yields(i % 3);
  });
  // All wait now; who comes later is last.
  guard.unlock();
  CHECK(!guard.try_lock());
  guard.lock();
  CHECK_EQUAL(order.size(), 40);
  guard.unlock();
  join(std::move(all));
  for (int i = 0; i < 40; ++i) CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
}

void several_are_unlocked_in_any_order() {
  mutex a, b, c;
  std::array<mutex*, 3> all{&a, &b, &c};
  int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (auto& unlock_order : orders) {
    for (mutex* m : all) m->lock();
    for (int i : unlock_order) all[static_cast<std::size_t>(i)]->unlock();
    for (mutex* m : all) {
      CHECK(m->try_lock());
      m->unlock();
    }
  }
  {
    std::scoped_lock both(a, b, c);
    CHECK(!b.try_lock());
  }
  std::unique_lock first(a);
  std::unique_lock second(b, std::try_to_lock);
  CHECK(second.owns_lock());
  first.unlock();
  first.lock();
}

// What each fiber holds and who waits, as it must be.
constexpr std::size_t mutexes = 4;
struct model {
  int holder = -1;
  std::deque<int> waiting;
};
std::array<model, mutexes> expected;
std::array<mutex, mutexes> random_mutexes;

void lock_as_expected(int me, std::size_t i) {
  model& m = expected[i];
  bool waits = m.holder >= 0;
  if (waits) m.waiting.push_back(me);
  random_mutexes[i].lock();
  if (waits) {
    // Whoever unlocked it made this fiber its holder.
    CHECK_EQUAL(m.holder, me);
  } else {
    CHECK_EQUAL(m.holder, -1);
    m.holder = me;
  }
}
void unlock_as_expected(int me, std::size_t i) {
  model& m = expected[i];
  CHECK_EQUAL(m.holder, me);
  m.holder = -1;
  if (!m.waiting.empty()) {
    m.holder = m.waiting.front();
    m.waiting.pop_front();
  }
  random_mutexes[i].unlock();
}

void random_operations_are_those_of_a_model() {
  join(fibers(30, [](int me) {
    std::minstd_rand random(static_cast<unsigned>(me * 100 + rank_me() + 1));
    for (int n = 0; n < 100; ++n) {
      // In one order, so that there is no circle; unlocked in any.
      std::vector<std::size_t> held;
      for (std::size_t i = 0; i < mutexes; ++i) {
        unsigned what = random() % 4;
        if (what == 0) {
          lock_as_expected(me, i);
          held.push_back(i);
        } else if (what == 1) {
          bool free = expected[i].holder < 0;
          CHECK_EQUAL(random_mutexes[i].try_lock(), free);
          if (!free) continue;
          expected[i].holder = me;
          held.push_back(i);
        }
        if (random() % 2 == 0) yield();
        if (random() % 50 == 0) sleep_for(50us);
      }
      while (!held.empty()) {
        auto at = held.begin() + static_cast<std::ptrdiff_t>(random() % held.size());
        unlock_as_expected(me, *at);
        held.erase(at);
        if (random() % 2 == 0) yield();
      }
    }
  }));
  for (model& m : expected) CHECK(m.holder == -1 && m.waiting.empty());
}

std::deque<int> buffer;
constexpr std::size_t buffer_max = 3;
constinit condition_variable room;
long received = 0;

void producers_and_consumers_agree() {
  received = 0;
  auto producers = fibers(5, [](int p) {
    for (int i = 0; i < 100; ++i) {
      std::unique_lock lock(guard);
      room.wait(lock, [] { return buffer.size() < buffer_max; });
      buffer.push_back(p * 100 + i);
      CHECK(buffer.size() <= buffer_max);
      changed.notify_one();
    }
  });
  auto consumers = fibers(10, [](int c) {
    for (int i = 0; i < 50; ++i) {
      std::unique_lock lock(guard);
      if (c % 2 == 0) {
        changed.wait(lock, [] { return !buffer.empty(); });
      } else {
        CHECK(changed.wait_for(lock, 100s, [] { return !buffer.empty(); }));
      }
      received += buffer.front();
      buffer.pop_front();
      if (i % 7 == 0) yield();
      room.notify_one();
    }
  });
  join(std::move(producers));
  join(std::move(consumers));
  CHECK_EQUAL(received, 500L * 499 / 2);
}

void notifications_are_served_in_order() {
  order.clear();
  auto all = fibers(20, [](int i) {
    std::unique_lock lock(guard);
    changed.wait(lock);
    order.push_back(i);
  });
  changed.notify_one();
  changed.notify_one();
  yields(10);
  CHECK_EQUAL(order.size(), 2);
  changed.notify_all();
  changed.notify_all();
  join(std::move(all));
  for (int i = 0; i < 20; ++i) CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
}

void waits_end_at_their_time() {
  std::unique_lock lock(guard);
  auto began = now_ns();
  CHECK(changed.wait_for(lock, 5ms) == std::cv_status::timeout);
  CHECK(now_ns() - began >= 5'000'000);
  CHECK(lock.owns_lock());
  CHECK(!guard.try_lock());
  CHECK(changed.wait_until(lock, std::chrono::steady_clock::now() - 1s) == std::cv_status::timeout);
  CHECK(!changed.wait_for(lock, 1ms, [] { return false; }));
  CHECK(changed.wait_for(lock, 0s, [] { return true; }));
  lock.unlock();

  // Some of a queue leave it, from its middle and its ends; the others are notified.
  order.clear();
  inside = 0;
  auto all = fibers(30, [](int i) {
    std::unique_lock mine(guard);
    ++inside;
    bool notified;
    if (i % 3 == 0) {
      notified = changed.wait_for(mine, std::chrono::milliseconds(1 + (30 - i))) ==
                 std::cv_status::no_timeout;
    } else if (i % 3 == 1) {
      notified = changed.wait_for(mine, 1000h) == std::cv_status::no_timeout;
    } else {
      changed.wait(mine);
      notified = true;
    }
    CHECK_EQUAL(notified, i % 3 != 0);
    if (notified) order.push_back(i);
  });
  CHECK_EQUAL(inside, 30);
  inside = 0;
  sleep_for(200ms);
  CHECK(order.empty());
  changed.notify_all();
  join(std::move(all));
  std::vector<int> those_left;
  for (int i = 0; i < 30; ++i) {
    if (i % 3 != 0) those_left.push_back(i);
  }
  CHECK(order == those_left);
}

constinit semaphore places(3);
void a_semaphore_counts() {
  int most = 0;
  static int* most_inside;
  most_inside = &most;
  join(fibers(40, [](int i) {
    places.acquire();
    *most_inside = std::max(*most_inside, ++inside);
    while (begun < 40) yield();
    yields(1 + i % 5);
    --inside;
    places.release();
  }));
  CHECK_EQUAL(most, 3);

  for (int i = 0; i < 3; ++i) CHECK(places.try_acquire());
  CHECK(!places.try_acquire());
  order.clear();
  auto all = fibers(10, [](int i) {
    places.acquire();
    order.push_back(i);
  });
  // From a fiber that has taken none; more than wait at the end.
  rpc(rank_me(), [] { places.release(4); }).get();
  yields(10);
  CHECK_EQUAL(order.size(), 4);
  places.release(0);
  places.release(9);
  join(std::move(all));
  for (int i = 0; i < 10; ++i) CHECK_EQUAL(order[static_cast<std::size_t>(i)], i);
  for (int i = 0; i < 3; ++i) CHECK(places.try_acquire());
  CHECK(!places.try_acquire());
  places.release(3);
}

latch* gate;
void a_latch_opens_once() {
  latch all_here(10);
  gate = &all_here;
  inside = 0;
  auto all = fibers(9, [](int i) {
    yields(i);
    ++inside;
    gate->arrive_and_wait();
    CHECK_EQUAL(inside, 9);
  });
  while (inside < 9) yield();
  CHECK(!all_here.try_wait());
  all_here.count_down();
  CHECK(all_here.try_wait());
  all_here.wait();
  join(std::move(all));
  inside = 0;
  latch none(0);
  none.wait();
}

void misuse_is_an_error() {
  mutex m;
  m.lock();
  CHECK_THROWS(error, m.lock());
  CHECK_THROWS(error, activate([&m] { m.lock(); }));
  m.unlock();
  CHECK_THROWS(error, m.unlock());
  guard.lock();
  auto other = rpc(rank_me(), [] {
    yield();
    CHECK_THROWS(error, guard.unlock());
  });
  other.get();
  guard.unlock();
  std::unique_lock lock(guard);
  lock.unlock();
  CHECK_THROWS(error, changed.wait(lock));
  CHECK_THROWS(error, semaphore(-1));
  CHECK_THROWS(error, latch(-1));
  CHECK_THROWS(error, places.release(-1));
  latch two(2);
  CHECK_THROWS(error, two.count_down(3));
  CHECK_THROWS(error, two.count_down(-1));
  two.count_down(2);
}

// Migration. There is nowhere to go on one rank.

bool tries_to_move() { return migrate_to(next()); }

bool moves_when_it_has_unlocked() {
  guard.lock();
  bool refused = !tries_to_move();
  guard.unlock();
  rank_t before = rank_me();
  bool moved = tries_to_move();
  // That rank's own, which others may hold there.
  std::lock_guard there(guard);
  return refused && moved && rank_me() != before;
}

bool holds_one_of_two() {
  mutex other;
  guard.lock();
  other.lock();
  guard.unlock();
  bool refused = !tries_to_move();
  other.unlock();
  return refused && tries_to_move();
}

/// Locks by functions that have returned when it moves.
[[gnu::noinline]] std::unique_lock<mutex> locks() { return std::unique_lock(guard); }
bool holds_what_a_function_locked() {
  auto lock = locks();
  bool refused = !tries_to_move();
  bool inner_moved = activate([] {
    rank_t before = rank_me();
    return migrate_to((before + 1) % rank_count()) && rank_me() != before;
  });
  return refused && inner_moved;
}

bool both_would_move() {
  std::lock_guard lock(guard);
  return activate(
      [] { return !migrate_to(next(), via::migrate.activations(2)) && tries_to_move(); });
}

bool asks_for_the_mutex = false;
bool was_handed_a_mutex() {
  asks_for_the_mutex = true;
  guard.lock();  // held by main, which unlocks it meanwhile
  bool refused = !tries_to_move();
  guard.unlock();
  return refused && tries_to_move();
}

bool waited_in_a_condition_variable() {
  std::unique_lock lock(guard);
  bool stayed = activate([&lock] {
    changed.wait(lock);
    return true;
  });
  bool refused = !tries_to_move();
  bool inner = activate([] { return tries_to_move(); });
  lock.unlock();
  return stayed && refused && inner && tries_to_move();
}

void frames_that_hold_a_mutex_stay() {
  if (rank_count() == 1) return;
  CHECK(activate(moves_when_it_has_unlocked));
  CHECK(activate(holds_one_of_two));
  CHECK(activate(holds_what_a_function_locked));
  CHECK(activate(both_would_move));

  guard.lock();
  asks_for_the_mutex = false;
  auto handed = rpc(rank_me(), was_handed_a_mutex);
  while (!asks_for_the_mutex) yield();
  guard.unlock();
  CHECK(handed.get());

  auto waited = rpc(rank_me(), waited_in_a_condition_variable);
  while (!waited.ready()) {
    changed.notify_all();
    yield();
  }
  CHECK(waited.get());
}

void older_frames_may_hold_a_mutex() {
  if (rank_count() == 1) return;
  // Main's, whose activation leaves and comes back with its result.
  std::lock_guard lock(guard);
  for (int i = 0; i < 10; ++i) {
    CHECK(activate([] {
      rank_t home = rank_me();
      bool moved = migrate_to((home + 1) % rank_count());
      // That rank's own.
      std::lock_guard there(random_mutexes[0]);
      return moved && rank_me() != home;
    }));
  }
  CHECK(!guard.try_lock());
}

struct account {
  mutex own;
  latch opened{1};
  long sum = 0;

  long add(long n) {
    std::lock_guard lock(own);
    yields(2);
    return sum += n;
  }
  long wait_then_add(long n) {
    opened.wait();
    return add(n);
  }
};

void a_fork_that_waits_lets_its_caller_go_on() {
  auto mine = make<account>(rank_me());
  account* here = mine.local();
  here->own.lock();
  // Held by this fiber, which is the older side and goes on.
  auto first = mine.async<&account::add>(via::rpc, 1L);
  auto second = mine.async<&account::wait_then_add>(via::rpc, 10L);
  auto third = mine.async<&account::add>(via::rpc, 100L);
  yields(5);
  CHECK_EQUAL(here->sum, 0);
  CHECK(!first.ready());
  here->own.unlock();
  CHECK_EQUAL(first.get(), 1);
  CHECK_EQUAL(third.get(), 101);
  here->opened.count_down();
  CHECK_EQUAL(second.get(), 111);
  // Cut in two, each side holds what it has locked.
  std::unique_lock older(guard);
  auto fourth = mine.async<&account::add>(via::rpc, 1000L);
  CHECK(!here->own.try_lock());
  CHECK_THROWS(error, here->own.unlock());
  CHECK_THROWS(error, guard.lock());
  older.unlock();
  CHECK_EQUAL(fourth.get(), 1111);
  destroy(mine);
}

void members_of_global_objects_serve_all_ranks() {
  auto theirs = broadcast(make<account>(0));
  std::vector<future<long>> all;
  for (int i = 0; i < 20; ++i) all.push_back(theirs.async<&account::add>(via::rpc, 1L));
  for (auto& f : all) f.get();
  barrier();
  if (rank_me() == 0) {
    CHECK_EQUAL(theirs.local()->sum, 20L * rank_count());
    destroy(theirs);
  }
}

/// Threads that share a stack, so that all but one of them are images, each with what it waits for
/// in frames of its own.
void waits_in_own_frames_end_while_those_are_images() {
  static int timed_out;
  timed_out = 0;
  std::vector<thread> all;
  for (int i = 0; i < 8; ++i) {
    all.push_back(spawn(
        thread_options{.shared_stack = true},
        [](int n) {
          mutex mine;
          condition_variable never;
          std::unique_lock lock(mine);
          auto span = std::chrono::milliseconds(5 + 3 * n);
          timed_out += never.wait_for(lock, span) == std::cv_status::timeout;
        },
        i));
  }
  for (thread t : all) t.join();
  CHECK_EQUAL(timed_out, 8);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a mutex excludes", a_mutex_excludes);
    check::claim("waiters are served in order", waiters_are_served_in_order);
    check::claim("several are unlocked in any order", several_are_unlocked_in_any_order);
    check::claim("random operations are those of a model", random_operations_are_those_of_a_model);
    check::claim("producers and consumers agree", producers_and_consumers_agree);
    check::claim("notifications are served in order", notifications_are_served_in_order);
    check::claim("waits end at their time", waits_end_at_their_time);
    check::claim("a semaphore counts", a_semaphore_counts);
    check::claim("a latch opens once", a_latch_opens_once);
    check::claim("misuse is an error", misuse_is_an_error);
    check::claim("frames that hold a mutex stay", frames_that_hold_a_mutex_stay);
    check::claim("older frames may hold a mutex", older_frames_may_hold_a_mutex);
    check::claim("a fork that waits lets its caller go on",
                 a_fork_that_waits_lets_its_caller_go_on);
    check::claim("members of global objects serve all ranks",
                 members_of_global_objects_serve_all_ranks);
    check::claim("waits in own frames end while those are images",
                 waits_in_own_frames_end_while_those_are_images);
    return check::verdict();
  });
}
