// SPDX-License-Identifier: Apache-2.0
// sharded<T>: one object on each rank, found from everywhere by a name that travels, with all
// words.
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

class part {
 public:
  part() = default;
  explicit part(long first, std::string name = {}) : sum_(first), name_(std::move(name)) {}

  long add(long n) { return sum_ += n; }
  long sum() const { return sum_; }
  std::string name() const { return name_; }
  rank_t where() const { return rank_me(); }

 private:
  long sum_ = 0;
  std::string name_;
};
/// Plain bytes, which move and are copied.
struct cell {
  long value = 0;
  long set(long to) { return std::exchange(value, to); }
  long get() const { return value; }
};

void each_rank_has_its_own() {
  const sharded<part> parts = make_sharded<part>(100L + rank_me(), std::to_string(rank_me()));
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(parts.on(r).home(), r);
    CHECK_EQUAL(parts.on(r).call<&part::sum>(via::rpc), 100 + r);
    CHECK_EQUAL(parts.on(r).call<&part::name>(via::rpc), std::to_string(r));
    CHECK_EQUAL(parts.on(r).call<&part::where>(via::rpc), r);
  }
  CHECK(&parts.here() == parts.on(rank_me()).local());
  barrier();
  finish_all([&] {
    for (rank_t r = 0; r < rank_count(); ++r) parts.on(r).ff<&part::add>(1L);
  });
  CHECK_EQUAL(parts.here().sum(), 100 + rank_me() + rank_count());
  parts.destroy();
}

/// Once known, a name asks nobody.
void it_costs_no_message() {
  const sharded<cell> cells = make_sharded<cell>();
  const counters before = counters_now();
  for (int i = 0; i < 1000; ++i) {
    for (rank_t r = 0; r < rank_count(); ++r) CHECK(static_cast<bool>(cells.on(r)));
  }
  const counters c = counters_now() - before;
  CHECK_EQUAL(c.requests_sent, 0u);
  cells.destroy();
}

struct holder {
  sharded<cell> cells;
  long round(long n) {
    // The name in an object, on a rank that did not put it there.
    return cells.on((rank_me() + 1) % rank_count()).call<&cell::set>(via::rpc, n);
  }
};
long walk(sharded<cell> cells, int hops, via how) {
  long sum = 0;
  for (int i = 0; i < hops; ++i)
    sum += cells.on((rank_me() + 1) % rank_count()).call<&cell::get>(how);
  return sum;
}
void the_name_travels() {
  const sharded<cell> cells = make_sharded<cell>();
  cells.here().set(rank_me() + 1);
  barrier();
  CHECK_EQUAL(rpc(next(), [](sharded<cell> c) { return c.here().get(); }, cells).get(), next() + 1);
  const long all = rank_count() * (rank_count() + 1L) / 2;
  CHECK_EQUAL(activate(walk, cells, 3 * rank_count(), via::migrate), 3 * all);
  barrier();
  const global_ptr<holder> h = make<holder>(next(), cells);
  const long old = h.call<&holder::round>(via::rpc, 7L);
  CHECK_EQUAL(old, (next() + 1) % rank_count() + 1);
  barrier();
  CHECK_EQUAL(cells.here().get(), 7);
  cells.destroy();
}

struct moving {
  long value = 0;
  long set(long to) { return std::exchange(value, to); }
  long get() const { return value; }
};
void all_words_work_on_it() {
  const sharded<moving> cells = make_sharded<moving>();
  const global_ptr<moving> theirs = cells.on(next());
  // Checked mode: the first call of an object runs where it is.
  for (int i = 0; i < 2; ++i) theirs.call<&moving::set>(via::fetch, 5L);
  CHECK_EQUAL(theirs.where(), rank_me());
  barrier();
  for (rank_t r = 0; r < rank_count(); ++r) {
    CHECK_EQUAL(cells.on(r).call<&moving::get>(via::cache), 5);
    CHECK_EQUAL(cells.on(r).call<&moving::get>(via::automatic), 5);
  }
  barrier();
  cells.destroy();
}

