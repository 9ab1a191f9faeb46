// SPDX-License-Identifier: Apache-2.0
// via::cache: const methods run on copies that are as the object is, whatever else happens to it.
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

struct pair_of_counts {
  long first = 0;
  long second = 0;
  global_ptr<pair_of_counts> self;
  bool is_open = false;

  void set_self(global_ptr<pair_of_counts> p) { self = p; }
  void add(long n) {
    first += n;
    second += n;
  }
  /// Suspends in the middle of the change.
  void add_slowly(long n) {
    first += n;
    yield();
    second += n;
  }
  void open() { is_open = true; }
  void close() { is_open = false; }

  long sum() const { return first + second; }
  long difference() const { return first - second; }
  long first_count() const { return first; }
  bool knows_itself() const { return global_ptr<const pair_of_counts>(this) == self; }
  /// Suspends until another call has changed the object.
  long wait_until_open() const {
    while (!is_open) yield();
    return first;
  }
  /// Reads twice, and lets other fibers run in between.
  bool never_goes_back() const {
    const long before = first;
    yield();
    return first >= before;
  }
};

rank_t last() { return rank_count() - 1; }

/// An object on the last rank, which all ranks know.
global_ptr<pair_of_counts> shared_object() {
  global_ptr<pair_of_counts> p;
  if (rank_me() == 0) {
    p = make<pair_of_counts>(last());
    p.call<&pair_of_counts::set_self>(p);
  }
  return broadcast(p, 0);
}
void destroy_shared(global_ptr<pair_of_counts> p) {
  barrier();
  if (rank_me() == 0) destroy(p);
  barrier();
}

void a_copy_that_is_here_costs_no_message() {
  auto p = shared_object();
  p.call<&pair_of_counts::sum>(via::cache);
  p.call<&pair_of_counts::sum>(via::cache);  // in checked mode, the first call runs at the owner
  const counters before = counters_now();
  for (int i = 0; i < 1000; ++i) CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), 0);
  const counters used = counters_now() - before;
  if (rank_me() != last()) {
    CHECK_EQUAL(used.messages(), 0);
    CHECK_EQUAL(used.cache_hits, 1000);
  }
  destroy_shared(p);
}

void a_read_after_a_write_sees_it() {
  auto p = shared_object();
  long expected = 0;
  for (int round = 0; round < 50; ++round) {
    const rank_t writer = round % rank_count();
    if (rank_me() == writer) p.call<&pair_of_counts::add>(via::cache, round);
    expected += 2 * round;
    barrier();
    CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), expected);
    CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), expected);
    barrier();
  }
  destroy_shared(p);
}

void the_writer_sees_its_own_writes_and_reads_never_go_back() {
  auto p = shared_object();
  long mine = 0;
  long latest = 0;
  for (int i = 0; i < 300; ++i) {
    if (i % 7 == rank_me() % 7) {
      p.call<&pair_of_counts::add>(i % 2 == 0 ? via::rpc : via::migrate, 1);
      ++mine;
    }
    const long seen = p.call<&pair_of_counts::first_count>(via::cache);
    CHECK(seen >= mine);
    CHECK(seen >= latest);
    latest = seen;
  }
  barrier();
  CHECK_EQUAL(p.call<&pair_of_counts::first_count>(via::cache), reduce(mine, std::plus<>{}));
  destroy_shared(p);
}

void nobody_copies_an_object_in_the_middle_of_a_change() {
  auto p = shared_object();
  for (int i = 0; i < 100; ++i) {
    if (rank_me() == 0) p.call<&pair_of_counts::add_slowly>(1);
    // As an rpc, which may run in the middle, it may be anything between 0 and 1.
    const long difference = p.call<&pair_of_counts::difference>(via::cache);
    CHECK(difference >= 0 && difference <= rank_count());
  }
  barrier();
  CHECK_EQUAL(p.call<&pair_of_counts::difference>(via::cache), 0);
  destroy_shared(p);
}

void a_change_by_the_owner_itself_is_seen() {
  auto p = shared_object();
  for (int i = 1; i <= 50; ++i) {
    CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), 2 * (i - 1));
    barrier();
    if (rank_me() == last()) {
      if (i % 2 == 0) {
        p.call<&pair_of_counts::add>(1);
      } else {
        p.async<&pair_of_counts::add>(1).get();
      }
    }
    barrier();
  }
  destroy_shared(p);
}

void this_of_a_copy_is_the_object() {
  auto p = shared_object();
  CHECK(p.call<&pair_of_counts::knows_itself>(via::cache));
  CHECK(p.call<&pair_of_counts::knows_itself>(via::cache));
  destroy_shared(p);
}

