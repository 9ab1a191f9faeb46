// SPDX-License-Identifier: Apache-2.0
// Collective operations on any number of ranks and from any root.
#include <array>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

void a_barrier_holds_until_all_are_there() {
  static int passed;
  passed = 0;
  barrier();
  for (int round = 1; round <= 30; ++round) {
    // A different rank is late each time.
    if (rank_me() == round % rank_count()) {
      std::uint64_t until = now_ns() + 300'000;
      while (now_ns() < until) yield();
    }
    ++passed;
    barrier();
    rank_t other = (rank_me() + round) % rank_count();
    int theirs = rpc(other, [] { return passed; }).get();
    CHECK_EQUAL(theirs, round);
    barrier();
  }
}

void broadcast_from_every_root() {
  for (rank_t root = 0; root < rank_count(); ++root) {
    CHECK_EQUAL(broadcast(rank_me() * 10 + 3, root), root * 10 + 3);
    CHECK_EQUAL(broadcast(inline_string<30>("from " + std::to_string(rank_me())), root).str(),
                "from " + std::to_string(root));
    std::array<long, 4000> large;
    large.fill(rank_me());
    CHECK_EQUAL(broadcast(large, root)[3999], root);
  }
  CHECK_EQUAL(broadcast(rank_me()), 0);
  CHECK_THROWS(error, broadcast(1, rank_count()));
  CHECK_THROWS(error, broadcast(1, -1));
}

/// x -> a x + b. Composition is associative and not commutative.
struct affine {
  std::uint64_t a, b;
};

void reduce_combines_in_rank_order() {
  CHECK_EQUAL(reduce(rank_me() + 1, std::plus<>{}), rank_count() * (rank_count() + 1) / 2);
  CHECK_EQUAL(reduce(rank_me(), [](int a, int b) { return a > b ? a : b; }), rank_count() - 1);
  CHECK_EQUAL(reduce(rank_me(), [](int a, int b) { return a < b ? a : b; }), 0);
  CHECK_EQUAL(reduce(rank_me() == 0, std::logical_or<>{}), true);
  auto compose = [](affine f, affine g) { return affine{g.a * f.a, g.a * f.b + g.b}; };
  affine mine{static_cast<std::uint64_t>(rank_me()) * 2 + 3,
              static_cast<std::uint64_t>(rank_me()) + 1};
  affine all = reduce(mine, compose);
  affine expected{3, 1};
  for (rank_t r = 1; r < rank_count(); ++r) {
    expected = compose(
        expected, affine{static_cast<std::uint64_t>(r) * 2 + 3, static_cast<std::uint64_t>(r) + 1});
  }
  CHECK_EQUAL(all.a, expected.a);
  CHECK_EQUAL(all.b, expected.b);
  // Strings end to end: the order is plain to see.
  auto text = reduce(inline_string<200>(std::to_string(rank_me()) + ";"),
                     [](const inline_string<200>& x, const inline_string<200>& y) {
                       return inline_string<200>(x.str() + y.str());
                     });
  std::string in_order;
  for (rank_t r = 0; r < rank_count(); ++r) in_order += std::to_string(r) + ";";
  CHECK_EQUAL(text.str(), in_order);
}

void gather_to_every_root() {
  for (rank_t root = 0; root < rank_count(); ++root) {
    auto all = gather(rank_me() * 7, root);
    if (rank_me() != root) {
      CHECK(all.empty());
      continue;
    }
    CHECK_EQUAL(all.size(), static_cast<std::size_t>(rank_count()));
    for (rank_t r = 0; r < rank_count(); ++r) CHECK_EQUAL(all[static_cast<std::size_t>(r)], r * 7);
  }
  CHECK_THROWS(error, gather(1, rank_count()));
}

void all_gather_in_order() {
  auto all = all_gather(inline_string<9>("r" + std::to_string(rank_me())));
  CHECK_EQUAL(all.size(), static_cast<std::size_t>(rank_count()));
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(all[static_cast<std::size_t>(r)].str(), "r" + std::to_string(r));
  }
  struct large {
    std::array<int, 3000> v;
  };
  large mine;
  mine.v.fill(rank_me());
  auto larges = all_gather(mine);
  for (rank_t r = 0; r < rank_count(); ++r)
    CHECK_EQUAL(larges[static_cast<std::size_t>(r)].v[2999], r);
}

