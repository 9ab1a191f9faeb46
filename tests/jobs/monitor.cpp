// SPDX-License-Identifier: Apache-2.0
// monitor: methods of an object run one at a time, whoever calls them and however they wait.
#include <functional>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

/// Loses additions when two methods run at a time.
struct sum {
  long value = 0;
  int inside = 0;
  int most_inside = 0;
  std::vector<int> order;

  void add(long more) {
    most_inside = std::max(most_inside, ++inside);
    const long was = value;
    for (int i = 0; i < 3; ++i) yield();
    value = was + more;
    --inside;
  }
  long get() const { return value; }
  int most() const { return most_inside; }
  void note(const std::vector<int>& numbers) {
    for (int n : numbers) {
      order.push_back(n);
      yield();
    }
  }
  std::vector<int> noted() const { return order; }
  /// Calls itself by way of the runtime.
  long twice(global_ptr<sum> self) { return 2 * self.call<&sum::get>(); }
};
struct exclusive_sum : sum, monitor {
  void add(long more) { sum::add(more); }
  void fail() {
    yield();
    throw std::runtime_error("failed inside");
  }
  long twice(global_ptr<exclusive_sum> self) { return 2 * self.call<&exclusive_sum::get>(); }
  /// Waits for another rank's call of another object.
  long of_other(global_ptr<exclusive_sum> other) { return other.call<&exclusive_sum::get>(); }
};

template <class T>
global_ptr<T> of_rank_0() {
  global_ptr<T> p;
  if (rank_me() == 0) p = make<T>(0);
  return broadcast(p);
}

void methods_of_one_object_run_one_at_a_time() {
  auto p = of_rank_0<exclusive_sum>();
  for (int i = 0; i < 20; ++i) p.call<&exclusive_sum::add>(1);
  std::vector<future<void>> all;
  for (int i = 0; i < 20; ++i) all.push_back(p.async<&exclusive_sum::add>(1));
  for (auto& f : all) f.get();
  barrier();
  CHECK_EQUAL(p.call<&exclusive_sum::get>(), 40L * rank_count());
  CHECK_EQUAL(p.call<&exclusive_sum::most>(), 1);
  barrier();
}

/// That it is the monitor which does it.
void without_a_monitor_they_do_not() {
  auto p = of_rank_0<sum>();
  std::vector<future<void>> all;
  for (int i = 0; i < 20; ++i) all.push_back(p.async<&sum::add>(1));
  for (auto& f : all) f.get();
  barrier();
  CHECK(p.call<&sum::most>() > 1);
  CHECK(p.call<&sum::get>() < 20L * rank_count());
  barrier();
}

void arguments_that_own_memory_wait_their_turn() {
  auto p = of_rank_0<exclusive_sum>();
  const int me = rank_me();
  std::vector<future<void>> all;
  for (int i = 0; i < 5; ++i) all.push_back(p.async<&exclusive_sum::note>(std::vector<int>(7, me)));
  for (auto& f : all) f.get();
  barrier();
  const std::vector<int> noted = p.call<&exclusive_sum::noted>();
  CHECK_EQUAL(noted.size(), 35u * static_cast<unsigned>(rank_count()));
  for (std::size_t i = 0; i < noted.size(); ++i) CHECK_EQUAL(noted[i], noted[i / 7 * 7]);
  barrier();
}

void a_method_that_throws_gives_its_turn_back() {
  auto p = make<exclusive_sum>(next());
  for (int i = 0; i < 3; ++i) CHECK_THROWS(std::runtime_error, p.call<&exclusive_sum::fail>());
  p.call<&exclusive_sum::add>(3);
  CHECK_EQUAL(p.call<&exclusive_sum::get>(), 3);
  destroy(p);
}

void a_method_that_calls_its_own_object_is_refused() {
  auto p = make<exclusive_sum>(next());
  CHECK_THROWS(error, p.call<&exclusive_sum::twice>(p));
  CHECK_EQUAL(p.call<&exclusive_sum::get>(), 0);
  destroy(p);
}

/// Knows of no lock.
struct list {
  std::vector<long> values;

  void add(long v) {
    const std::size_t at = values.size();
    yield();
    values.insert(values.begin() + static_cast<std::ptrdiff_t>(at), v);
  }
  long count() const { return static_cast<long>(values.size()); }
  long add_several(global_ptr<exclusive<list>> self, int n);
  long add_by_another(global_ptr<exclusive<list>> self, global_ptr<exclusive<list>> other, int n) {
    return other.call<&list::add_several>(self, n);
  }
};
long list::add_several(global_ptr<exclusive<list>> self, int n) {
  for (long i = 0; i < n; ++i) self.call<&list::add>(i);
  return self.call<&list::count>();
}

void an_exclusive_object_calls_itself() {
  auto p = make<exclusive<list>>(rank_me());
  auto q = make<exclusive<list>>(rank_me());
  // Others at the same time, from every rank.
  barrier();
  std::vector<future<long>> all;
  for (int i = 0; i < 10; ++i) all.push_back(p.async<&list::add_several>(p, 5));
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK_EQUAL(all[i].get(), static_cast<long>(i + 1) * 5);
  }
  // By way of another object, on the same stack.
  CHECK_EQUAL(p.call<&list::add_by_another>(p, q, 3), 53);
  CHECK_EQUAL(q.call<&list::count>(), 0);
  auto there = make<exclusive<list>>(next(), list{{1, 2}});
  CHECK_EQUAL(there.call<&list::add_several>(there, 4), 6);
  destroy(there);
  destroy(q);
  destroy(p);
}

void different_objects_do_not_wait_for_each_other() {
  auto here = make<exclusive_sum>(rank_me());
  auto there = make<exclusive_sum>(next());
  there.call<&exclusive_sum::add>(5);
  CHECK_EQUAL(here.call<&exclusive_sum::of_other>(there), 5);
  CHECK_EQUAL(there.call<&exclusive_sum::of_other>(here), 0);
  destroy(here);
  destroy(there);
}

void a_method_that_does_not_wait_costs_no_fiber() {
  auto p = make<exclusive_sum>(next());
  (void)p.call<&exclusive_sum::get>();
  barrier();
  const counters before = counters_now();
  for (int i = 0; i < 100; ++i) (void)p.call<&exclusive_sum::get>();
  barrier();
  CHECK_EQUAL((counters_now() - before).fibers_made, 0);
  barrier();
  destroy(p);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("methods of one object run one at a time",
                 methods_of_one_object_run_one_at_a_time);
    check::claim("without a monitor they do not", without_a_monitor_they_do_not);
    check::claim("arguments that own memory wait their turn",
                 arguments_that_own_memory_wait_their_turn);
    check::claim("a method that throws gives its turn back",
                 a_method_that_throws_gives_its_turn_back);
    check::claim("a method that calls its own object is refused",
                 a_method_that_calls_its_own_object_is_refused);
    check::claim("an exclusive object calls itself", an_exclusive_object_calls_itself);
    check::claim("different objects do not wait for each other",
                 different_objects_do_not_wait_for_each_other);
    check::claim("a method that does not wait costs no fiber",
                 a_method_that_does_not_wait_costs_no_fiber);
    return check::verdict();
  });
}
