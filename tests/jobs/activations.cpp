// SPDX-License-Identifier: Apache-2.0
// Activations: which frames via::migrate moves, what it costs in messages, and where it stays. The
// counts are asserted where ranks share no memory and where they do: messages are the same.
#include <functional>
#include <optional>
#include <stdexcept>
#include <vector>

#include "check.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }
rank_t last() { return rank_count() - 1; }

struct node {
  long key = 0;
  global_ptr<node> child;
  int accesses = 0;

  explicit node(long k) : key(k) {}
  void link(global_ptr<node> c) { child = c; }
  long read() {
    ++accesses;
    return key;
  }
  global_ptr<node> step() const { return child; }
  rank_t at() const { return rank_me(); }
  long fail_on(long k) const {
    if (k == key) throw std::out_of_range("node " + std::to_string(k));
    return key;
  }
  /// A method that goes on to another object: its frames hold `this`, so they stay.
  long through(global_ptr<node> other, via how) {
    rank_t owner = rank_me();
    long theirs = other.call<&node::read>(how);
    return rank_me() == owner ? theirs * 1000 + key : -1;
  }
  /// The same under an activation of its own, whose mark lies above this method's frame.
  long under(global_ptr<node> other, via how) {
    rank_t owner = rank_me();
    long theirs =
        activate([](global_ptr<node> o, via h) { return o.call<&node::read>(h); }, other, how);
    return rank_me() == owner ? theirs * 1000 + key : -1;
  }
};

/// A list of `m` nodes on ranks first, first + 1, …; no two neighbours on one rank (from two on).
global_ptr<node> make_list(int m, rank_t first) {
  global_ptr<node> head;
  for (int i = m; i-- > 0;) {
    auto n = make<node>((first + i) % rank_count(), static_cast<long>(i + 1));
    n.call<&node::link>(head);
    head = n;
  }
  return head;
}

long walk(global_ptr<node> at, int accesses, via how) {
  long sum = 0;
  while (at) {
    global_ptr<node> here = at;
    for (int i = 1; i < accesses; ++i) sum += here.call<&node::read>(how);
    at = here.call<&node::step>(how);
  }
  return sum;
}

/// What `body`, on rank 0 alone, makes all ranks count.
template <class Body>
counters counted(Body body) {
  barrier();
  counters before = counters_now();
  barrier();  // What comes of `body` may reach a rank as soon as rank 0 goes on.
  if (rank_me() == 0) body();
  barrier();
  return reduce(counters_now() - before, std::plus<>{});
}

void walks_cost_what_the_paper_says() {
  if (rank_count() < 2) return;
  for (int m : {1, 2, 5, 17}) {
    for (int n : {1, 2, 10}) {
      global_ptr<node> head;
      if (rank_me() == 0) head = make_list(m, 1);
      // Rank 0's own nodes cost nothing; with m ranks or fewer there may be some.
      long remote = 0;
      for (int i = 0; i < m; ++i) remote += (1 + i) % rank_count() != 0;
      long sum = static_cast<long>(m) * (m + 1) / 2 * (n - 1);

      auto rpc_cost = counted([&] { CHECK_EQUAL(activate(walk, head, n, via::rpc), sum); });
      CHECK_EQUAL(rpc_cost.messages(), 2 * n * remote);
      CHECK_EQUAL(rpc_cost.requests_sent, n * remote);
      CHECK_EQUAL(rpc_cost.replies_sent, n * remote);
      CHECK_EQUAL(rpc_cost.migrations, 0);

      auto migrate_cost = counted([&] { CHECK_EQUAL(activate(walk, head, n, via::migrate), sum); });
      bool ends_away = m % rank_count() != 0;
      CHECK_EQUAL(migrate_cost.messages(), m + (ends_away ? 1 : 0));
      CHECK_EQUAL(migrate_cost.migrations, m);
      CHECK_EQUAL(migrate_cost.replies_sent, ends_away ? 1 : 0);
      CHECK_EQUAL(migrate_cost.requests_sent, 0);
      CHECK_EQUAL(migrate_cost.migrations_refused, 0);
    }
  }
}

