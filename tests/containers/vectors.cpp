// SPDX-License-Identifier: Apache-2.0
// dist_vector, dist_bag and trail: each operation does what it says, in blocks and in turn, for
// sizes from none to many, of plain elements and of such as own memory.
#include <sojourn/containers/dist_bag.hpp>
#include <sojourn/containers/dist_vector.hpp>
#include <sojourn/containers/trail.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "jobs/check.hpp"
#include "memory/global_heap.hpp"

using namespace sojourn;

namespace {

using u64 = std::uint64_t;

u64 seed = 1;
constexpr std::size_t sizes[] = {0, 1, 2, 3, 7, 64, 1001};

rank_t next() { return (rank_me() + 1) % rank_count(); }

template <class Layout>
void each_element_is_on_one_rank() {
  for (const std::size_t size : sizes) {
    const auto v = dist_vector<long, Layout>::make(size, 7L);
    CHECK_EQUAL(v.size(), size);
    std::vector<int> found(size, 0);
    for (const std::size_t i : v.indices_here()) {
      CHECK_EQUAL(v.owner(i), rank_me());
      CHECK_EQUAL(v.here(i), 7);
      CHECK(v.at(i).local() == &v.here(i));
      v.here(i) = static_cast<long>(i);
      ++found[i];
    }
    CHECK_EQUAL(v.indices_here().size(), v.size_here());
    found = reduce(found, elementwise(std::plus<>()));
    CHECK(std::all_of(found.begin(), found.end(), [](int n) { return n == 1; }));
    for (std::size_t i = 0; i < size; i += 1 + size / 10) {
      CHECK_EQUAL(v.get(i), static_cast<long>(i));
      CHECK_EQUAL(v.async_get(i).get(), static_cast<long>(i));
      CHECK_EQUAL(load(v.at(i)), static_cast<long>(i));
    }
    const std::vector<long> all = v.gather_all();
    if (rank_me() == 0) {
      CHECK_EQUAL(all.size(), size);
      for (std::size_t i = 0; i < all.size(); ++i) CHECK_EQUAL(all[i], static_cast<long>(i));
    }
    for (std::size_t first = 0; first < size; first += 1 + size / 5) {
      std::vector<long> some((size - first) / 2 + 1);
      v.get_range(first, std::span<long>(some));
      for (std::size_t k = 0; k < some.size(); ++k)
        CHECK_EQUAL(some[k], static_cast<long>(first + k));
    }
    barrier();
    v.fill_all(3);
    if (size > 0) CHECK_EQUAL(v.get(size - 1), 3);
    barrier();
    v.destroy_all();
  }
}

template <class Layout>
void updates_and_visits() {
  const std::size_t size = 500;
  const auto v = dist_vector<long, Layout>::make(size);
  for (int way = 0; way < 2; ++way) {
    const auto body = [&] {
      for (std::size_t i = 0; i < size; ++i) {
        v.ff_update(i, [](long& x, int by) { x += by; }, 2);
        v.ff_visit(
            i,
            [](std::size_t at, long& x, dist_vector<long, Layout> all) {
              if (at % 50 == 0) yield();
              ++x;
              if (at > 0) all.ff_update(at - 1, [](long& y) { y += 10; });
            },
            v);
      }
    };
    if (way == 0) {
      finish(body);
      barrier();
    } else {
      finish_all(body);
    }
  }
  for (const std::size_t i : v.indices_here())
    CHECK_EQUAL(v.here(i), 2 * rank_count() * (i + 1 < size ? 13 : 3));
  barrier();
  if (rank_me() == 0) {
    CHECK_EQUAL(
        v.visit(3, [](long& x, long to) { return std::exchange(x, to); }, 5L), 26 * rank_count());
    v.set(4, 6);
    v.visit(via::rpc, 4, [](long& x) { x *= 2; });
    finish([&] { v.ff_set(5, 99); });
  }
  barrier();
  CHECK_EQUAL(v.get(3), 5);
  CHECK_EQUAL(v.get(4), 12);
  CHECK_EQUAL(v.get(5), 99);
  barrier();
  v.destroy_all();
}

template <class T, class Layout>
void it_sorts(T (*element)(u64)) {
  for (const std::size_t size : sizes) {
    for (const u64 range : {u64{5}, ~u64{0}}) {
      const auto v = dist_vector<T, Layout>::make(size);
      std::mt19937_64 random(seed ^ range ^ static_cast<u64>(rank_me()) << 32);
      for (T& x : v) x = element(random() % range);
      std::vector<T> expected = v.gather_all();
      std::sort(expected.begin(), expected.end());
      v.sort_all();
      if (size > 0 && rank_me() == rank_count() - 1 && rank_count() > 1) {
        // At once, also on other ranks.
        CHECK(!(v.get(size / 2) < v.get(0)));
        CHECK(!(v.get(size - 1) < v.get(size / 2)));
      }
      barrier();
      CHECK(v.gather_all() == expected);
      std::reverse(expected.begin(), expected.end());
      v.sort_all(std::greater<>());
      CHECK(v.gather_all() == expected);
      v.destroy_all();
    }
  }
}
void it_sorts_numbers_and_strings() {
  it_sorts<u64, blocks>([](u64 h) { return h; });
  it_sorts<u64, cyclic>([](u64 h) { return h; });
  it_sorts<std::string, blocks>([](u64 h) { return std::to_string(h); });
  it_sorts<std::string, cyclic>([](u64 h) { return std::to_string(h); });
}

struct joined {
  std::string operator()(std::string a, const std::string& b) const { return a += b; }
};
void it_scans_and_reduces() {
  for (const std::size_t size : sizes) {
    const auto v = dist_vector<std::string>::make(size);
    for (const std::size_t i : v.indices_here())
      v.here(i) = std::string(1, static_cast<char>('a' + i % 26));
    std::string all;
    for (std::size_t i = 0; i < size; ++i) all += static_cast<char>('a' + i % 26);
    const auto sum = v.reduce_all(joined());
    CHECK_EQUAL(sum.has_value(), size > 0);
    if (sum.has_value()) CHECK_EQUAL(*sum, all);
    v.scan_all(joined());
    for (const std::size_t i : v.indices_here()) CHECK_EQUAL(v.here(i), all.substr(0, i + 1));
    v.destroy_all();
  }
}

void mistakes_are_named() {
  const auto v = dist_vector<long>::make(10);
  CHECK_THROWS(error, (void)v.at(10));
  CHECK_THROWS(error, (void)v.get(10));
  CHECK_THROWS(error, v.ff_update(10, [](long&) {}));
  CHECK_THROWS(error, (void)v.here(10));
  if (rank_count() > 1) {
    const std::size_t elsewhere = v.owner(0) == rank_me() ? 9 : 0;
    CHECK_THROWS(error, (void)v.here(elsewhere));
  }
  std::vector<long> too_many(5);
  CHECK_THROWS(error, v.get_range(6, std::span<long>(too_many)));
  CHECK_THROWS(error, (void)(dist_vector<long>().size()));
  barrier();
  v.destroy_all();
}

void a_team_has_its_own_vector() {
  const team half = team::world().split(rank_me() % 2);
  const auto v = dist_vector<long, cyclic>::make(100, 0, half);
  finish_all(
      [&] {
        for (std::size_t i = 0; i < 100; ++i) v.ff_update(i, [](long& x) { ++x; });
      },
      half);
  for (const long x : v) CHECK_EQUAL(x, half.rank_count());
  CHECK(half.from_world(v.owner(99)) >= 0);
  barrier(half);
  v.destroy_all();
}

// ---- Bags ---------------------------------------------------------------------------------------

template <class T>
void what_is_pushed_is_there(T (*item)(long)) {
  const auto b = dist_bag<T>::make();
  const auto push = [&] {
    for (long i = 0; i < 100; ++i) {
      b.ff_push(next(), item(1000 * rank_me() + i));
      b.ff_push_anywhere(item(1000 * rank_me() + 100 + i));
      b.push_here(item(1000 * rank_me() + 200 + i));
    }
  };
  finish_all(push);
  CHECK_EQUAL(b.size_all(), 300u * static_cast<std::size_t>(rank_count()));
  std::vector<T> expected;
  for (long r = 0; r < rank_count(); ++r)
    for (long i = 0; i < 300; ++i) expected.push_back(item(1000 * r + i));
  std::sort(expected.begin(), expected.end());
  const auto all_of = [&] {
    std::vector<T> all = b.gather_all();
    std::sort(all.begin(), all.end());
    return all;
  };
  if (auto all = all_of(); rank_me() == 0) CHECK(all == expected);
  std::size_t met = 0;
  for (const T& x : b) met += x == x ? 1 : 0;
  CHECK_EQUAL(met, b.size_here());
  // All on one rank, and dealt out again.
  for (T& x : b.take_here()) {
    if (rank_me() == 0) {
      b.push_here(std::move(x));
    } else {
      finish([&] { b.ff_push(0, std::move(x)); });
    }
  }
  barrier();
  if (rank_me() != 0) CHECK_EQUAL(b.size_here(), 0u);
  b.rebalance_all();
  CHECK_EQUAL(b.size_here(), 300u);
  if (auto all = all_of(); rank_me() == 0) CHECK(all == expected);
  b.clear_all();
  CHECK_EQUAL(b.size_all(), 0u);
  CHECK(!b.pop().has_value());
  barrier();
  b.destroy_all();
}
void what_is_pushed_is_there_of_both_kinds() {
  what_is_pushed_is_there<long>([](long n) { return n; });
  what_is_pushed_is_there<std::string>([](long n) { return std::to_string(n); });
}

/// Items of one rank, done by all, each once; some make others.
void ranks_without_items_take_over_those_of_others() {
  const auto b = dist_bag<long>::make();
  if (rank_me() == 0)
    for (long i = 1; i <= 2000; ++i) b.push_here(i);
  barrier();
  long sum = 0;
  long done = 0;
  while (reduce(static_cast<long>(b.size_here()), std::plus<>()) > 0) {
    while (const std::optional<long> item = b.pop()) {
      sum += *item;
      ++done;
      if (*item % 10 == 0 && *item > 0) b.push_here(-*item);
      yield();
    }
  }
  CHECK_EQUAL(reduce(done, std::plus<>()), 2200);
  CHECK_EQUAL(reduce(sum, std::plus<>()), 2000L * 2001 / 2 - 10 * (200L * 201 / 2));
  b.destroy_all();
}

/// A loop that waits, while another rank takes items over and adds some.
void a_loop_over_a_bag_may_wait() {
  const auto b = dist_bag<std::string>::make();
  if (rank_me() == 0)
    for (int i = 0; i < 100; ++i) b.push_here(std::to_string(i));
  barrier();
  if (rank_me() == 0) {
    long last = -1;
    int thrown = 0;
    for (auto at = b.begin(); at != b.end(); ++at) {
      try {
        const std::string& item = *at;
        const std::string before = item;
        CHECK(std::stol(item) > last);
        last = std::stol(item);
        if (last < 1000 && last % 5 == 0) b.push_here(std::to_string(1000 + last));
        CHECK_EQUAL(item, before);
        if (last >= 1000) continue;
        if (last == 30)
          rpc((rank_me() + 1) % rank_count(),
              [](dist_bag<std::string> from) {
                if (rank_me() != 0) (void)from.pop();
              },
              b)
              .get();
        (void)*at;
      } catch (const error&) {
        ++thrown;  // another rank has it
      }
    }
    CHECK(last >= 1000);
    CHECK_EQUAL(thrown, rank_count() > 1 ? 1 : 0);
  }
  barrier();
  b.destroy_all();
}

void an_iterator_names_an_item_that_was_taken_out() {
  const auto b = dist_bag<long>::make();
  b.push_here(1);
  auto at = b.begin();
  CHECK_EQUAL(*at, 1);
  CHECK_EQUAL(b.take_here().size(), 1u);
  CHECK_THROWS(error, (void)*at);
  ++at;
  CHECK(at == b.end());
  barrier();
  b.destroy_all();
}

// ---- Trails -------------------------------------------------------------------------------------

struct step {
  u64 number;
  rank_t on;
  friend bool operator==(const step&, const step&) = default;
};
/// Goes from rank to rank, and notes some steps on each.
template <class Trail>
Trail wander(u64 from, int steps, via how) {
  Trail noted;
  std::mt19937_64 random(from);
  for (int i = 0; i < steps; ++i) {
    if (random() % 5 == 0)
      migrate_to(static_cast<rank_t>(random() % static_cast<u64>(rank_count())), how);
    noted.push_back({random(), rank_me()});
  }
  return noted;
}
template <class Trail>
void what_is_left_on_the_way_is_at_home_again() {
  for (const int steps : {0, 1, 4, 5, 8, 9, 100, 3000}) {
    const u64 from = seed + static_cast<u64>(steps);
    Trail noted = activate(wander<Trail>, from, steps, via::migrate);
    CHECK_EQUAL(noted.size(), static_cast<std::size_t>(steps));
    CHECK_EQUAL(noted.empty(), steps == 0);
    std::vector<step> expected;
    std::mt19937_64 random(from);
    rank_t on = rank_me();
    for (int i = 0; i < steps; ++i) {
      if (random() % 5 == 0) on = static_cast<rank_t>(random() % static_cast<u64>(rank_count()));
      expected.push_back({random(), on});
    }
    CHECK(noted.take() == expected);
    CHECK(noted.empty() && noted.take().empty());
    // It may be used again, and passed on.
    noted.push_back({7, 0});
    const std::size_t size =
        rpc(next(), [](Trail theirs) { return theirs.take().size(); }, noted).get();
    CHECK_EQUAL(size, 1u);
  }
}
void trails_of_all_sizes() {
  what_is_left_on_the_way_is_at_home_again<trail<step>>();
  what_is_left_on_the_way_is_at_home_again<trail<step, 1>>();
  what_is_left_on_the_way_is_at_home_again<trail<step, 500>>();
}
/// What was left and taken is forgotten on its rank.
void a_trail_that_was_taken_leaves_nothing() {
  const auto in_use = [] { return reduce(detail::heap_bytes_in_use(), std::plus<>()); };
  barrier();
  const std::size_t before = in_use();
  for (u64 i = 0; i < 50; ++i) (void)activate(wander<trail<step>>, i, 200, via::migrate).take();
  barrier();
  // Checked mode keeps destroyed objects for a while.
  if (std::getenv("SOJOURN_CHECKED") == nullptr) CHECK_EQUAL(in_use(), before);
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [=] {
    if (const char* text = std::getenv("SOJOURN_TEST_SEED"))
      seed = std::strtoull(text, nullptr, 10);
    check::claim("each element is on one rank, in blocks", each_element_is_on_one_rank<blocks>);
    check::claim("each element is on one rank, in turn", each_element_is_on_one_rank<cyclic>);
    check::claim("updates and visits, in blocks", updates_and_visits<blocks>);
    check::claim("updates and visits, in turn", updates_and_visits<cyclic>);
    check::claim("it sorts numbers and strings", it_sorts_numbers_and_strings);
    check::claim("it scans and reduces", it_scans_and_reduces);
    check::claim("mistakes are named", mistakes_are_named);
    check::claim("a team has its own vector", a_team_has_its_own_vector);
    check::claim("what is pushed is there", what_is_pushed_is_there_of_both_kinds);
    check::claim("ranks without items take over those of others",
                 ranks_without_items_take_over_those_of_others);
    check::claim("a loop over a bag may wait", a_loop_over_a_bag_may_wait);
    check::claim("an iterator names an item that was taken out",
                 an_iterator_names_an_item_that_was_taken_out);
    check::claim("what is left on the way is at home again", trails_of_all_sizes);
    check::claim("a trail that was taken leaves nothing", a_trail_that_was_taken_leaves_nothing);
    return check::verdict();
  });
}
