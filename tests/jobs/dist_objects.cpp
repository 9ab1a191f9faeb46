// SPDX-License-Identifier: Apache-2.0
// Objects of all ranks that find each other by the order in which they are made, or by a name.
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "fiber/ticket_table.hpp"

using namespace sojourn;
using namespace std::chrono_literals;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

struct shelf {
  rank_t of = rank_me();
  std::vector<std::string> books;

  std::size_t add(const std::string& book) {
    books.push_back(book);
    return books.size();
  }
  rank_t owner() const { return of; }
  std::string at(std::size_t i) const { return books.at(i); }
  rank_t owner_after(long us) const {
    sleep_for(std::chrono::microseconds(us));
    return of;
  }
};

void each_rank_has_its_own() {
  dist_object<shelf> mine;
  CHECK_EQUAL(mine->of, rank_me());
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(mine.on(r).call<&shelf::owner>(), r);
    CHECK_EQUAL(mine.on(r).async<&shelf::owner_after>(10).get(), r);
  }
  mine.on(next()).call<&shelf::add>("a book of rank " + std::to_string(rank_me()));
  barrier();
  const rank_t before = (rank_me() + rank_count() - 1) % rank_count();
  CHECK_EQUAL(mine->books.size(), 1u);
  CHECK_EQUAL(mine->books[0], "a book of rank " + std::to_string(before));
  CHECK_EQUAL(mine.on(next()).call<&shelf::at>(0u), "a book of rank " + std::to_string(rank_me()));
  CHECK_THROWS(std::out_of_range, mine.on(next()).call<&shelf::at>(5u));
  const auto count = [](const shelf& s, long more) {
    return static_cast<long>(s.books.size()) + more;
  };
  CHECK_EQUAL(mine.on(last()).call(count, 10L), 11);
  CHECK_EQUAL(mine.on(last()).async(+count, 20L).get(), 21);
  barrier();
  mine.on(rank_me()).call([](shelf& s) { s.books.clear(); });
  CHECK(mine->books.empty());
  barrier();
}

void a_copy_is_fetched() {
  dist_object<std::vector<int>> lists(std::vector<int>(static_cast<std::size_t>(rank_me()) + 1, 7));
  const auto [index, both] = when_any(lists.fetch(next())).get();
  dist_object number(10 + rank_me());
  static_assert(std::is_same_v<decltype(number), dist_object<int>>);
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(lists.fetch(r).get().size(), r + 1);
    CHECK_EQUAL(number.fetch(r).get(), 10 + r);
  }
  barrier();
  *number = 5;
  barrier();
  CHECK_EQUAL(number.fetch(last()).get(), 5);
  barrier();
}

/// The function finds its own rank's object by the name that it is given.
void an_id_travels() {
  dist_object<shelf> mine;
  CHECK(mine.id().is_here());
  const auto where = rpc(
      next(),
      [](dist_id<shelf> id) {
        return id.here().add("x") * 100 + static_cast<std::size_t>(id.here().of);
      },
      mine.id());
  const std::size_t got = const_cast<future<std::size_t>&>(where).get();
  CHECK_EQUAL(got % 100, next());
  CHECK_EQUAL(got / 100, 1);
  CHECK(&mine.id().here() == &*mine);
  CHECK(!dist_id<shelf>().is_here());
  CHECK_THROWS(error, dist_id<shelf>().here());
  barrier();
}

void a_request_waits_until_the_object_is_made() {
  auto late = rank_me() == last() ? nullptr : std::make_unique<dist_object<int>>(rank_me());
  if (late != nullptr) {
    auto there = late->fetch(last());
    CHECK(!there.wait_for(2ms));
    auto twice = late->on(last()).async([](int& n) { return 2 * n; });
    rpc(last(), [] { yield(); }).get();
    CHECK(!there.ready());
    rpc_ff(last(), [](rank_t) {}, rank_me());
    barrier();
    CHECK_EQUAL(there.get(), last());
    CHECK_EQUAL(twice.get(), 2 * last());
  } else {
    barrier();
    sleep_for(1ms);
    late = std::make_unique<dist_object<int>>(rank_me());
  }
  barrier();
}

void names_find_each_other_in_any_order() {
  const std::string names[] = {"a", "b", "c", "a long name of something"};
  std::vector<std::unique_ptr<dist_object<std::string>>> mine(4);
  std::minstd_rand random(static_cast<unsigned>(rank_me()) + 1);
  std::vector<std::size_t> order{0, 1, 2, 3};
  std::shuffle(order.begin(), order.end(), random);
  const auto text = [&](std::size_t i, rank_t r) { return names[i] + std::to_string(r); };
  std::vector<future<std::string>> asked;
  std::vector<std::string> expected;
  for (const std::size_t i : order) {
    mine[i] = std::make_unique<dist_object<std::string>>(dist_name{names[i]}, text(i, rank_me()));
    for (rank_t r = 0; r < rank_count(); ++r) {
      asked.push_back(mine[i]->fetch(r));
      expected.push_back(text(i, r));
    }
    if (random() % 2 == 0) yield();
  }
  for (std::size_t k = 0; k < asked.size(); ++k) CHECK_EQUAL(asked[k].get(), expected[k]);
  barrier();
  // The next of a name is another one.
  mine[1].reset();
  dist_object<int> again(dist_name{"b"}, 4);
  CHECK_EQUAL(again.fetch(next()).get(), 4);
  CHECK_EQUAL(mine[0]->fetch(next()).get(), text(0, next()));
  barrier();
}