void messages_of_migrations_are_small() {
#ifdef __OPTIMIZE__  // without it, frames are as large as they come
  if (rank_count() < 2) return;
  global_ptr<node> head;
  if (rank_me() == 0) head = make_list(20, 1);
  auto cost = counted([&] { activate(walk, head, 1, via::migrate); });
  // Frames of the walk and of the access, and the fixed part.
  CHECK(sanitized || cost.migration_bytes / cost.migrations < 600);
#endif
}

/// Where each of three nested activations finds itself after the innermost has accessed `n`.
struct places {
  rank_t outer, middle, inner;
  friend bool operator==(const places&, const places&) = default;
  friend std::ostream& operator<<(std::ostream& o, const places& p) {
    return o << p.outer << "," << p.middle << "," << p.inner;
  }
};

rank_t inner_one(global_ptr<node> n, via how) {
  n.call<&node::at>(how);
  return rank_me();
}
std::pair<rank_t, rank_t> middle_one(global_ptr<node> n, via how) {
  rank_t inner = activate(inner_one, n, how);
  return {rank_me(), inner};
}
places outer_one(global_ptr<node> n, via how) {
  auto [middle, inner] = activate(middle_one, n, how);
  return {rank_me(), middle, inner};
}

places outer_with_handle(global_ptr<node> n) {
  activation outer = this_activation();
  auto [middle, inner] = activate(
      [](global_ptr<node> p, activation h) { return middle_one(p, via::migrate.through(h)); }, n,
      outer);
  return {rank_me(), middle, inner};
}
places middle_with_handle(global_ptr<node> n) {
  auto [middle, inner] = activate(
      [](global_ptr<node> p) {
        activation mine = this_activation();
        rank_t in = activate(inner_one, p, via::migrate.through(mine));
        return std::pair(rank_me(), in);
      },
      n);
  return {rank_me(), middle, inner};
}

void one_several_or_all_activations_move() {
  if (rank_me() != 0) return;
  auto n = make<node>(last(), 1L);
  rank_t there = last();
  CHECK_EQUAL(activate(outer_one, n, via::rpc), (places{0, 0, 0}));
  CHECK_EQUAL(activate(outer_one, n, via::migrate), (places{0, 0, there}));
  CHECK_EQUAL(activate(outer_one, n, via::migrate.activations(1)), (places{0, 0, there}));
  CHECK_EQUAL(activate(outer_one, n, via::migrate.activations(2)), (places{0, there, there}));
  CHECK_EQUAL(activate(outer_one, n, via::migrate.activations(3)), (places{there, there, there}));
  CHECK_EQUAL(activate(outer_one, n, via::migrate.all()), (places{there, there, there}));
  CHECK_EQUAL(activate(outer_with_handle, n), (places{there, there, there}));
  CHECK_EQUAL(activate(middle_with_handle, n), (places{0, there, there}));
  // More than there are: the rank's main fiber stays, so nothing moves.
  if (there != 0) {
    auto before = counters_now();
    CHECK_EQUAL(activate(outer_one, n, via::migrate.activations(4)), (places{0, 0, 0}));
    CHECK_EQUAL((counters_now() - before).migrations_refused, 1);
  }
  // In a handler of this rank, all includes the handler itself.
  auto all = rpc(
                 0,
                 [](global_ptr<node> p) {
                   rank_t in = activate(inner_one, p, via::migrate.all());
                   return std::pair(in, rank_me());
                 },
                 n)
                 .get();
  CHECK_EQUAL(all.first, there);
  CHECK_EQUAL(all.second, there);
  destroy(n);
}