void a_method_that_waits_on_a_copy_sees_what_comes() {
  auto p = shared_object();
  p.call<&pair_of_counts::sum>(via::cache);
  barrier();
  auto opened = rank_me() == 0 ? rpc(
                                     0,
                                     [](global_ptr<pair_of_counts> q) {
                                       for (int i = 0; i < 20; ++i) yield();
                                       q.call<&pair_of_counts::add>(5);
                                       q.call<&pair_of_counts::open>();
                                     },
                                     p)
                               : rpc(0, [](global_ptr<pair_of_counts>) {}, p);
  CHECK_EQUAL(p.call<&pair_of_counts::wait_until_open>(via::cache), 5);
  opened.get();
  CHECK(p.call<&pair_of_counts::never_goes_back>(via::cache));
  destroy_shared(p);
}

void many_fibers_ask_for_one_copy() {
  auto p = shared_object();
  const counters before = counters_now();
  std::vector<future<long>> all;
  for (int i = 0; i < 50; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](global_ptr<pair_of_counts> q) { return q.call<&pair_of_counts::sum>(via::cache); }, p));
  }
  for (auto& f : all) CHECK_EQUAL(f.get(), 0);
  if (rank_me() != last() && !detail::checked())
    CHECK_EQUAL((counters_now() - before).requests_sent, 1);
  destroy_shared(p);
}

struct big {
  long values[1000] = {};
  long at(int i) const { return values[i]; }
  void set(int i, long v) { values[i] = v; }
};

void copies_make_room_for_others() {
  constexpr int count = 400;  // 3 MB, and the test gives copies 1 MB
  std::vector<global_ptr<big>> all(count);
  if (rank_me() == 0) {
    for (int i = 0; i < count; ++i) {
      all[static_cast<std::size_t>(i)] = make<big>(i % rank_count());
      all[static_cast<std::size_t>(i)].call<&big::set>(i, static_cast<long>(i));
    }
  }
  for (auto& p : all) p = broadcast(p, 0);
  const counters before = counters_now();
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count; ++i)
      CHECK_EQUAL(all[static_cast<std::size_t>(i)].call<&big::at>(via::cache, i), i);
  }
  if (rank_count() > 1) CHECK((counters_now() - before).copies_evicted > 0);
  barrier();
  if (rank_me() == 0) {
    for (auto p : all) destroy(p);
  }
  barrier();
}

/// Calls of all ranks at random, on objects of all ranks; each rank knows what it has added itself.
void random_calls_agree_with_sums() {
  constexpr int count = 12;
  std::vector<global_ptr<pair_of_counts>> all(count);
  for (int i = 0; i < count; ++i) {
    const rank_t where = i % rank_count();
    global_ptr<pair_of_counts> p;
    if (rank_me() == where) p = make<pair_of_counts>(where);
    all[static_cast<std::size_t>(i)] = broadcast(p, where);
  }
  const char* seed = std::getenv("SOJOURN_TEST_SEED");
  std::mt19937 random(
      (seed != nullptr ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 1u) * 31u +
      static_cast<unsigned>(rank_me()));
  std::vector<long> added(count);
  std::vector<long> seen(count);
  const via words[] = {via::rpc, via::migrate, via::cache};
  for (int i = 0; i < 1500; ++i) {
    const std::size_t which = random() % count;
    const via how = words[random() % 3];
    switch (random() % 6) {
      case 0:
        all[which].call<&pair_of_counts::add>(how, 1);
        ++added[which];
        break;
      case 1:
        all[which].call<&pair_of_counts::add_slowly>(how, 1);
        ++added[which];
        break;
      case 2:
        CHECK(all[which].call<&pair_of_counts::never_goes_back>(how));
        break;
      default: {
        const long now = all[which].call<&pair_of_counts::first_count>(how);
        CHECK(now >= added[which] && now >= seen[which]);
        seen[which] = now;
      }
    }
  }
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    const long total = reduce(added[i], std::plus<>{});
    CHECK_EQUAL(all[i].call<&pair_of_counts::first_count>(via::cache), total);
    CHECK_EQUAL(all[i].call<&pair_of_counts::difference>(via::cache), 0);
  }
  barrier();
  for (std::size_t i = 0; i < count; ++i) {
    if (rank_me() == static_cast<rank_t>(i) % rank_count()) destroy(all[i]);
  }
  barrier();
}

/// A member of another object, and what an object with a turn has in it, are changed with the
/// whole.
struct whole {
  long before = 0;
  pair_of_counts part;
  std::string text;  // so that the whole does not travel