void a_team_makes_its_own() {
  const team half = team::world().split(rank_me() % 2);
  const rank_t first = half[0];
  // Two at a time, and with those of all.
  const sharded<part> one = make_sharded<part>(half, 1000L + rank_me());
  const sharded<part> all = make_sharded<part>(1L);
  const sharded<part> two = make_sharded<part>(half, 2000L + rank_me());
  for (rank_t member = 0; member < half.rank_count(); ++member) {
    CHECK_EQUAL(one.on(half[member]).call<&part::sum>(via::rpc), 1000 + half[member]);
    CHECK_EQUAL(two.on(half[member]).call<&part::sum>(via::rpc), 2000 + half[member]);
  }
  for (rank_t r = 0; r < rank_count(); ++r) CHECK_EQUAL(all.on(r).call<&part::sum>(via::rpc), 1);
  // Others ask once.
  const rank_t other = next();
  const auto sum_of = [](sharded<part> of, rank_t r) {
    return of.on(r).call<&part::sum>(via::rpc);
  };
  CHECK_EQUAL(rpc(other, sum_of, one, first).get(), 1000 + first);
  if (half.rank_count() < rank_count()) {
    const rank_t no_member = half.from_world(0) < 0 ? 0 : 1;
    CHECK_THROWS(error, (void)one.on(no_member));
    CHECK_THROWS(error, rpc(no_member, [](sharded<part> of) { of.destroy(); }, one).get());
  }
  barrier();
  two.destroy();
  one.destroy();
  all.destroy();
}

void mistakes_are_named() {
  CHECK_THROWS(error, (void)sharded<cell>().on(0));
  const sharded<cell> cells = make_sharded<cell>();
  CHECK_THROWS(error, (void)cells.on(rank_count()));
  CHECK_THROWS(error, (void)cells.on(-1));
  const sharded<cell> copy = cells;
  CHECK(copy == cells && cells && !sharded<cell>());
  CHECK_THROWS(error, (void)sharded<cell>().here());
  (void)cells.here();
  cells.destroy();
  barrier();
  CHECK_THROWS(error, (void)copy.on(next()));
  CHECK_THROWS(error, (void)copy.here());
  CHECK_THROWS(error, copy.destroy());
  barrier();
}

void two_of_a_type_are_told_apart() {
  const sharded<cell> one = make_sharded<cell>(1L);
  const sharded<cell> two = make_sharded<cell>(2L);
  for (int i = 0; i < 2; ++i) {
    CHECK_EQUAL(one.here().get(), 1);
    CHECK_EQUAL(two.here().get(), 2);
  }
  one.destroy();
  CHECK_EQUAL(two.here().get(), 2);
  two.destroy();
}

void many_come_and_go() {
  std::vector<sharded<cell>> kept;
  for (long i = 0; i < 300; ++i) {
    const sharded<cell> cells = make_sharded<cell>(i);
    CHECK_EQUAL(cells.on(next()).call<&cell::get>(via::rpc), i);
    CHECK_EQUAL(cells.here().get(), i);
    if (i % 3 == 0) {
      kept.push_back(cells);
    } else {
      cells.destroy();
    }
  }
  for (std::size_t i = 0; i < kept.size(); ++i)
    CHECK_EQUAL(kept[i].on(next()).call<&cell::get>(via::rpc), 3 * static_cast<long>(i));
  barrier();
  for (const sharded<cell> cells : kept) cells.destroy();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("each rank has its own", each_rank_has_its_own);
    check::claim("it costs no message", it_costs_no_message);
    check::claim("the name travels", the_name_travels);
    check::claim("all words work on it", all_words_work_on_it);
    check::claim("a team makes its own", a_team_makes_its_own);
    check::claim("mistakes are named", mistakes_are_named);
    check::claim("two of a type are told apart", two_of_a_type_are_told_apart);
    check::claim("many come and go", many_come_and_go);
    return check::verdict();
  });
}
