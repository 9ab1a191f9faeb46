// SPDX-License-Identifier: Apache-2.0
// Flow control: more calls than there is room for suspend the fiber that makes them, never the
// rank, and end; memory stays bounded; long messages pass through rooms that are full.
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.hpp"
#include "resident.hpp"

using namespace sojourn;

namespace {

rank_t next() { return (rank_me() + 1) % rank_count(); }

int plus_one(int x) { return x + 1; }
long handled;

void calls_outstanding_to_every_rank() {
  const int calls = std::min(20000, 80000 / rank_count());
  long before = resident_kib();
  std::vector<std::vector<future<int>>> all(static_cast<std::size_t>(rank_count()));
  for (int i = 0; i < calls; ++i) {
    for (rank_t r = 0; r < rank_count(); ++r) {
      all[static_cast<std::size_t>(r)].push_back(rpc(r, plus_one, i));
    }
  }
  for (auto& futures : all) {
    for (int i = 0; i < calls; ++i) {
      CHECK_EQUAL(futures[static_cast<std::size_t>(i)].get(), i + 1);
    }
  }
  barrier();
  // What 80,000 futures and their results take, and little more: no heap of waiting messages.
  long grown = resident_kib() - before;
  CHECK(grown < 48 << 10);
}

void flood_without_replies() {
  const int calls = 200000 / rank_count();
  handled = 0;
  barrier();
  long before = resident_kib();
  finish([&] {
    for (int i = 0; i < calls; ++i) {
      for (rank_t r = 0; r < rank_count(); ++r) rpc_ff(r, [](int) { ++handled; }, i);
    }
  });
  barrier();
  CHECK_EQUAL(handled, static_cast<long>(calls) * rank_count());
  CHECK(sanitized || resident_kib() - before < 16 << 10);
}

/// Each message makes another until its hops are used up: every rank floods every other while the
/// rings are full both ways.
void relay(int hops, unsigned seed) {
  ++handled;
  if (hops == 0) return;
  seed = seed * 1664525u + 1013904223u;
  rpc_ff(static_cast<rank_t>((seed >> 8) % static_cast<unsigned>(rank_count())), relay, hops - 1,
         seed);
}

void relayed_floods_in_both_directions() {
  const int starts = 1500;
  const int hops = 30;
  handled = 0;
  barrier();
  finish([&] {
    for (int i = 0; i < starts; ++i) {
      rpc_ff(next(), relay, hops, static_cast<unsigned>(i * 977 + rank_me()));
    }
  });
  barrier();
  long all = reduce(handled, std::plus<>{});
  CHECK_EQUAL(all, static_cast<long>(starts) * (hops + 1) * rank_count());
}

/// The sender of short messages may be far ahead of a rank that computes.
void thousands_of_calls_wait_at_a_rank_that_computes_and_no_fiber() {
  handled = 0;
  barrier();
  if (rank_count() > 1 && rank_count() <= 16 && is_near(1) && rank_me() == 0) {
    constexpr int calls = 14'000;
    rpc_ff(1, [] {
      const std::uint64_t until = now_ns() + 20'000'000;
      while (now_ns() < until) {
      }
    });
    const counters before = counters_now();
    for (int i = 0; i < calls; ++i) rpc_ff(1, [](int) { ++handled; }, i);
    CHECK_EQUAL((counters_now() - before).suspensions_for_room, 0u);
    CHECK_EQUAL(rpc(1, [] { return handled; }).get(), calls);
  }
  barrier();
}

using kilobyte = std::array<std::uint64_t, 128>;

long weigh(const kilobyte& k) {
  long sum = 0;
  for (auto w : k) sum += static_cast<long>(w);
  return sum;
}
/// Answers with a kilobyte after calling on, so that requests, replies and nested calls all queue.
kilobyte answer_after_a_call(kilobyte k, int depth) {
  if (depth > 0) k = rpc(next(), answer_after_a_call, k, depth - 1).get();
  ++k[0];
  return k;
}

void calls_within_calls_while_rings_are_full() {
  std::vector<future<kilobyte>> all;
  const int calls = 400;
  for (int i = 0; i < calls; ++i) {
    kilobyte k{};
    k[1] = static_cast<std::uint64_t>(i);
    all.push_back(rpc(i % rank_count(), answer_after_a_call, k, 6));
  }
  for (int i = 0; i < calls; ++i) CHECK_EQUAL(weigh(all[static_cast<std::size_t>(i)].get()), i + 7);
}

void back_pressure_suspends_the_fiber_not_the_rank() {
  // A fiber sends more than there is room for, while this one counts how often it gets its turn.
  if (rank_count() > 1 && rank_me() == 0) {
    auto before = counters_now();
    auto sender = rpc(0, [] {
      kilobyte k{};
      for (int i = 0; i < 3000; ++i) {
        rpc_ff(
            1,
            [](kilobyte) {
              // The receiver is slow: it works without yielding.
              std::uint64_t until = now_ns() + 5000;
              while (now_ns() < until) {
              }
            },
            k);
      }
    });
    long turns = 0;
    while (!sender.ready()) {
      yield();
      ++turns;
    }
    sender.get();
    auto used = counters_now() - before;
    CHECK(used.suspensions_for_room > 0);
    CHECK(turns > 10);
  }
}

template <std::size_t Bytes>
struct block {
  std::array<unsigned char, Bytes> b;
};

template <std::size_t Bytes>
block<Bytes> pattern(unsigned seed) {
  block<Bytes> v;
  for (std::size_t i = 0; i < Bytes; ++i)
    v.b[i] = static_cast<unsigned char>(seed + i * 7 + i / 251);
  return v;
}

template <std::size_t Bytes>
unsigned add_up(const block<Bytes>& v) {
  unsigned sum = 0;
  for (auto b : v.b) sum += b;
  return sum;
}

template <std::size_t Bytes>
void echo(unsigned seed) {
  // Statics: the main stack has room, but a handler's is 256 KiB for everything.
  static block<Bytes> sent, got;
  sent = pattern<Bytes>(seed);
  got = rpc(
            next(),
            [](block<Bytes> v) {
              v.b[0] ^= 0xff;
              v.b[Bytes - 1] ^= 0x0f;
              return v;
            },
            sent)
            .get();
  got.b[Bytes - 1] ^= 0x0f;
  got.b[0] ^= 0xff;
  CHECK(std::memcmp(&got, &sent, Bytes) == 0);
}

void arguments_and_results_of_every_size() {
  for (unsigned round = 0; round < 3; ++round) {
    echo<1>(round);
    echo<7>(round);
    echo<31>(round);
    echo<48>(round);
    echo<49>(round);
    echo<64>(round);
    echo<65>(round);
    echo<1000>(round);
    echo<4096>(round);
    echo<8175>(round);
    echo<8176>(round);
    echo<8177>(round);
    echo<8192>(round);
    echo<20000>(round);
    echo<40000>(round);
  }
  // One way at a time, for a handler's stack is 256 KiB.
  static block<200000> big;
  big = pattern<200000>(3);
  unsigned sum = 0;
  for (auto b : big.b) sum += b;
  CHECK_EQUAL(rpc(next(), add_up<200000>, big).get(), sum);
}

void long_messages_from_all_to_all() {
  std::vector<future<unsigned>> all;
  for (int i = 0; i < 200; ++i) {
    all.push_back(rpc(i % rank_count(), add_up<30000>, pattern<30000>(static_cast<unsigned>(i))));
  }
  for (int i = 0; i < 200; ++i) {
    CHECK_EQUAL(all[static_cast<std::size_t>(i)].get(),
                add_up<30000>(pattern<30000>(static_cast<unsigned>(i))));
  }
}

unsigned carry(unsigned seed, int hops) {
  block<100000> cargo = pattern<100000>(seed);
  asm volatile("" : : "r"(&cargo) : "memory");
  for (int i = 0; i < hops; ++i) migrate_to((rank_me() + 1) % rank_count());
  asm volatile("" : : "r"(&cargo) : "memory");
  unsigned sum = 0;
  for (auto b : cargo.b) sum += b;
  return sum;
}

void large_frames_migrate() {
  std::vector<future<unsigned>> all;
  for (unsigned i = 0; i < 20; ++i) {
    all.push_back(rpc(rank_me(), [](unsigned s) { return activate(carry, s, 5); }, i));
  }
  for (unsigned i = 0; i < 20; ++i) {
    unsigned sum = 0;
    static block<100000> expected;
    expected = pattern<100000>(i);
    for (auto b : expected.b) sum += b;
    CHECK_EQUAL(all[i].get(), sum);
  }
}

void migrations_flood_too() {
  std::vector<future<int>> all;
  for (int i = 0; i < 1200; ++i) {
    all.push_back(rpc(
        rank_me(),
        [](int n) {
          return activate(
              [](int m) {
                std::array<int, 300> cargo;
                cargo.fill(m);
                asm volatile("" : : "r"(&cargo) : "memory");
                for (int h = 0; h < 10; ++h) migrate_to((rank_me() + 1 + m) % rank_count());
                int same = 0;
                for (int c : cargo) same += c == m;
                return same;
              },
              n);
        },
        i));
  }
  for (auto& f : all) CHECK_EQUAL(f.get(), 300);
}

bool released;

/// As many calls as may be unanswered wait for a one-way message, which needs no answer itself.
void one_way_messages_pass_calls_that_wait_for_answers() {
  if (rank_count() != 2 || rank_me() != 0) return;
  constexpr int calls = 65600;
  std::uint64_t before = counters_now().suspensions_for_room;
  std::vector<future<int>> futures;
  auto releaser = rpc(
      0,
      [](std::uint64_t suspensions) {
        while (counters_now().suspensions_for_room == suspensions) yield();
        rpc_ff(1, [] { released = true; });
      },
      before);
  for (int i = 0; i < calls; ++i) {
    futures.push_back(rpc(
        1,
        [](int x) {
          while (!released) yield();
          return x;
        },
        i));
  }
  for (int i = 0; i < calls; ++i) CHECK_EQUAL(futures[static_cast<std::size_t>(i)].get(), i);
  releaser.get();
  // Messages that are delayed fill their ring, in which calls then wait for room as well.
  if (!check::messages_are_delayed()) {
    CHECK(counters_now().suspensions_for_room < before + 1000);
  }
}

bool enough;
long served;

/// Fibers here call without end, so that a reply is always waiting; requests are served all the
/// same, one within a bounded number of replies.
void requests_are_served_while_replies_keep_coming() {
  if (rank_count() != 2) return;
  constexpr int fibers = 200;
  constexpr long requests = 300;
  enough = false;
  served = 0;
  barrier();
  if (rank_me() == 0) {
    long calls = 0;
    std::vector<future<long>> callers;
    for (int i = 0; i < fibers; ++i) {
      callers.push_back(rpc(0, [] {
        long made = 0;
        for (; !enough; ++made) rpc(1, plus_one, 1).get();
        return made;
      }));
    }
    for (auto& c : callers) calls += c.get();
    CHECK_EQUAL(served, requests);
    CHECK(calls < requests * 2000);
  } else {
    for (long i = 0; i < requests; ++i) rpc(0, [] { ++served; }).get();
    rpc(0, [] { enough = true; }).get();
  }
  barrier();
}

std::vector<int> began;

/// More threads than there is room for, some with long arguments; and other ranks are served in
/// between.
// What fibers of rank 0 have called, numbered as they called, and how rank 1 saw it begin.
long calls_made;
long calls_begun;
long calls_begun_early;

struct numbered {
  long number;
  std::array<char, 2000> payload;
};

/// Slower than who calls, so that the way is full.
void begins(const numbered& n) {
  calls_begun_early += n.number != calls_begun++;
  for (int i = 0; i < (sanitized ? 1'000'000 : 50'000); ++i) asm volatile("");
}

/// More fibers are ready than run in a round, some of them to call, while another waits for room to
/// call: when there is room, it goes first.
void calls_of_several_fibers_begin_in_their_order() {
  const char* aggregate = std::getenv("SOJOURN_AGGREGATE");
  if (rank_count() == 1 || (aggregate != nullptr && std::strcmp(aggregate, "on") == 0)) return;
  calls_begun = calls_begun_early = calls_made = 0;
  barrier();
  constexpr int callers = 3;
  constexpr int calls = 1000;
  constexpr int others = 64;
  if (rank_me() == 0) {
    const counters before = counters_now();
    std::vector<future<void>> all;
    for (int i = 0; i < others; ++i) {
      all.push_back(rpc(0, [] {
        while (calls_made < callers * calls) yield();
      }));
    }
    for (int i = 0; i < callers; ++i) {
      all.push_back(rpc(
          0,
          [](unsigned seed) {
            std::minstd_rand random(seed);
            for (int call = 0; call < calls; ++call) {
              rpc_ff(1, begins, numbered{calls_made++, {}});
              for (auto turns = random() % 4; turns > 0; --turns) yield();
            }
          },
          static_cast<unsigned>(i + 1)));
    }
    for (auto& f : all) f.get();
    CHECK((counters_now() - before).suspensions_for_room > 0);
    CHECK_EQUAL(rpc(1, [] { return calls_begun; }).get(), callers * calls);
    CHECK_EQUAL(rpc(1, [] { return calls_begun_early; }).get(), 0);
  }
  barrier();
}

void a_rank_s_calls_of_itself_begin_in_their_order() {
  constexpr int calls = 5000;
  began.clear();
  barrier();
  std::uint64_t suspensions = counters_now().suspensions_for_room;
  std::uint64_t messages = counters_now().requests_sent;
  for (int i = 0; i < calls; ++i) {
    if (i % 100 == 0) {
      rpc_ff(
          rank_me(),
          [](int n, block<20000> b) {
            began.push_back(n);
            CHECK(b.b == pattern<20000>(static_cast<unsigned>(n)).b);
          },
          i, pattern<20000>(static_cast<unsigned>(i)));
    } else {
      spawn([](int n) { began.push_back(n); }, i).detach();
    }
  }
  CHECK(counters_now().suspensions_for_room > suspensions);
  CHECK_EQUAL(counters_now().requests_sent, messages);
  while (began.size() < calls) yield();
  for (int i = 0; i < calls; ++i) CHECK_EQUAL(began[static_cast<std::size_t>(i)], i);
  barrier();
}

bool told;

void a_rank_that_calls_itself_without_end_hears_others() {
  told = false;
  barrier();
  rpc_ff((rank_me() + 1) % rank_count(), [] { told = true; });
  while (!told) rpc(rank_me(), plus_one, 1).get();
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("20,000 calls outstanding to every rank", calls_outstanding_to_every_rank);
    check::claim("a flood without replies takes no memory", flood_without_replies);
    check::claim("relayed floods in both directions end", relayed_floods_in_both_directions);
    check::claim("thousands of calls wait at a rank that computes, and no fiber",
                 thousands_of_calls_wait_at_a_rank_that_computes_and_no_fiber);
    check::claim("calls within calls while rings are full",
                 calls_within_calls_while_rings_are_full);
    check::claim("back-pressure suspends the fiber, not the rank",
                 back_pressure_suspends_the_fiber_not_the_rank);
    check::claim("arguments and results of every size", arguments_and_results_of_every_size);
    check::claim("long messages from all to all", long_messages_from_all_to_all);
    check::claim("frames of 100 KB migrate", large_frames_migrate);
    check::claim("migrations flood, too", migrations_flood_too);
    check::claim("one-way messages pass calls that wait for answers",
                 one_way_messages_pass_calls_that_wait_for_answers);
    check::claim("requests are served while replies keep coming",
                 requests_are_served_while_replies_keep_coming);
    check::claim("calls of several fibers begin in their order",
                 calls_of_several_fibers_begin_in_their_order);
    check::claim("a rank's calls of itself begin in their order",
                 a_rank_s_calls_of_itself_begin_in_their_order);
    check::claim("a rank that calls itself without end hears others",
                 a_rank_that_calls_itself_without_end_hears_others);
    return check::verdict();
  });
}
