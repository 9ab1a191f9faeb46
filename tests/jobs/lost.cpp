// SPDX-License-Identifier: Apache-2.0
// A rank that dies while others wait for it, in the way the argument says. lost.sh reads what the
// others say.
#include <csignal>
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "sojourn/sojourn.hpp"

namespace {

using namespace sojourn;

constexpr rank_t victim = 1;

void die_later() {
  sleep_for(std::chrono::milliseconds(20));
  std::raise(SIGKILL);
}
void sleep_long() { sleep_for(std::chrono::seconds(30)); }

struct object {
  long n = 0;
  long wait() {
    sleep_long();
    return n;
  }
};

void wait(std::string_view how, global_ptr<object> there) {
  if (how == "call") rpc(victim, sleep_long).get();
  if (how == "method") there.call<&object::wait>();
  if (how == "future") {
    std::vector<future<void>> all;
    for (int i = 0; i < 100; ++i) all.push_back(rpc(victim, sleep_long));
    for (auto& f : all) f.get();
  }
  if (how == "thread") spawn_on(victim, sleep_long).join();
  if (how == "finish") {
    finish([] { rpc_ff(victim, sleep_long); });
  }
  if (how == "finish_elsewhere") {
    // What is lost was begun by another.
    finish([] { rpc_ff(rank_count() - 1, [] { rpc_ff(victim, sleep_long); }); });
  }
  if (how == "barrier") barrier();
  if (how == "reduce") (void)reduce(1, [](int a, int b) { return a + b; });
  if (how == "gets" || how == "puts" || how == "atomics") {
    // Until there is nobody to ask.
    for (;;) {
      long x = 0;
      completions done;
      const auto word = global_ptr<long>::at(there.address());
      if (how == "gets") load(word, x, done);
      if (how == "puts") store(word, 1L, done);
      if (how == "atomics") {
        (void)atomic_fetch_add(global_ptr<global_atomic<long>>::at(there.address()), 1);
      }
      done.wait();
      yield();
    }
  }
  if (how == "room" || how == "bundles") {
    if (how == "bundles") {
      aggregated here;
      for (;;) rpc_ff(victim, [](long) {}, 5L);
    }
    for (;;) rpc_ff(victim, [](long) {}, 5L);
  }
  if (how == "again") {
    try {
      rpc(victim, sleep_long).get();
    } catch (const rank_lost&) {
      rpc(victim, [] {}).get();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argc > 1 ? argv[1] : "call";
  const bool uncaught = argc > 2;
  return run(argc, argv, [=] {
    const auto there =
        broadcast(rank_me() == victim ? make<object>(victim) : global_ptr<object>(), victim);
    barrier();
    if (rank_me() == victim) {
      if (how == "room" || how == "bundles") {
        // Hears nobody meanwhile.
        const std::uint64_t end = now_ns() + 50'000'000;
        while (now_ns() < end) {
        }
        std::raise(SIGKILL);
      }
      die_later();
    }
    if (uncaught) wait(how, there);
    try {
      wait(how, there);
      std::printf("rank %d: nothing was lost\n", rank_me());
    } catch (const rank_lost& e) {
      std::printf("rank %d: lost %d: %s\n", rank_me(), e.rank(), e.what());
    }
    // Others are alive.
    const rank_t other = rank_me() == 0 ? rank_count() - 1 : 0;
    if (other != victim) {
      std::printf("rank %d: rank %d answers %d\n", rank_me(), other,
                  rpc(other, [] { return rank_me(); }).get());
    }
    std::fflush(stdout);
    sleep_for(std::chrono::milliseconds(200));  // the others may still ask
    return 0;
  });
}
