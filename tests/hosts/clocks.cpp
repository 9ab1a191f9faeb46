// SPDX-License-Identifier: Apache-2.0
// Hosts have clocks of their own, and now_ns() is one clock all the same.
#include <algorithm>

#include "jobs/check.hpp"
#include "sojourn/sojourn.hpp"

using namespace sojourn;

namespace {

constexpr std::uint64_t ms = 1'000'000;

/// A reading on another rank lies between two of this one. The clocks are compared to half of a
/// round trip; on a busy machine the best of many is not better than this.
void the_clock_is_one() {
  for (rank_t r = 0; r < rank_count(); ++r) {
    std::uint64_t off = ~std::uint64_t{0};
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t before = now_ns();
      const std::uint64_t there = rpc(r, [] { return now_ns(); }).get();
      const std::uint64_t after = now_ns();
      const std::uint64_t wrong = there < before  ? before - there
                                  : there > after ? there - after
                                                  : 0;
      off = std::min(off, wrong);
    }
    CHECK(off < 20 * ms);
  }
}

constexpr std::uint64_t span_ns = 400 * ms;
struct times {
  std::uint64_t began;
  std::uint64_t woke;
  rank_t at;
};

void sleeps(global_ptr<times> told) {
  const std::uint64_t began = now_ns();
  sleep_for(std::chrono::nanoseconds(span_ns));
  store(told, times{began, now_ns(), rank_me()});
}

/// It sleeps on: neither does it wake at once, nor for as long as the clocks differ.
void a_thread_that_moves_in_its_sleep_wakes_in_time() {
  if (rank_me() == 0) {
    const auto told = make<times>(0);
    for (rank_t r = 0; r < rank_count(); ++r) {
      thread t = spawn(sleeps, told);
      sleep_for(std::chrono::milliseconds(100));
      migrate(t, r);
      t.join();
      const times of = load(told);
      CHECK_EQUAL(of.at, r);
      CHECK(of.woke >= of.began + span_ns - 20 * ms);
      CHECK(of.woke < of.began + 20 * span_ns);
    }
    destroy(told);
  }
  barrier();
}

}  // namespace

int main(int argc, char** argv) {
  return run(argc, argv, [] {
    check::claim("the clock is one", the_clock_is_one);
    check::claim("a thread that moves in its sleep wakes in time",
                 a_thread_that_moves_in_its_sleep_wakes_in_time);
    return check::verdict();
  });
}