void results_go_straight_to_the_caller() {
  if (rank_count() < 2) return;
  for (int k : {1, 2, 3, 7, 20}) {
    auto cost = counted([&] {
      int hops = activate(
          [](int n) {
            for (int i = 0; i < n; ++i) migrate_to((rank_me() + 1) % rank_count());
            return n;
          },
          k);
      CHECK_EQUAL(hops, k);
    });
    CHECK_EQUAL(cost.messages(), k + (k % rank_count() != 0 ? 1 : 0));
    auto thrown = counted([&] {
      CHECK_THROWS(std::domain_error, activate(
                                          [](int n) {
                                            for (int i = 0; i < n; ++i)
                                              migrate_to((rank_me() + 1) % rank_count());
                                            if (n > 0) throw std::domain_error("far away");
                                          },
                                          k));
    });
    CHECK_EQUAL(thrown.messages(), k + (k % rank_count() != 0 ? 1 : 0));
    CHECK_EQUAL(thrown.exceptions_sent, 1);
    // Nested: the inner one's caller has moved on meanwhile, and its result follows.
    auto nested = counted([&] {
      long sum = activate(
          [](int n) {
            migrate_to(1);
            long inner = activate(
                [](int m) {
                  for (int i = 0; i < m; ++i) migrate_to((rank_me() + 1) % rank_count());
                  return static_cast<long>(m);
                },
                n);
            return inner + rank_me();
          },
          k);
      CHECK_EQUAL(sum, k + 1);
    });
    CHECK_EQUAL(nested.messages(), k + 2 + (k % rank_count() != 0 ? 1 : 0));
  }
}

void results_of_every_kind() {
  if (rank_me() != 0) return;
  activate([](rank_t r) { migrate_to(r); }, last());
  CHECK_EQUAL(activate(
                  [](rank_t r) {
                    migrate_to(r);
                    return inline_string<40>("text of rank " + std::to_string(rank_me()));
                  },
                  last())
                  .str(),
              "text of rank " + std::to_string(last()));
  auto big = activate(
      [](rank_t r) {
        std::array<long, 2000> a;
        a.fill(5);
        migrate_to(r);
        a[1999] = rank_me();
        return a;
      },
      last());
  CHECK_EQUAL(big[0], 5);
  CHECK_EQUAL(big[1999], last());
  CHECK(activate(
            [](rank_t r) {
              std::optional<std::pair<int, double>> o;
              for (int i = 0; i < 10; ++i) {
                if (i % 2 == 0) o.emplace(i, i * 0.5);
                migrate_to(i % 2 == 0 ? r : 0);
                if (o && i % 3 == 0) o->second += rank_me();
                if (i % 4 == 3) o.reset();
              }
              return o;
            },
            last()) == std::optional(std::pair(8, 4.0)));
}

// Loops in which a compiler might keep what belongs to a rank in a register.
long loops_with_much_in_registers(rank_t there) {
  long sum = 0;
  double product = 1;
  std::optional<long> seen;
  std::array<rank_t, 8> ranks{};
  for (int i = 0; i < 64; ++i) {
    migrate_to(i % 3 == 0 ? there : 0);
    ranks[static_cast<std::size_t>(i % 8)] = rank_me();
    if (seen) sum += *seen;
    seen = rank_me() + i;
    product *= 1.0 + rank_me() * 0.0;
    if (global_ptr<long>(nullptr).is_local()) return -1;
  }
  for (rank_t r : ranks) sum += r;
  return sum + static_cast<long>(product);
}

void loops_see_the_rank_they_are_on() {
  if (rank_me() != 0) return;
  long expected = 0;
  {
    std::optional<long> seen;
    std::array<rank_t, 8> ranks{};
    for (int i = 0; i < 64; ++i) {
      rank_t here = i % 3 == 0 ? last() : 0;
      ranks[static_cast<std::size_t>(i % 8)] = here;
      if (seen) expected += *seen;
      seen = here + i;
    }
    for (rank_t r : ranks) expected += r;
    expected += 1;
  }
  CHECK_EQUAL(activate(loops_with_much_in_registers, last()), expected);
}

