// SPDX-License-Identifier: Apache-2.0
// finish_all: when it returns, nothing is left of what any member began; not before.
#include <functional>
#include <stdexcept>
#include <string>

#include "check.hpp"

using namespace sojourn;

namespace {

// What the calls of a claim count, on each rank.
long done;
/// Between claims: nobody counts any more, and nobody has begun to.
void restart() {
  barrier();
  done = 0;
  barrier();
}
rank_t next() { return (rank_me() + 1) % rank_count(); }

void pause_us(int us) {
  const std::uint64_t until = now_ns() + static_cast<std::uint64_t>(us) * 1000;
  while (now_ns() < until) yield();
}

void count() { ++done; }
/// Counts on each rank that it comes to.
void hop(int hops) {
  ++done;
  if (hops > 0) rpc_ff(next(), hop, hops - 1);
}

void nobody_needs_a_barrier_behind_it() {
  for (int round = 0; round < 50; ++round) {
    restart();
    finish_all([] {
      for (rank_t to = 0; to < rank_count(); ++to) {
        for (int i = 0; i < 100; ++i) rpc_ff(to, count);
      }
    });
    CHECK_EQUAL(done, 100L * rank_count());
  }
}

/// Only one rank has anything to begin; it ends on all of them.
void who_begins_nothing_waits_as_well() {
  for (rank_t begins = 0; begins < rank_count(); ++begins) {
    restart();
    finish_all([=] {
      if (rank_me() == begins) {
        rpc_ff(next(), [] {
          pause_us(2000);
          rpc_ff(next(), hop, 3 * rank_count() - 1);
        });
      }
    });
    CHECK_EQUAL(done, 3);
  }
}

long visited_by_trees(int depth) { return (2L << depth) - 1; }
void tree(int depth) {
  ++done;
  if (depth == 0) return;
  for (int child = 1; child <= 2; ++child)
    rpc_ff((rank_me() * 2 + child) % rank_count(), tree, depth - 1);
}
void trees_of_all_members_end_together() {
  restart();
  constexpr int depth = 10;
  finish_all([] {
    for (int i = 0; i <= rank_me(); ++i) tree(depth);
  });
  const long trees = rank_count() * (rank_count() + 1L) / 2;
  const long here = done;
  barrier();
  CHECK_EQUAL(done, here);
  CHECK_EQUAL(reduce(here, std::plus<>{}), trees * visited_by_trees(depth));
}

/// Calls that handlers make are bundled on all members, also on those that only wait.
void what_handlers_send_is_bundled() {
  restart();
  constexpr int chains = 5000;
  constexpr int hops = 16;
  const counters before = counters_now();
  finish_all([] {
    if (rank_me() == 0) {
      for (int i = 0; i < chains; ++i) hop(hops);
    }
  });
  const counters c = counters_now() - before;
  CHECK_EQUAL(reduce(done, std::plus<>{}), chains * (hops + 1L));
  const auto sent = static_cast<long>(c.requests_sent);
  if (rank_count() > 1) CHECK(reduce(sent, std::plus<>{}) < chains * hops / 8);
}

void a_team_has_one_of_its_own() {
  restart();
  const team part = team::world().split(rank_me() % 2);
  finish_all(
      [&] {
        // On all ranks, whatever team they are in.
        for (rank_t to = 0; to < rank_count(); ++to) rpc_ff(to, count);
      },
      part);
  // What the members of this team began has ended.
  CHECK(done >= part.rank_count());
  barrier();
  CHECK_EQUAL(done, rank_count());
}

void it_nests_with_itself_and_with_finish() {
  restart();
  finish([] {
    finish_all([] {
      rpc_ff(next(), count);
      finish([] { rpc_ff(next(), count); });
      finish_all([] { rpc_ff(next(), count); });
      CHECK(done >= 1);  // the innermost one's, on all ranks
    });
    CHECK_EQUAL(done, 3);
  });
}

void threads_on_other_ranks_count() {
  restart();
  finish_all([] {
    for (int i = 0; i < 20; ++i) {
      spawn_on(next(), [] {
        pause_us(200);
        ++done;
      }).detach();
    }
  });
  CHECK_EQUAL(done, 20);
}

void many_one_after_the_other() {
  restart();
  for (long i = 1; i <= 500; ++i) {
    finish_all([] { rpc_ff(next(), count); });
    CHECK(done == i || done == i + 1);  // who called may have begun the next one
  }
}

std::string thrown_by(const std::function<void()>& body) {
  try {
    finish_all(body);
  } catch (const std::exception& e) {
    return e.what();
  }
  return "nothing";
}
void all_members_hear_of_an_exception() {
  const rank_t last = rank_count() - 1;
  for (int i = 0; i < 10; ++i) {
    restart();
    // Of a call without an answer.
    CHECK_EQUAL(thrown_by([=] {
                  if (rank_me() == last) {
                    rpc_ff(next(), [] { throw std::domain_error("no such bin"); });
                    rpc_ff(next(), [] {
                      pause_us(1000);
                      ++done;
                    });
                  }
                }),
                "no such bin");
    CHECK_EQUAL(reduce(done, std::plus<>{}), 1);  // all the same, everything has ended
    // Of a body; and who throws gets its own.
    const std::string heard = thrown_by([=] {
      rpc_ff(next(), count);
      if (rank_me() == last) throw std::out_of_range("of the last one");
    });
    CHECK_EQUAL(heard, "of the last one");
    const std::string own = thrown_by([] { throw std::out_of_range(std::to_string(rank_me())); });
    CHECK_EQUAL(own, std::to_string(rank_me()));
    // The next one knows nothing of them.
    CHECK_EQUAL(thrown_by([] { rpc_ff(next(), count); }), "nothing");
  }
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("nobody needs a barrier behind it", nobody_needs_a_barrier_behind_it);
    check::claim("who begins nothing waits as well", who_begins_nothing_waits_as_well);
    check::claim("trees of all members end together", trees_of_all_members_end_together);
    check::claim("what handlers send is bundled", what_handlers_send_is_bundled);
    check::claim("a team has one of its own", a_team_has_one_of_its_own);
    check::claim("it nests with itself and with finish", it_nests_with_itself_and_with_finish);
    check::claim("threads on other ranks count", threads_on_other_ranks_count);
    check::claim("many one after the other", many_one_after_the_other);
    check::claim("all members hear of an exception", all_members_hear_of_an_exception);
    return check::verdict();
  });
}