void one_behind_the_other_without_a_barrier() {
  long sum = 0;
  for (int i = 0; i < 200; ++i) {
    rank_t root = i % rank_count();
    int b = broadcast(rank_me() + i, root);
    CHECK_EQUAL(b, root + i);
    sum += reduce(1L, std::plus<>{});
    auto g = gather(i + rank_me(), root);
    if (rank_me() == root) CHECK_EQUAL(g.back(), i + rank_count() - 1);
    if (i % 10 == 0) barrier();
    CHECK_EQUAL(all_gather(rank_me())[static_cast<std::size_t>(root)], root);
  }
  CHECK_EQUAL(sum, 200L * rank_count());
}

void other_fibers_run_meanwhile() {
  // The late rank needs the others' handlers and fibers while they wait in the barrier.
  static int served;
  served = 0;
  barrier();
  if (rank_me() == rank_count() - 1) {
    for (int i = 0; i < 50; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) {
        rpc(r, [] {
          yield();
          ++served;
        }).get();
      }
    }
  }
  barrier();
  CHECK_EQUAL(served, 50);
}

void from_another_fiber_of_the_rank() {
  int total = rpc(rank_me(), [] {
                barrier();
                return reduce(1, std::plus<>{});
              }).get();
  CHECK_EQUAL(total, rank_count());
}

void messages_are_counted_apart() {
  auto before = counters_now();
  for (int i = 0; i < 10; ++i) barrier();
  auto used = counters_now() - before;
  CHECK_EQUAL(used.messages(), 0);
  if (rank_count() > 1) CHECK(used.collective_messages > 0);
  long all = reduce(static_cast<long>(used.collective_messages), std::plus<>{});
  // Where ranks share cores, up once and down once for every rank but the first; with a core each,
  // every rank tells those 1, 2, 4, ... behind it. Which of these, only the setting tells.
  const char* cores = std::getenv("SOJOURN_CORES");
  if (cores == nullptr) return;
  long steps = 0;
  while (1L << steps < rank_count()) ++steps;
  const bool crowded = std::atoi(cores) < rank_count();
  CHECK_EQUAL(all, 10L * (crowded ? 2 * (rank_count() - 1) : steps * rank_count()));
}

// ---- Prefixes, one value for each, and values that own memory -----------------------------------

void scans_combine_what_comes_before() {
  const int me = rank_me();
  CHECK_EQUAL(inclusive_scan(me + 1, std::plus<>{}), (me + 1) * (me + 2) / 2);
  CHECK_EQUAL(exclusive_scan(me + 1, 1000, std::plus<>{}), 1000 + me * (me + 1) / 2);
  std::string upto = "<";
  for (int r = 0; r < me; ++r) upto += std::to_string(r) + ";";
  const std::string mine = std::to_string(me) + ";";
  CHECK_EQUAL(exclusive_scan(mine, me == 0 ? "<" : "of another", std::plus<>{}), upto);
  CHECK_EQUAL(inclusive_scan(mine, std::plus<>{}), upto.substr(1) + mine);
}

void reduce_to_every_root() {
  for (rank_t root = 0; root < rank_count(); ++root) {
    const std::optional<int> sum = reduce(rank_me() + 1, std::plus<>{}, root);
    CHECK_EQUAL(sum.has_value(), rank_me() == root);
    CHECK_EQUAL(sum.value_or(0), rank_me() == root ? rank_count() * (rank_count() + 1) / 2 : 0);
  }
  CHECK_THROWS(error, reduce(1, std::plus<>{}, rank_count()));
  CHECK_THROWS(error, reduce(1, std::plus<>{}, -1));
}

void values_that_own_memory_are_reduced() {
  std::string in_order;
  std::map<std::string, int> of_all;
  for (rank_t r = 0; r < rank_count(); ++r) {
    in_order += std::to_string(r) + ";";
    of_all[r % 2 == 0 ? "even" : "odd"] += r;
  }
  CHECK_EQUAL(reduce(std::to_string(rank_me()) + ";", std::plus<>{}), in_order);
  const std::map<std::string, int> mine{{rank_me() % 2 == 0 ? "even" : "odd", rank_me()}};
  const auto all =
      reduce(mine, [](std::map<std::string, int> a, const std::map<std::string, int>& b) {
        for (const auto& [key, number] : b) a[key] += number;
        return a;
      });
  CHECK(all == of_all);
  const auto sums = reduce(std::vector<long>(5, rank_me()), elementwise(std::plus<>{}));
  CHECK(sums == std::vector<long>(5, long{rank_count()} * (rank_count() - 1) / 2));
  const auto most = reduce(std::array<int, 2>{rank_me(), -rank_me()},
                           elementwise([](int a, int b) { return a > b ? a : b; }));
  CHECK(most == (std::array<int, 2>{rank_count() - 1, 0}));
}