/// Calls `body(n)` as a claim's case and expects an rpc and one refusal on this rank.
template <class Body>
void stays(const char* what, Body body) {
  auto n = make<node>(last(), 9L);
  auto before = counters_now();
  long got = body(n);
  auto d = counters_now() - before;
  bool remote = last() != 0;
  if (got != 9 || d.migrations != 0 || d.migrations_refused != (remote ? 1u : 0u) ||
      d.requests_sent != (remote ? 1u : 0u)) {
    check::fail(__FILE__, __LINE__, what,
                check::show(got) + ", " + check::show(d.migrations) + " migrations, " +
                    check::show(d.migrations_refused) + " refused, " +
                    check::show(d.requests_sent) + " requests");
  }
  destroy(n);
}

long read_migrating(global_ptr<node> n) { return n.call<&node::read>(via::migrate); }

long in_a_static(global_ptr<node> n) {
  static long value = n.call<&node::read>(via::migrate);
  return value;
}

void where_it_may_not_move_it_is_an_rpc() {
  if (rank_me() != 0) return;
  stays("the main fiber outside any activation", read_migrating);
  stays("a capturing lambda", [](global_ptr<node> n) {
    long x = 0;
    return activate([&x](global_ptr<node> p) { return x + p.call<&node::read>(via::migrate); }, n);
  });
  stays("an activation that holds a stay", [](global_ptr<node> n) {
    return activate(
        [](global_ptr<node> p) {
          stay here;
          return p.call<&node::read>(via::migrate);
        },
        n);
  });
  stays("an activation with an open finish", [](global_ptr<node> n) {
    return activate(
        [](global_ptr<node> p) {
          long r = 0;
          finish([&] { r = p.call<&node::read>(via::migrate); });
          return r;
        },
        n);
  });
  stays("a catch block", [](global_ptr<node> n) {
    return activate(
        [](global_ptr<node> p) {
          try {
            throw 1;
          } catch (int) {
            return p.call<&node::read>(via::migrate);
          }
        },
        n);
  });
  stays("a destructor during unwinding", [](global_ptr<node> n) {
    return activate(
        [](global_ptr<node> p) {
          static long seen;
          struct guard {
            global_ptr<node> q;
            ~guard() { seen = q.call<&node::read>(via::migrate); }
          };
          try {
            guard g{p};
            throw 1;
          } catch (int) {
          }
          return seen;
        },
        n);
  });
  stays("the initialisation of a static",
        [](global_ptr<node> n) { return activate(in_a_static, n); });
  stays("two activations whose older one captures", [](global_ptr<node> n) {
    long x = 0;
    return activate(
        [&x](global_ptr<node> p) {
          return x + activate(
                         [](global_ptr<node> q) {
                           return q.call<&node::read>(via::migrate.activations(2));
                         },
                         p);
        },
        n);
  });
  stays("a `stay` in an older frame that would move, too", [](global_ptr<node> n) {
    return activate(
        [](global_ptr<node> p) {
          stay here;
          return activate(
              [](global_ptr<node> q) { return q.call<&node::read>(via::migrate.activations(2)); },
              p);
        },
        n);
  });
  CHECK(activate(
      [](rank_t r) {
        stay here;
        return migrate_to(r) == (r == rank_me());
      },
      last()));
}

