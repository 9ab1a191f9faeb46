// SPDX-License-Identifier: Apache-2.0
// Ranks that wait use no processor time, and wake at once when there is something to do: also with
// more ranks than cores.
#include <sys/resource.h>
#include <unistd.h>

#include <functional>

#include "check.hpp"

using namespace sojourn;

namespace {

double cpu_seconds() {
  rusage u;
  getrusage(RUSAGE_SELF, &u);
  auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

/// Rank 0's thread sleeps for a second; the others wait for it.
template <class Wait>
void costs_nothing(Wait wait) {
  barrier();
  double cpu = cpu_seconds();
  auto before = counters_now();
  if (rank_me() == 0) usleep(1'000'000);
  wait();
  double used = cpu_seconds() - cpu;
  CHECK(used < 0.05);
  if (rank_me() != 0) CHECK((counters_now() - before).sleeps >= 1);
}

void waiting_in_a_barrier_costs_nothing() {
  costs_nothing([] { barrier(); });
}
void waiting_for_a_future_costs_nothing() {
  costs_nothing([] { CHECK_EQUAL(rpc(0, [](int x) { return x; }, 5).get(), 5); });
  barrier();
}

void sleepers_wake_for_every_message() {
  // Long enough between messages that the others sleep each time.
  for (int i = 0; i < 20; ++i) {
    if (rank_me() == 0) {
      usleep(3000);
      std::uint64_t began = now_ns();
      for (rank_t r = 1; r < rank_count(); ++r) {
        CHECK_EQUAL(rpc(r, [](int x) { return x + 1; }, i).get(), i + 1);
      }
      // A lost wake-up would be waited for until something else came.
      CHECK(now_ns() - began < 1'000'000'000);
    }
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("waiting in a barrier costs nothing", waiting_in_a_barrier_costs_nothing);
    check::claim("waiting for a future costs nothing", waiting_for_a_future_costs_nothing);
    check::claim("sleepers wake for every message", sleepers_wake_for_every_message);
    return check::verdict();
  });
}