/// Elements of maps cannot be assigned to.
void elements_of_maps_take_part() {
  using element = std::pair<const std::string, int>;
  const element mine(std::to_string(rank_me()), rank_me());
  const rank_t last = rank_count() - 1;
  const element of_last(std::to_string(last), last);
  CHECK(broadcast(mine, last) == of_last);
  CHECK(all_gather(mine).back() == of_last);
  const auto later = [](const element& a, const element& b) { return a.second > b.second ? a : b; };
  CHECK(reduce(mine, later) == of_last);
  CHECK(inclusive_scan(mine, later) == mine);
  CHECK(exclusive_scan(mine, mine, later).second == std::max(rank_me() - 1, 0));
  using number = std::pair<const int, long>;
  CHECK(reduce(number(rank_me(), 1), [](number a, number b) {
          return number(std::max(a.first, b.first), a.second + b.second);
        }) == number(last, rank_count()));
}

void all_to_all_gives_each_its_own() {
  std::vector<int> numbers;
  std::vector<std::vector<long>> vectors;
  std::vector<bool> bits;
  for (rank_t r = 0; r < rank_count(); ++r) {
    numbers.push_back(rank_me() * 100 + r);
    vectors.emplace_back(static_cast<std::size_t>((rank_me() + r) % 3), rank_me());
    bits.push_back((rank_me() + r) % 3 == 0);
  }
  const auto n = all_to_all(numbers);
  const auto v = all_to_all(vectors);
  const auto b = all_to_all(bits);
  for (rank_t r = 0; r < rank_count(); ++r) {
    const auto from = static_cast<std::size_t>(r);
    CHECK_EQUAL(n[from], r * 100 + rank_me());
    CHECK(v[from] == std::vector<long>(static_cast<std::size_t>((rank_me() + r) % 3), r));
    CHECK_EQUAL(b[from], (rank_me() + r) % 3 == 0);
  }
}

/// Longer than the longest message, 16 MiB.
void long_values_go_in_parts() {
  if (rank_count() > 3) return;
  const std::string mine(std::size_t{17} << 20, static_cast<char>('a' + rank_me()));
  std::string all;
  for (rank_t r = 0; r < rank_count(); ++r) {
    all.append(mine.size(), static_cast<char>('a' + r));
  }
  CHECK(reduce(mine, std::plus<>{}) == all);
  CHECK(all_gather(mine).back() ==
        std::string(mine.size(), static_cast<char>('a' + rank_count() - 1)));
}

// ---- What fails on one rank ---------------------------------------------------------------------

struct cannot_be_written {
  int rank = 0;
  std::string text;  // with which it does not go as bytes
  template <class Archive>
  void save(Archive& to) const {
    if (rank == rank_count() - 1) throw std::out_of_range("not this one");
    to(rank);
  }
  template <class Archive>
  void load(Archive& from) {
    from(rank);
  }
};

void what_one_rank_throws_all_ranks_throw() {
  const bool last = rank_me() == rank_count() - 1;
  // Only on rank 0 both are in one operation.
  const auto throws = [](int a, int b) {
    if (a + b > 0) throw std::domain_error("no sum");
    return a + b;
  };
  if (rank_count() == 1) {
    CHECK_EQUAL(reduce(1, throws), 1);
  } else {
    CHECK_THROWS(std::domain_error, reduce(1, throws));
    CHECK_THROWS(std::domain_error, reduce_async(1, throws).get());
    CHECK_THROWS(std::out_of_range, all_gather(cannot_be_written{rank_me(), ""}));
    CHECK_THROWS(std::out_of_range, broadcast(cannot_be_written{rank_me(), ""}, rank_count() - 1));
    if (rank_me() == 0 || last)
      CHECK_THROWS(std::out_of_range, gather(cannot_be_written{rank_me(), ""}));
    else
      CHECK(gather(cannot_be_written{rank_me(), ""}).empty());
    CHECK_THROWS(error, reduce(std::vector<int>(last ? 2 : 1), elementwise(std::plus<>{})));
    // Not with itself.
    CHECK_THROWS(error,
                 all_to_all(std::vector<int>(static_cast<std::size_t>(rank_count()) + last)));
  }
  // Nothing is left of these.
  CHECK_EQUAL(reduce(1, std::plus<>{}), rank_count());
}