  void add(long n) { part.add(n); }
  void add_slowly(long n) {
    part.first += n;
    yield();
    part.second += n;
  }
  global_ptr<pair_of_counts> part_of() { return global_ptr<pair_of_counts>(&part); }
};
void a_change_of_the_whole_takes_copies_of_its_part_back() {
  global_ptr<whole> all;
  if (rank_me() == 0) all = make<whole>(last());
  all = broadcast(all, 0);
  const auto part = all.call<&whole::part_of>();
  for (int i = 1; i <= 30; ++i) {
    CHECK_EQUAL(part.call<&pair_of_counts::sum>(via::cache), 2 * (i - 1));
    barrier();
    if (rank_me() == 0) {
      if (i % 2 == 0) {
        all.call<&whole::add>(1);
      } else {
        all.call<&whole::add_slowly>(1);
      }
    } else {
      const long difference = part.call<&pair_of_counts::difference>(via::cache);
      CHECK(difference == 0 || difference == 1);
    }
    barrier();
    CHECK_EQUAL(part.call<&pair_of_counts::difference>(via::cache), 0);
  }
  barrier();
  if (rank_me() == 0) destroy(all);
  barrier();
}

struct changed_by_view {
  long sum_of_all = 0;
  void add_all(view<long> values) {
    for (const long v : values) sum_of_all += v;
  }
  long sum() const { return sum_of_all; }
};
void a_change_that_cannot_wait_needs_not() {
  global_ptr<changed_by_view> p;
  if (rank_me() == 0) p = make<changed_by_view>(last());
  p = broadcast(p, 0);
  const std::vector<long> values{1, 2, 3};
  for (int i = 0; i < 10; ++i) {
    CHECK_EQUAL(p.call<&changed_by_view::sum>(via::cache), 6 * i);
    barrier();
    if (rank_me() == 0) p.call<&changed_by_view::add_all>(view(values));
    barrier();
  }
  if (rank_me() == 0) destroy(p);
  barrier();
}

/// Changes the object in the middle of a const method that runs on a copy of it.
struct own_changes {
  long n = 0;
  global_ptr<own_changes> self;
  void set_self(global_ptr<own_changes> p) { self = p; }
  void add() { ++n; }
  long add_twice_and_look() const {
    self.call<&own_changes::add>();
    self.call<&own_changes::add>();
    return n;
  }
};
void a_method_on_a_copy_sees_its_own_changes() {
  global_ptr<own_changes> p;
  if (rank_me() == 0) {
    p = make<own_changes>(last());
    p.call<&own_changes::set_self>(p);
    for (int i = 1; i <= 100; ++i)
      CHECK_EQUAL(p.call<&own_changes::add_twice_and_look>(via::cache), 2 * i);
    destroy(p);
  }
  barrier();
}

void an_object_made_anew_at_an_address_is_no_old_copy() {
  for (int i = 0; i < 20; ++i) {
    auto p = shared_object();
    CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), 0);
    barrier();
    if (rank_me() == 0) p.call<&pair_of_counts::add>(i);
    barrier();
    CHECK_EQUAL(p.call<&pair_of_counts::sum>(via::cache), 2 * i);
    destroy_shared(p);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a copy that is here costs no message", a_copy_that_is_here_costs_no_message);
    check::claim("a read after a write sees it", a_read_after_a_write_sees_it);
    check::claim("the writer sees its own writes and reads never go back",
                 the_writer_sees_its_own_writes_and_reads_never_go_back);
    check::claim("nobody copies an object in the middle of a change",
                 nobody_copies_an_object_in_the_middle_of_a_change);
    check::claim("a change by the owner itself is seen", a_change_by_the_owner_itself_is_seen);
    check::claim("this of a copy is the object", this_of_a_copy_is_the_object);
    check::claim("a method that waits on a copy sees what comes",
                 a_method_that_waits_on_a_copy_sees_what_comes);
    check::claim("many fibers ask for one copy", many_fibers_ask_for_one_copy);
    check::claim("copies make room for others", copies_make_room_for_others);
    check::claim("random calls agree with sums", random_calls_agree_with_sums);
    check::claim("a change of the whole takes copies of its part back",
                 a_change_of_the_whole_takes_copies_of_its_part_back);
    check::claim("a change that cannot wait needs not", a_change_that_cannot_wait_needs_not);
    check::claim("a method on a copy sees its own changes",
                 a_method_on_a_copy_sees_its_own_changes);
    check::claim("an object made anew at an address is no old copy",
                 an_object_made_anew_at_an_address_is_no_old_copy);
    return check::verdict();
  });
}