void once_the_reason_is_gone_it_moves() {
  if (rank_me() != 0 || rank_count() < 2) return;
  auto n = make<node>(last(), 9L);
  rank_t where = activate(
      [](global_ptr<node> p) {
        {
          stay here;
        }
        finish([] {});
        try {
          throw 1;
        } catch (int) {
        }
        static long x = p.call<&node::read>(via::rpc);
        (void)x;
        p.call<&node::read>(via::migrate);
        return rank_me();
      },
      n);
  CHECK_EQUAL(where, last());
  // An activation inside a catch block has no exception of its own, so it may.
  where = activate(
      [](global_ptr<node> p) {
        try {
          throw std::runtime_error("outer");
        } catch (const std::runtime_error& e) {
          rank_t r = activate(
              [](global_ptr<node> q) {
                q.call<&node::read>(via::migrate);
                try {
                  throw std::logic_error("inner");
                } catch (const std::logic_error&) {
                  return rank_me();
                }
              },
              p);
          CHECK_EQUAL(std::string(e.what()), "outer");
          return std::current_exception() != nullptr ? r : -1;
        }
      },
      n);
  CHECK_EQUAL(where, last());
  // And one inside a stay, a capturing activation, a finish.
  long x = 0;
  where = activate(
      [&x](global_ptr<node> p) {
        stay here;
        rank_t r = -1;
        finish([&] {
          r = activate(
              [](global_ptr<node> q) {
                q.call<&node::read>(via::migrate.all());
                return rank_me();
              },
              p);
        });
        return r + static_cast<rank_t>(x);
      },
      n);
  CHECK_EQUAL(where, last());
  destroy(n);
}

long call_through(global_ptr<node> a, global_ptr<node> b, via access, via inside) {
  return a.call<&node::through>(access, b, inside);
}
long call_under(global_ptr<node> a, global_ptr<node> b, via access, via inside) {
  return a.call<&node::under>(access, b, inside);
}
long fork_through(global_ptr<node> a, global_ptr<node> b, via access, via inside) {
  auto f = a.async<&node::through>(access, b, inside);
  return f.get();
}
long fork_under(global_ptr<node> a, global_ptr<node> b, via access, via inside) {
  auto f = a.async<&node::under>(access, b, inside);
  return f.get();
}

/// A method whose object is on one rank asks another on the other, with every policy inside it.
void stays_with_its_object(long (*body)(global_ptr<node>, global_ptr<node>, via, via)) {
  if (rank_me() != 0) return;
  auto here = make<node>(0, 4L);
  auto there = make<node>(last(), 5L);
  for (via inside : {via::rpc, via::migrate, via::migrate.activations(2),
                     via::migrate.activations(3), via::migrate.all()}) {
    for (via access : {via::rpc, via::migrate}) {
      CHECK_EQUAL(activate(body, here, there, access, inside), 5004);
      CHECK_EQUAL(activate(body, there, here, access, inside), 4005);
    }
  }
  destroy(here);
  destroy(there);
}

int slow(int us) {
  std::uint64_t until = now_ns() + static_cast<std::uint64_t>(us) * 1000;
  while (now_ns() < until) yield();
  return us;
}

void futures_are_taken_on_other_ranks() {
  // Made here, taken there, with the result there before and after the move.
  for (int us : {0, 2000}) {
    CHECK_EQUAL(activate(
                    [](int t) {
                      auto f = rpc(last(), slow, t);
                      if (t == 0) f.wait();
                      migrate_to(next());
                      auto g = rpc(0, slow, t);
                      migrate_to(last());
                      f.wait();
                      int sum = f.get() + g.get();
                      return sum;
                    },
                    us),
                2 * us);
  }
  // An exception waits there, too; an unread future is dropped from afar.
  CHECK_THROWS(std::range_error, activate([] {
                 auto f = rpc(0, []() -> int { throw std::range_error("kept"); });
                 auto unread = rpc(0, [] { return 1; });
                 migrate_to(last());
                 return f.get();
               }));
  // ready() becomes true where the future is.
  CHECK(activate([] {
    auto f = rpc(0, slow, 300);
    migrate_to(next());
    std::uint64_t until = now_ns() + 2'000'000'000;
    while (!f.ready() && now_ns() < until) yield();
    return f.ready();
  }));
  // then, where the future was not made.
  CHECK_EQUAL(activate([] {
                auto f = rpc(0, slow, 200);
                migrate_to(next());
                rank_t here = rank_me();
                return f.then([here](int t) { return rank_me() == here ? t : -1; }).get();
              }),
              200);
  CHECK_EQUAL(activate([] {
                auto f = rpc(0, slow, 100);
                auto g = rpc(last(), slow, 200);
                migrate_to(next());
                auto both = when_all(std::move(f), std::move(g)).get();
                return std::get<0>(both) + std::get<1>(both);
              }),
              300);
}