// ---- Under way ----------------------------------------------------------------------------------

void many_are_under_way() {
  std::vector<future<int>> sums;
  std::vector<future<std::string>> texts;
  std::vector<future<void>> meetings;
  for (int i = 0; i < 60; ++i) {
    sums.push_back(reduce_async(rank_me() + i, std::plus<>{}));
    texts.push_back(broadcast_async(std::to_string(rank_me() + i), i % rank_count()));
    meetings.push_back(barrier_async());
    if (i % 7 == rank_me() % 7) yield();
    if (i % 10 == 0) CHECK_EQUAL(reduce(1, std::plus<>{}), rank_count());
  }
  const int ranks = rank_count() * (rank_count() - 1) / 2;
  // Each rank takes them in another order.
  for (int k = 0; k < 60; ++k) {
    const int i = rank_me() % 2 == 0 ? 59 - k : k;
    const auto at = static_cast<std::size_t>(i);
    CHECK_EQUAL(sums[at].get(), ranks + i * rank_count());
    CHECK_EQUAL(texts[at].get(), std::to_string(i % rank_count() + i));
  }
  touch(std::span(meetings));
  // Nobody takes this result.
  (void)barrier_async();
  (void)all_gather_async(std::string("unread"));
}

void beginning_sends_what_can_be_sent() {
  const auto before = counters_now();
  auto sum = reduce_async(1, std::plus<>{});
  const auto sent = (counters_now() - before).collective_messages;
  // Nothing waits for this rank while it computes, though it has not looked at its messages.
  if (rank_count() <= 16 && rank_me() != 0) CHECK_EQUAL(sent, 1u);
  CHECK_EQUAL(sum.get(), rank_count());
  auto all = all_gather_async(rank_me()).then([](std::vector<int> v) { return v.size(); });
  CHECK_EQUAL(all.get(), static_cast<std::size_t>(rank_count()));
}

void a_finish_does_not_wait_for_operations_under_way() {
  // Other ranks begin only after this finish has ended on rank 0.
  static bool has_ended;
  has_ended = false;
  barrier();
  future<void> meeting;
  if (rank_me() == 0) {
    finish([&] { meeting = barrier_async(); });
    CHECK_EQUAL(meeting.ready(), rank_count() == 1);
    has_ended = true;
  } else {
    while (!rpc(0, [] { return has_ended; }).get()) yield();
    meeting = barrier_async();
  }
  meeting.get();
}

void a_rank_takes_part_while_it_computes() {
  // Rank 0 only gives its turn: the others get their results nevertheless.
  static int done;
  done = 0;
  barrier();
  auto meeting = barrier_async();
  auto sum = reduce_async(std::vector<int>{1, rank_me()}, elementwise(std::plus<>{}));
  if (rank_me() != 0) {
    meeting.get();
    CHECK_EQUAL(sum.get()[0], rank_count());
    rpc(0, [] { ++done; }).get();
  } else {
    while (done + 1 < rank_count()) yield();
    CHECK(sum.ready());
    meeting.get();
  }
}

void reduce_to_a_root_takes_half_of_the_messages() {
  const auto before = counters_now();
  for (int i = 0; i < 10; ++i) (void)reduce(1, std::plus<>{}, 0);
  const auto used = counters_now() - before;
  CHECK_EQUAL(used.collective_messages, rank_me() == 0 ? 0u : 10u);
}

// ---- Teams --------------------------------------------------------------------------------------

void teams_are_ordered_subsets() {
  const team& all = team::world();
  CHECK_EQUAL(all.rank_me(), rank_me());
  CHECK_EQUAL(all.rank_count(), rank_count());
  CHECK_EQUAL(all[rank_count() - 1], rank_count() - 1);
  CHECK_THROWS(error, all[rank_count()]);

  const team backwards = all.split(0, -rank_me());
  CHECK_EQUAL(backwards.rank_me(), rank_count() - 1 - rank_me());
  CHECK_EQUAL(backwards[0], rank_count() - 1);
  CHECK_EQUAL(backwards.from_world(rank_me()), backwards.rank_me());
  std::string names;
  for (rank_t r = rank_count() - 1; r >= 0; --r) names += std::to_string(r) + " ";
  CHECK_EQUAL(reduce(std::to_string(rank_me()) + " ", std::plus<>{}, backwards), names);
  CHECK_EQUAL(broadcast(rank_me(), 0, backwards), rank_count() - 1);

  const team halves = all.split(rank_me() % 2);
  CHECK_EQUAL(halves.rank_count(), (rank_count() + (rank_me() % 2 == 0)) / 2);
  CHECK_EQUAL(reduce(1, std::plus<>{}, halves), halves.rank_count());
  CHECK_EQUAL(halves.from_world(rank_me() ^ 1), -1);
  CHECK(halves == team(halves));
  CHECK(!(halves == backwards));

  const team first = all.split(rank_me() == 0 ? 0 : -1);
  CHECK_EQUAL(first.rank_count(), rank_me() == 0 ? 1 : 0);
  CHECK_EQUAL(first.rank_me(), rank_me() == 0 ? 0 : -1);
  if (rank_me() == 0)
    CHECK_EQUAL(all_gather(7, first).size(), 1u);
  else
    CHECK_THROWS(error, all_gather(7, first));
  CHECK_THROWS(error, barrier(team()));
}