struct refuses {
  refuses() { throw std::domain_error("not here"); }
  int n = 0;
};

void uses_after_the_end_are_errors() {
  auto mine = std::make_unique<dist_object<int>>(1);
  const auto id = mine->id();
  barrier();
  const auto there = mine->on(next());
  mine.reset();
  CHECK(!id.is_here());
  CHECK_THROWS(dist_object_destroyed, id.here());
  barrier();
  CHECK_THROWS(dist_object_destroyed, there.fetch().get());
  CHECK_THROWS(dist_object_destroyed, there.call([](int& n) { return n; }));
  try {
    (void)there.fetch().get();
  } catch (const dist_object_destroyed& e) {
    CHECK(std::string(e.what()).find("destroyed on rank " + std::to_string(next())) !=
          std::string::npos);
  }
  // One whose constructor throws counts as made.
  CHECK_THROWS(std::domain_error, dist_object<refuses>());
  dist_object<long> whole(9L);
  CHECK_EQUAL(whole.fetch(next()).get(), 9);
  barrier();
  // In another order than on other ranks.
  if (rank_me() == 0) {
    dist_object<char> one('a');
    barrier();
    if (rank_count() > 1) CHECK_THROWS(error, one.fetch(1).get());
    barrier();
  } else {
    dist_object<short> one(short{1});
    barrier();
    barrier();
  }
  CHECK_THROWS(error, dist_object<int>(dist_name{""}, 1));
}

bool entered = false;
bool was_destroyed = false;
void destroying_waits_for_calls() {
  entered = was_destroyed = false;
  auto mine = std::make_unique<dist_object<int>>(rank_me());
  barrier();
  auto slow = mine->on(next()).async([](int& n) {
    entered = true;
    for (int i = 0; i < 50; ++i) yield();
    CHECK(!was_destroyed);
    return n;
  });
  const auto id = mine->id();
  while (!entered) yield();
  mine.reset();
  was_destroyed = true;
  CHECK_THROWS(dist_object_destroyed, id.here());
  CHECK_EQUAL(slow.get(), next());
  barrier();
}

/// Each step makes, asks for or destroys one of several, in an order of each rank's own; whoever
/// asks knows from a model what it gets.
void random_operations() {
  constexpr std::size_t names = 5;
  constexpr int rounds = 12;
  std::minstd_rand random(static_cast<unsigned>(rank_me() * 7 + 3));
  const std::size_t tickets = detail::tickets_open();
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::unique_ptr<dist_object<long>>> mine(names);
    std::vector<future<long>> asked;
    std::vector<long> expected;
    std::size_t made = 0;
    while (made < names) {
      const std::size_t i = random() % names;
      if (mine[i] == nullptr) {
        const std::string name = "of all " + std::to_string(i);
        mine[i] = std::make_unique<dist_object<long>>(
            dist_name{name}, static_cast<long>(i) * 1000 + round * 100 + rank_me());
        ++made;
      } else {
        const auto r = static_cast<rank_t>(random() % static_cast<unsigned>(rank_count()));
        asked.push_back(mine[i]->on(r).async([](const long& n, long add) { return n + add; }, 5L));
        expected.push_back(static_cast<long>(i) * 1000 + round * 100 + r + 5);
      }
      if (random() % 3 == 0) yield();
    }
    while (!asked.empty()) {
      auto [index, futures] = when_any(std::move(asked)).get();
      CHECK_EQUAL(futures[index].get(), expected[index]);
      futures.erase(futures.begin() + static_cast<std::ptrdiff_t>(index));
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(index));
      asked = std::move(futures);
    }
    barrier();
  }
  CHECK_EQUAL(detail::tickets_open(), tickets);
}

}  // namespace

int main(int argc, char** argv) {
  CHECK_THROWS(error, dist_object<int>(1));  // outside of run()
  return run(argc, argv, [] {
    check::claim("each rank has its own", each_rank_has_its_own);
    check::claim("a copy is fetched", a_copy_is_fetched);
    check::claim("an id travels", an_id_travels);
    check::claim("a request waits until the object is made",
                 a_request_waits_until_the_object_is_made);
    check::claim("names find each other in any order", names_find_each_other_in_any_order);
    check::claim("uses after the end are errors", uses_after_the_end_are_errors);
    check::claim("destroying waits for calls", destroying_waits_for_calls);
    check::claim("random operations", random_operations);
    return check::verdict();
  });
}