long pingpong(global_ptr<node> a, global_ptr<node> b, int times) {
  long sum = 0;
  for (int i = 0; i < times; ++i) sum += (i % 2 == 0 ? a : b).call<&node::read>(via::migrate);
  return sum;
}

void many_walk_at_once_and_meet() {
  // Every rank's fibers visit the same nodes: frames at equal addresses share ranks and wait there.
  auto mine = make<node>(rank_me(), static_cast<long>(rank_me()));
  auto nodes = all_gather(mine);
  std::vector<future<long>> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](global_ptr<node> a, global_ptr<node> b) {
          return activate(
              [](global_ptr<node> x, global_ptr<node> y) {
                long inner = activate(pingpong, x, y, 21);
                return inner * 1000 + activate(pingpong, y, x, 21);
              },
              a, b);
        },
        nodes[static_cast<std::size_t>(i % rank_count())],
        nodes[static_cast<std::size_t>((i * 3 + 1) % rank_count())]));
  }
  for (int i = 0; i < 40; ++i) {
    long a = i % rank_count();
    long b = (i * 3 + 1) % rank_count();
    CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(), (11 * a + 10 * b) * 1000 + 11 * b + 10 * a);
  }
  barrier();
  CHECK_EQUAL(reduce(static_cast<long>(mine.local()->accesses), std::plus<>{}),
              40L * 42 * rank_count());
  destroy(mine);
}

void exceptions_of_methods_pass_through() {
  if (rank_me() != 0) return;
  auto head = make_list(4, last());
  for (via how : {via::rpc, via::migrate, via::migrate.all()}) {
    for (long bad : {1L, 2L, 4L}) {
      CHECK_THROWS(std::out_of_range, activate(
                                          [](global_ptr<node> at, via h, long k) {
                                            long sum = 0;
                                            while (at) {
                                              sum += at.call<&node::fail_on>(h, k);
                                              at = at.call<&node::step>(h);
                                            }
                                            return sum;
                                          },
                                          head, how, bad));
    }
    // Caught in the activation that migrated, which goes on.
    CHECK_EQUAL(activate(
                    [](global_ptr<node> at, via h) {
                      long sum = 0;
                      while (at) {
                        try {
                          sum += at.call<&node::fail_on>(h, 2);
                        } catch (const std::out_of_range&) {
                          sum += 100;
                        }
                        at = at.call<&node::step>(h);
                      }
                      return sum;
                    },
                    head, how),
                1 + 100 + 3 + 4);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("a walk costs 2nm messages by rpc, m + 1 by migration",
                 walks_cost_what_the_paper_says);
    check::claim("messages of migrations are small", messages_of_migrations_are_small);
    check::claim("one, several or all activations move", one_several_or_all_activations_move);
    check::claim("results go straight to the caller", results_go_straight_to_the_caller);
    check::claim("results of every kind", results_of_every_kind);
    check::claim("loops see the rank they are on", loops_see_the_rank_they_are_on);
    check::claim("where it may not move it is an rpc", where_it_may_not_move_it_is_an_rpc);
    check::claim("once the reason is gone it moves", once_the_reason_is_gone_it_moves);
    check::claim("a method called here stays with its object",
                 [] { stays_with_its_object(call_through); });
    check::claim("a method called here stays, its activations may move",
                 [] { stays_with_its_object(call_under); });
    check::claim("a method forked here stays with its object",
                 [] { stays_with_its_object(fork_through); });
    check::claim("a method forked here stays, its activations may move",
                 [] { stays_with_its_object(fork_under); });
    check::claim("futures are taken on other ranks", futures_are_taken_on_other_ranks);
    check::claim("many walk at once and meet", many_walk_at_once_and_meet);
    check::claim("exceptions of methods pass through", exceptions_of_methods_pass_through);
    return check::verdict();
  });
}