void teams_do_not_disturb_each_other() {
  const team halves = team::world().split(rank_me() % 2);
  const team others = team::world().split(rank_me() / 2, rank_me());
  // Two fibers in operations of two teams; ranks begin with different ones.
  auto in_one = [&] {
    long sum = 0;
    for (int i = 0; i < 30; ++i) sum += reduce(i, std::plus<>{}, halves);
    return sum;
  };
  auto in_other = [&] {
    long sum = 0;
    for (int i = 0; i < 30; ++i)
      sum += static_cast<long>(all_gather(std::to_string(i), others).size());
    return sum;
  };
  auto child = fork([&] { return rank_me() % 3 == 0 ? in_one() : in_other(); });
  const long mine = rank_me() % 3 == 0 ? in_other() : in_one();
  const long theirs = child.get();
  CHECK_EQUAL(mine + theirs, 435L * halves.rank_count() + 30L * others.rank_count());
}

void a_team_ends_after_its_operations() {
  future<int> sum;
  future<std::vector<int>> all;
  {
    const team pairs = team::world().split(rank_me() / 2);
    sum = reduce_async(1, std::plus<>{}, pairs);
    all = all_gather_async(rank_me(), pairs);
  }
  const auto members = all.get();
  CHECK_EQUAL(sum.get(), members.size());
  CHECK_EQUAL(members[0], rank_me() / 2 * 2);
  // As many as there can be: what a team takes is given back.
  for (int i = 0; i < 200; ++i) {
    const team again = team::world().split(0);
    if (i % 20 == 0) CHECK_EQUAL(reduce(1, std::plus<>{}, again), rank_count());
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a barrier holds until all are there", a_barrier_holds_until_all_are_there);
    check::claim("broadcast from every root", broadcast_from_every_root);
    check::claim("reduce combines in rank order", reduce_combines_in_rank_order);
    check::claim("gather to every root", gather_to_every_root);
    check::claim("all_gather is in rank order", all_gather_in_order);
    check::claim("one behind the other without a barrier", one_behind_the_other_without_a_barrier);
    check::claim("other fibers run meanwhile", other_fibers_run_meanwhile);
    check::claim("from another fiber of the rank", from_another_fiber_of_the_rank);
    check::claim("collective messages are counted apart", messages_are_counted_apart);
    check::claim("scans combine what comes before", scans_combine_what_comes_before);
    check::claim("reduce to every root", reduce_to_every_root);
    check::claim("values that own memory are reduced", values_that_own_memory_are_reduced);
    check::claim("elements of maps take part", elements_of_maps_take_part);
    check::claim("all_to_all gives each its own", all_to_all_gives_each_its_own);
    check::claim("long values go in parts", long_values_go_in_parts);
    check::claim("what one rank throws all ranks throw", what_one_rank_throws_all_ranks_throw);
    check::claim("many are under way", many_are_under_way);
    check::claim("beginning sends what can be sent", beginning_sends_what_can_be_sent);
    check::claim("a finish does not wait for operations under way",
                 a_finish_does_not_wait_for_operations_under_way);
    check::claim("a rank takes part while it computes", a_rank_takes_part_while_it_computes);
    check::claim("reduce to a root takes half of the messages",
                 reduce_to_a_root_takes_half_of_the_messages);
    check::claim("teams are ordered subsets", teams_are_ordered_subsets);
    check::claim("teams do not disturb each other", teams_do_not_disturb_each_other);
    check::claim("a team ends after its operations", a_team_ends_after_its_operations);
    (void)barrier_async();  // under way when the program ends
    return check::verdict();
  });
}
